// Every parameter of the plan is looked up by name in the reference; both sides give whole tensors.
#include "cli/reference.h"

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/check.h"
#include "plan/lowering.h"

namespace stepcast::cli {
namespace {

// The larger one, NaN counting as larger than anything.
double worse(double a, double b) { return std::isnan(a) || a > b ? a : b; }

double relative(double value, double reference) {
  if (value == reference) return 0;
  return std::fabs(value - reference) / std::max(std::fabs(reference), std::numeric_limits<double>::min());
}

std::map<std::string, std::vector<float>> gradients_of(const program::Program& p, const exec::Executor& executor) {
  std::map<std::string, std::vector<float>> gradients;
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
  const bool judged = steps_ < report::kJudgedSteps;
  if (judged) {
    comparison_.loss_error = worse(relative(*step.loss, *step.reference_loss), comparison_.loss_error);
  }
  const auto expected = gradients_of(program_->program(), *executor_);
  const auto actual = gradients_of(plan.program(), executor);
  CHECK(expected.size() == actual.size(), expected.size(), actual.size());
  double squares = 0;
  for (const auto& [name, gradient] : expected) squares += std::pow(report::norm_of(gradient), 2);
  double worst = -1;
  std::string worst_name;
  for (const auto& [name, gradient] : actual) {
    const auto found = expected.find(name);
    CHECK(found != expected.end(), name);
    const double error = report::gradient_error(gradient, found->second, std::sqrt(squares));
    if (worse(error, worst) == worst) continue;
    worst = error;
    worst_name = name;
  }
  step.gradient_error = worst;
  if (steps_++ == 0) {
    comparison_.gradient_error = worst;
    comparison_.worst_parameter = worst_name;
  } else if (judged) {
    comparison_.later_gradient_error = worse(worst, comparison_.later_gradient_error);
  }
}

}  // namespace stepcast::cli
