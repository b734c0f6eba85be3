#include "calibrate/fit.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/error.h"

namespace stepcast::calibrate {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kStep = 1e-4;        // of a logarithm, for derivatives
constexpr double kConverged = 1e-8;   // a step no longer than this, in logarithms, is the last
constexpr double kCorrelated = 0.95;  // parameters that share more than this are named
constexpr double kUntold = 0.5;       // standard error of a logarithm from which on the rows tell little
constexpr double kStartFactors[] = {1, 1.4, 0.7};
constexpr double kLargestLambda = 1e14;

// The problem over logarithms, with its priors as further rows.
class LogProblem {
 public:
  LogProblem(const FitProblem& problem, double huber) : problem_(problem), huber_(huber) {
    const auto n = static_cast<Index>(problem.parameters.size());
    lower_.resize(n);
    upper_.resize(n);
    start_.resize(n);
    for (Index i = 0; i < n; ++i) {
      const Parameter& p = problem.parameters[static_cast<std::size_t>(i)];
      lower_[i] = std::log(p.min);
      upper_[i] = std::log(p.max);
      start_[i] = std::log(p.start);
    }
  }

  const VectorXd& start() const { return start_; }
  VectorXd bounded(const VectorXd& x) const { return x.cwiseMax(lower_).cwiseMin(upper_); }
  bool at_lower(const VectorXd& x, Index i) const { return x[i] <= lower_[i] + 1e-9; }
  bool at_upper(const VectorXd& x, Index i) const { return x[i] >= upper_[i] - 1e-9; }

  VectorXd ratios(const VectorXd& x) const {
    const VectorXd values = x.array().exp();
    VectorXd out(static_cast<Index>(problem_.rows));
    problem_.log_ratios({values.data(), static_cast<std::size_t>(values.size())},
                        {out.data(), static_cast<std::size_t>(out.size())});
    return out;
  }

  MatrixXd jacobian(const VectorXd& x) const {
    MatrixXd j(static_cast<Index>(problem_.rows), x.size());
    for (Index i = 0; i < x.size(); ++i) {
      VectorXd above = x, below = x;
      above[i] += kStep;
      below[i] -= kStep;
      above = bounded(above);
      below = bounded(below);
      const double width = above[i] - below[i];
      j.col(i) = width > 0 ? VectorXd((ratios(above) - ratios(below)) / width) : VectorXd::Zero(j.rows());
    }
    return j;
  }

  // Of Huber's loss at a residual: its second derivative's stand-in, 1 within the bend.
  VectorXd weights(const VectorXd& r) const {
    return r.unaryExpr([this](double v) { return std::abs(v) <= huber_ ? 1 : huber_ / std::abs(v); });
  }

  // Of priors, in units of a row's variance; zero without.
  VectorXd prior_precision() const {
    VectorXd p = VectorXd::Zero(start_.size());
    for (Index i = 0; i < p.size(); ++i) {
      const double deviation = problem_.parameters[static_cast<std::size_t>(i)].prior_deviation;
      if (deviation > 0) p[i] = problem_.noise * problem_.noise / (deviation * deviation);
    }
    return p;
  }

  double loss(const VectorXd& x, const VectorXd& r) const {
    double sum = 0;
    for (const double v : r) {
      const double a = std::abs(v);
      sum += a <= huber_ ? v * v / 2 : huber_ * (a - huber_ / 2);
    }
    sum += prior_precision().dot((x - start_).cwiseAbs2()) / 2;
    return std::isfinite(sum) ? sum : std::numeric_limits<double>::infinity();
  }

 private:
  const FitProblem& problem_;
  double huber_;
  VectorXd lower_, upper_, start_;
};

struct Minimum {
  VectorXd x;
  double loss = 0;
  bool converged = false;
};

// The damped step; parameters at a bound that the gradient pushes over it stand still.
VectorXd damped_step(const LogProblem& problem, const VectorXd& x, MatrixXd hessian, VectorXd gradient, double lambda) {
  for (Index i = 0; i < x.size(); ++i) {
    const bool held = (problem.at_lower(x, i) && gradient[i] > 0) || (problem.at_upper(x, i) && gradient[i] < 0);
    if (held || hessian(i, i) <= 0) {
      hessian.row(i).setZero();
      hessian.col(i).setZero();
      hessian(i, i) = 1;
      gradient[i] = 0;
    } else {
      hessian(i, i) *= 1 + lambda;
    }
  }
  return hessian.ldlt().solve(-gradient);
}

Minimum minimise(const LogProblem& problem, const VectorXd& from, int iterations) {
  Minimum best{problem.bounded(from), 0, false};
  VectorXd r = problem.ratios(best.x);
  best.loss = problem.loss(best.x, r);
  double lambda = 1e-3, raise = 2;
  for (int i = 0; i < iterations && !best.converged && std::isfinite(best.loss); ++i) {
    const MatrixXd j = problem.jacobian(best.x);
    const VectorXd w = problem.weights(r);
    const VectorXd prior = problem.prior_precision();
    const MatrixXd weighted = w.asDiagonal() * j;
    MatrixXd hessian = j.transpose() * weighted;
    hessian.diagonal() += prior;
    const VectorXd gradient = weighted.transpose() * r + prior.cwiseProduct(best.x - problem.start());
    bool better = false;
    while (!better && !best.converged && lambda < kLargestLambda) {
      const VectorXd next = problem.bounded(best.x + damped_step(problem, best.x, hessian, gradient, lambda));
      const double moved = (next - best.x).cwiseAbs().maxCoeff();
      best.converged = moved < kConverged;
      const VectorXd at_next = problem.ratios(next);
      const double loss = problem.loss(next, at_next);
      better = loss < best.loss;
      if (better) {
        best.x = next;
        best.loss = loss;
        r = at_next;
        lambda = std::max(lambda / 3, 1e-12);
        raise = 2;
      } else {
        lambda *= raise;
        raise *= 2;
      }
    }
    if (!better) best.converged = true;
  }
  return best;
}

// Deterministic: the start, all parameters above or below it, and every other one above and the rest below.
std::vector<VectorXd> starts_of(const LogProblem& problem, bool several) {
  std::vector<VectorXd> starts = {problem.start()};
  if (!several) return starts;
  for (const double even : kStartFactors) {
    for (const double odd : kStartFactors) {
      if (even == 1 && odd == 1) continue;
      VectorXd x = problem.start();
      for (Index i = 0; i < x.size(); ++i) x[i] += std::log(i % 2 == 0 ? even : odd);
      starts.push_back(problem.bounded(x));
    }
  }
  return starts;
}

std::string percent(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * v);
  return text;
}

