// A plan that is executed step by step: by the threads of this process, or by a world of processes of which this is
// one.
#pragma once

#include <memory>
#include <optional>

#include "exec/executor.h"
#include "exec/step_runner.h"
#include "exec/world.h"
#include "report/run_report.h"
#include "trace/trace.h"

namespace stepcast::cli {

class PlanRun {
 public:
  // Executes `p` here; with `world`, the rank of this process alone, and every process has to call the same functions
  // in the same order. Throws Error (kUsage) where the world has not one process for each rank, kExecution where its
  // processes have not all read the same plan.
  PlanRun(const program::CheckedProgram& p, exec::ExecOptions options, exec::World* world);

  // Whether this process has the results below; the others of a world have none.
  bool reports() const { return world_ == nullptr || world_->rank() == 0; }

  // One step of all ranks: the longest time and the first loss.
  exec::StepResult step();
  // Of the last step, as StepRunner::gather_parameter gives them.
  report::Gradients gradients() const;
  // Of the last step, every rank's.
  trace::Trace trace() const;
  int threads_per_rank() const { return runner_->threads_per_rank(); }

 private:
  const program::CheckedProgram& program_;
  exec::World* world_;
  std::unique_ptr<exec::StepRunner> runner_;
};

// Gradients of all parameters, by name.
report::Gradients gradients_of(const program::Program& p, const exec::StepRunner& runner);

}  // namespace stepcast::cli
