#include "cli/calibrate_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace stepcast::cli {
namespace {

using nlohmann::ordered_json;

bool is_taken(const CalibrateAnswer& answer, const calibrate::KernelFit& fit) {
  return std::find(answer.taken.begin(), answer.taken.end(), fit.kernel) != answer.taken.end();
}

std::string error_text(const calibrate::FittedConstant& constant) {
  const double standard_error = constant.standard_error;
  if (!constant.derivation.empty()) return "derived";
  if (!std::isfinite(standard_error)) return "?";
  return standard_error == 0 ? "bound" : fmt::format("{:.0f} %", 100 * standard_error);
}

std::string quantiles_text(const calibrate::ErrorQuantiles& q) {
  return fmt::format("{:.1f} / {:.1f} %", 100 * q.median, 100 * q.p90);
}

ordered_json quantiles_json(const calibrate::ErrorQuantiles& q) {
  return {{"median_abs_error_pct", 100 * q.median}, {"p90_abs_error_pct", 100 * q.p90}};
}

}  // namespace

std::string calibrate_screen(const CalibrateAnswer& answer) {
  std::string text = fmt::format(
      "{}: vendor rates of {}, other constants of {}\nerrors are median / 90th percentile of "
      "|predicted / measured - 1|\n",
      answer.gpu, answer.device, answer.base);
  for (const calibrate::KernelFit& fit : answer.fits) {
    text += fmt::format("\n{}: {} rows, error {} before, {} after, {} of rows left out{}\n", fit.kernel, fit.rows,
                        quantiles_text(fit.before), quantiles_text(fit.after), quantiles_text(fit.left_out),
                        is_taken(answer, fit) ? "" : " (not taken)");
    for (const calibrate::FittedConstant& c : fit.constants) {
      text += fmt::format("  {:<34} {:>10} -> {:<10} +- {}\n", c.name, c.before.empty() ? "-" : c.before, c.value,
                          error_text(c));
    }
    for (const std::string& warning : fit.warnings) text += "  note: " + warning + "\n";
  }
  if (!answer.not_taken.empty()) text += "\n";
  for (const std::string& rows : answer.not_taken) text += rows + "\n";
  return text + (answer.out.empty() ? "\nnothing written: --out F.yaml writes the calibration\n"
                                    : "\nwritten: " + answer.out + "\n");
}

std::string calibrate_json(const CalibrateAnswer& answer) {
  ordered_json fits = ordered_json::array();
  for (const calibrate::KernelFit& fit : answer.fits) {
    ordered_json constants = ordered_json::array();
    for (const calibrate::FittedConstant& c : fit.constants) {
      ordered_json error = std::isfinite(c.standard_error) ? ordered_json(100 * c.standard_error) : ordered_json();
      constants.push_back({{"name", c.name}, {"before", c.before}, {"value", c.value}, {"standard_error_pct", error}});
    }
    fits.push_back({{"kernel", fit.kernel},
                    {"rows", fit.rows},
                    {"taken", is_taken(answer, fit)},
                    {"before", quantiles_json(fit.before)},
                    {"after", quantiles_json(fit.after)},
                    {"left_out", quantiles_json(fit.left_out)},
                    {"constants", constants},
                    {"warnings", fit.warnings}});
  }
  const ordered_json out = answer.out.empty() ? ordered_json() : ordered_json(answer.out);
  return ordered_json{{"schema", "stepcast/calibrate/1"},
                      {"gpu", answer.gpu},
                      {"device", answer.device},
                      {"base", answer.base},
                      {"out", out},
                      {"not_taken", answer.not_taken},
                      {"fits", fits}}
             .dump(2) +
         "\n";
}

}  // namespace stepcast::cli
