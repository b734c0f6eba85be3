// A plan and the same training on one rank, step by step: both are executed, losses and gradients compared.
#pragma once

#include <cstdint>
#include <memory>

#include "exec/executor.h"
#include "plan/scenario.h"
#include "program/check.h"
#include "report/run_report.h"

namespace stepcast::cli {

class Reference {
 public:
  // Lowers `scenario` to one rank; memory is allocated at the first step.
  explicit Reference(const plan::Scenario& scenario);

  // Executes the reference's next step and compares with a step of the plan and its gradients. Fills the step's
  // reference loss and gradient error.
  void compare_step(const report::Gradients& gradients, report::RunStep& step);

  const report::ReferenceComparison& comparison() const { return comparison_; }
  const program::CheckedProgram& program() const { return *program_; }

 private:
  std::unique_ptr<program::CheckedProgram> program_;
  std::unique_ptr<exec::Executor> executor_;
  report::ReferenceComparison comparison_;
  std::int64_t steps_ = 0;
};

}  // namespace stepcast::cli