// Standard errors of the logarithms, and what is to be said of them. Parameters at a bound count as known.
void judge(const FitProblem& problem, const LogProblem& logs, const VectorXd& x, FitResult& result) {
  const VectorXd r = logs.ratios(x);
  const VectorXd w = logs.weights(r);
  const MatrixXd j = logs.jacobian(x);
  std::vector<Index> open;
  result.standard_errors.assign(static_cast<std::size_t>(x.size()), 0);
  const auto name = [&](Index i) { return problem.parameters[static_cast<std::size_t>(i)].name; };
  for (Index i = 0; i < x.size(); ++i) {
    if (j.col(i).cwiseAbs().maxCoeff() == 0) {
      result.standard_errors[static_cast<std::size_t>(i)] = std::numeric_limits<double>::infinity();
      result.warnings.push_back(name(i) + ": no row depends on it");
    } else if (logs.at_lower(x, i) || logs.at_upper(x, i)) {
      result.warnings.push_back(name(i) + " is at the end of its range");
    } else {
      open.push_back(i);
    }
  }
  const auto n = static_cast<Index>(open.size());
  MatrixXd hessian(n, n);
  for (Index a = 0; a < n; ++a) {
    for (Index b = 0; b < n; ++b) {
      hessian(a, b) = (w.array() * j.col(open[static_cast<std::size_t>(a)]).array() *
                       j.col(open[static_cast<std::size_t>(b)]).array())
                          .sum();
    }
    hessian(a, a) += logs.prior_precision()[open[static_cast<std::size_t>(a)]];
  }
  const double variance =
      w.dot(r.cwiseAbs2()) / static_cast<double>(std::max<Index>(1, r.size() - static_cast<Index>(open.size())));
  const MatrixXd inverse = hessian.completeOrthogonalDecomposition().pseudoInverse();
  for (Index a = 0; a < n; ++a) {
    const Index i = open[static_cast<std::size_t>(a)];
    const double error = std::sqrt(variance * inverse(a, a));
    result.standard_errors[static_cast<std::size_t>(i)] = error;
    if (error > kUntold) result.warnings.push_back(name(i) + ": the rows leave it open by " + percent(error));
    for (Index b = 0; b < a; ++b) {
      const double correlation = inverse(a, b) / std::sqrt(inverse(a, a) * inverse(b, b));
      if (std::abs(correlation) < kCorrelated) continue;
      char text[32];
      std::snprintf(text, sizeof text, "%.2f", correlation);
      result.warnings.push_back(name(open[static_cast<std::size_t>(b)]) + " and " + name(i) +
                                " are told apart poorly: correlation " + text);
    }
  }
}

void require_sound(const FitProblem& problem) {
  if (problem.rows < problem.parameters.size()) {
    throw Error(
        ErrorKind::kInput,
        std::to_string(problem.rows) + " rows cannot tell " + std::to_string(problem.parameters.size()) + " constants",
        {}, {"give a table with more rows of this device"});
  }
  for (const Parameter& p : problem.parameters) {
    if (p.min > 0 && p.start >= p.min && p.start <= p.max) continue;
    throw Error(ErrorKind::kInput, "a constant starts outside of its range", {"", 0, p.name});
  }
}

}  // namespace

ErrorQuantiles error_quantiles(std::span<const double> log_ratios) {
  if (log_ratios.empty()) return {};
  std::vector<double> errors;
  for (const double r : log_ratios) errors.push_back(std::abs(std::exp(r) - 1));
  std::sort(errors.begin(), errors.end());
  // Linear between order statistics, as spreadsheets and NumPy have it.
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(errors.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, errors.size() - 1);
    return errors[below] + (place - static_cast<double>(below)) * (errors[above] - errors[below]);
  };
  return {at(0.5), at(0.9)};
}

FitResult fit(const FitProblem& problem, const FitOptions& options) {
  require_sound(problem);
  const LogProblem logs(problem, options.huber);
  const VectorXd before = logs.ratios(logs.start());
  if (!before.allFinite()) throw Error(ErrorKind::kInput, "the constants to start from give no time for some rows");
  Minimum best;
  best.loss = std::numeric_limits<double>::infinity();
  for (const VectorXd& start : starts_of(logs, options.several_starts)) {
    Minimum found = minimise(logs, start, options.iterations);
    if (found.loss < best.loss) best = std::move(found);
  }
  FitResult result;
  const VectorXd values = best.x.array().exp();
  const VectorXd after = logs.ratios(best.x);
  result.values.assign(values.begin(), values.end());
  result.before = error_quantiles({before.data(), static_cast<std::size_t>(before.size())});
  result.after = error_quantiles({after.data(), static_cast<std::size_t>(after.size())});
  result.loss = best.loss;
  result.converged = best.converged;
  judge(problem, logs, best.x, result);
  return result;
}

}  // namespace stepcast::calibrate
