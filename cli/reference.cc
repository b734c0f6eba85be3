// Every parameter of the plan is looked up by name in the reference; both sides give whole tensors.
#include "cli/reference.h"

#include "base/check.h"
#include "plan/lowering.h"

namespace stepcast::cli {
namespace {

report::Gradients gradients_of(const program::Program& p, const exec::Executor& executor) {
  report::Gradients gradients;
  for (std::size_t i = 0; i < p.parameters.size(); ++i) {
    const program::ParameterId id(i);
    gradients[p.parameters[id].name] = executor.gather_parameter(id, program::ShardKind::kGradient);
  }
  return gradients;
}

}  // namespace

Reference::Reference(const plan::Scenario& scenario)
    : program_(std::make_unique<program::CheckedProgram>(plan::lower(plan::single_rank_reference(scenario)))) {
  comparison_.bounds = report::bounds_for(scenario.training.compute);
}

void Reference::compare_step(const program::CheckedProgram& plan, const exec::Executor& executor,
                             report::RunStep& step) {
  if (!executor_) executor_ = std::make_unique<exec::Executor>(*program_, exec::ExecOptions{});
  step.reference_loss = executor_->run_step().loss;
  CHECK(step.loss.has_value() && step.reference_loss.has_value());
  const report::GradientErrors errors =
      report::gradient_errors(gradients_of(plan.program(), executor), gradients_of(program_->program(), *executor_));
  step.gradient_error = errors.worst;
  comparison_.add(++steps_, *step.loss, *step.reference_loss, errors);
}

}  // namespace stepcast::cli
