// Robust non-linear least squares for constants that are positive: what a table of measured times says of a model.
//
// Minimised is the sum over rows of w rho(ln predicted - ln measured) and, for parameters that have one, of a
// log-normal prior. rho is Huber's: r^2/2 up to `huber`, linear beyond it, so that a row the model cannot explain pulls
// no harder than that (Huber 1964). The minimum is looked for with Levenberg's and Marquardt's damping (Marquardt 1963;
// Nielsen 1999 for its schedule) over the logarithms of the parameters within their bounds, with derivatives by central
// differences, from the given start and from deterministic ones around it; the best of them is the answer.
//
// Standard errors are those of the linearised problem, s^2 (J'WJ)^-1 with s^2 = sum of w r^2 over rows less parameters:
// they say what the rows leave open when the model holds, not how wrong the model is.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace stepcast::calibrate {

struct Parameter {
  std::string name;
  double start = 1;
  double min = 1e-12;
  double max = 1e12;
  double prior_deviation = 0;  // of its logarithm from that of `start`; 0: no prior
};

// Writes ln(predicted / measured) of every row for the given values of the parameters.
using LogRatios = std::function<void(std::span<const double> values, std::span<double> ratios)>;

struct FitProblem {
  std::vector<Parameter> parameters;
  std::size_t rows = 0;
  LogRatios log_ratios;
  double noise = 0.05;  // deviation of a row, what priors are weighed against
};

struct FitOptions {
  double huber = 0.1;
  int iterations = 200;
  bool several_starts = true;
};

// Of |predicted / measured - 1|; 0 without rows.
struct ErrorQuantiles {
  double median = 0;
  double p90 = 0;
};

struct FitResult {
  std::vector<double> values;           // of the parameters
  std::vector<double> standard_errors;  // of their logarithms; infinity: the rows do not say
  ErrorQuantiles before, after;         // at the starts, at the values
  double loss = 0;
  bool converged = false;
  // One line each: parameters at a bound, that the rows do not tell, or that only move together.
  std::vector<std::string> warnings;
};

// Throws Error (kInput) with fewer rows than parameters, for starts outside of bounds, and for a model that gives no
// finite ratio at the start.
FitResult fit(const FitProblem& problem, const FitOptions& options = {});

ErrorQuantiles error_quantiles(std::span<const double> log_ratios);

}  // namespace stepcast::calibrate
