// A plan that is executed step by step: by the threads of this process, or by a world of processes of which this is
// one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "exec/step_runner.h"
#include "exec/world.h"
#include "report/run_report.h"
#include "trace/trace.h"

namespace stepcast::cli {

// What all processes of a world must have in common beside the plan, and what is wrong where one of them has it not:
// "was given other --steps".
struct CommonFact {
  std::string complaint;
  std::string value;
};

// Makes what runs the steps of `p` here: with `world`, the rank of this process alone.
using MakeRunner = std::unique_ptr<exec::StepRunner> (*)(const program::CheckedProgram& p,
                                                         const exec::ExecOptions& options, exec::World* world);

class PlanRun {
 public:
  // Executes `p` here; with `world`, the rank of this process alone, and every process has to call the same functions
  // in the same order. Throws Error (kUsage) where the world has not one process for each rank, kExecution where its
  // processes have not all read the same plan, are not of the same build, or differ in `facts`. Without `make` ranks
  // run on cores.
  PlanRun(const program::CheckedProgram& p, exec::ExecOptions options, exec::World* world,
          std::vector<CommonFact> facts = {}, MakeRunner make = nullptr);

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
