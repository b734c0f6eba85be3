// Every parameter of the plan is looked up by name in the reference; both sides give whole tensors.
#include "cli/reference.h"

#include "base/check.h"
#include "cli/plan_run.h"
#include "plan/lowering.h"

namespace stepcast::cli {
Reference::Reference(const plan::Scenario& scenario)
    : program_(std::make_unique<program::CheckedProgram>(plan::lower(plan::single_rank_reference(scenario)))) {
  comparison_.bounds = report::bounds_for(scenario.training.compute);
}

void Reference::compare_step(const report::Gradients& gradients, report::RunStep& step) {
  if (!executor_) executor_ = std::make_unique<exec::Executor>(*program_, exec::ExecOptions{});
  step.reference_loss = executor_->run_step().loss;
  CHECK(step.loss.has_value() && step.reference_loss.has_value());
  const report::GradientErrors errors =
      report::gradient_errors(gradients, gradients_of(program_->program(), *executor_));
  step.gradient_error = errors.worst;
  comparison_.add(++steps_, *step.loss, *step.reference_loss, errors);
}

}  // namespace stepcast::cli
