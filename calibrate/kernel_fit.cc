#include "calibrate/kernel_fit.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "config/text.h"

namespace stepcast::calibrate {
namespace {

using sim::Calibration;

constexpr int kMatmulFolds = 5;
constexpr int kAttentionFolds = 3;
constexpr double kMicrosecond = 1e-6;
constexpr double kUntoldError = 0.5;     // standard error from which on a refinement is left out
constexpr double kPriorDeviation = 0.5;  // of attention's half points, which tables of one width or length do not tell
constexpr std::size_t kFewestAttentionRows = 5;
constexpr double kDiagonalKeys = 64;
constexpr const char* kDiagonalMeaning =
    "keys that a query is multiplied with beyond those it sees, under the causal mask (unit: tokens)";
constexpr const char* kDiagonalDerivation =
    "half the edge of a tile of 128 x 128: tiles on the diagonal are computed whole";

// A constant of the cost model: its place in a calibration, what a file says of it, and where a fit starts and ends. Of
// times the value is in microseconds.
struct Constant {
  const char* name;
  const char* meaning;
  double start, min, max;  // start 0: what the base calibration has
  bool time;
  double (*get)(const Calibration&);
  void (*set)(Calibration&, double);
};

const std::vector<Constant>& matmul_constants() {
  static const std::vector<Constant> constants = {
      {"matmul.bf16", "asymptotic share of peak_bf16 that a large matmul reaches (unit: fraction)", 0, 0.05, 2, false,
       [](const Calibration& c) { return c.matmul_bf16; }, [](Calibration& c, double v) { c.matmul_bf16 = v; }},
      {"matmul.k_half", "K at which a long matmul reaches half of that (unit: elements)", 0, 1, 1e4, false,
       [](const Calibration& c) { return c.matmul_k_half; }, [](Calibration& c, double v) { c.matmul_k_half = v; }},
      {"matmul.memory", "share of the memory rate that a matmul's operands reach (unit: fraction)", 0, 0.05, 1.5, false,
       [](const Calibration& c) { return c.matmul_memory; }, [](Calibration& c, double v) { c.matmul_memory = v; }},
      {"matmul.tile_share",
       "share of what whole tiles of 128 x 128 add to the output that is computed (unit: fraction)", 0.3, 0.001, 1,
       false, [](const Calibration& c) { return c.matmul_refinement.tile_share; },
       [](Calibration& c, double v) { c.matmul_refinement.tile_share = v; }},
      {"matmul.wave_share", "share of what whole waves of such tiles add to that (unit: fraction)", 0.3, 0.001, 1,
       false, [](const Calibration& c) { return c.matmul_refinement.wave_share; },
       [](Calibration& c, double v) { c.matmul_refinement.wave_share = v; }},
      {"matmul.accumulation", "times slower where the product is added to its output (unit: ratio)", 1.02, 0.8, 2,
       false, [](const Calibration& c) { return c.matmul_refinement.accumulation; },
       [](Calibration& c, double v) { c.matmul_refinement.accumulation = v; }},
      {"matmul.sustained_drop", "how much longer long matmuls take than the others show (unit: fraction)", 0.1, 0.001,
       5, false, [](const Calibration& c) { return c.matmul_refinement.sustained_drop; },
       [](Calibration& c, double v) { c.matmul_refinement.sustained_drop = v; }},
      {"matmul.sustained_after", "time of the work of a matmul that shows half of that (unit: time)", 100, 1, 1e5, true,
       [](const Calibration& c) { return c.matmul_refinement.sustained_after.seconds(); },
       [](Calibration& c, double v) { c.matmul_refinement.sustained_after = Duration::from_seconds(v); }},
      {"matmul.start", "start and drain of a matmul, on top of its work (unit: time)", 4, 0.5, 50, true,
       [](const Calibration& c) { return c.matmul_start.value_or(c.kernel_gap).seconds(); },
       [](Calibration& c, double v) { c.matmul_start = Duration::from_seconds(v); }}};
  return constants;
}

template <sim::AttentionConstants Calibration::*pass>
std::vector<Constant> attention_constants() {
  return {{"efficiency", "share of peak of a long, wide attention (unit: fraction)", 0, 0.01, 2, false,
           [](const Calibration& c) { return (c.*pass).efficiency; },
           [](Calibration& c, double v) { (c.*pass).efficiency = v; }},
          {"head_dim_half", "head dimension at half of that (unit: elements)", 0, 1, 1000, false,
           [](const Calibration& c) { return (c.*pass).head_dim_half; },
           [](Calibration& c, double v) { (c.*pass).head_dim_half = v; }},
          {"sequence_half",
           "mean keys seen per query at half of that; half the sequence under the causal mask (unit: tokens)", 0, 1,
           1e5, false, [](const Calibration& c) { return (c.*pass).sequence_half; },
           [](Calibration& c, double v) { (c.*pass).sequence_half = v; }},
          {"tiles_half", "heads x sequences x tiles of 128 queries at half of that (unit: tiles)", 0, 1, 1e5, false,
           [](const Calibration& c) { return (c.*pass).tiles_half; },
           [](Calibration& c, double v) { (c.*pass).tiles_half = v; }}};
}

double in_units(const Constant& constant, double value) { return constant.time ? value / kMicrosecond : value; }
double out_of_units(const Constant& constant, double value) { return constant.time ? value * kMicrosecond : value; }

// Four significant digits.
std::string written(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.4g", value);
  return config::number_text(*config::parse_number(text));
}

using Predict = std::function<double(const Calibration&, std::size_t row)>;  // seconds, or a rate's inverse

// A fit of some constants to some rows of measurements, all else being the base calibration's.
class ConstantsFit {
 public:
  ConstantsFit(const Calibration& base, std::vector<Constant> constants, std::vector<double> measured, Predict predict)
      : base_(base), constants_(std::move(constants)), measured_(std::move(measured)), predict_(std::move(predict)) {
    for (const Constant& c : constants_) {
      const double start = c.start > 0 ? c.start : std::clamp(in_units(c, c.get(base)), c.min, c.max);
      parameters_.push_back({c.name, start, c.min, c.max, 0});
    }
  }

  // Takes out refinements that the rows leave open by half or more, or put at the lower end of their range, where they
  // do nothing, until none is left. A drop and the time it sets in at go together.
  void drop_untold() {
    std::vector<std::size_t> all(measured_.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    for (bool dropped = true; dropped;) {
      const FitResult found = run(all, nullptr);
      std::set<std::string> untold;
      for (std::size_t i = 0; i < constants_.size(); ++i) {
        const std::string name = constants_[i].name;
        const bool nothing = found.values[i] <= constants_[i].min * 1.001;
        if (is_matmul_refinement(name) && (nothing || found.standard_errors[i] > kUntoldError)) untold.insert(name);
      }
      if (untold.contains("matmul.sustained_drop")) untold.insert("matmul.sustained_after");
      if (untold.contains("matmul.sustained_after")) untold.insert("matmul.sustained_drop");
      const auto gone = [&](const auto& c) { return untold.contains(c.name); };
      dropped = std::erase_if(constants_, gone) > 0;
      std::erase_if(parameters_, gone);
    }
  }

  // What keeps a constant near where it starts if the rows do not tell it.
  void set_prior(double deviation) {
    for (std::size_t i = 1; i < parameters_.size(); ++i) parameters_[i].prior_deviation = deviation;
  }

  FitResult run(const std::vector<std::size_t>& rows, const std::vector<double>* from) const {
    FitProblem problem;
    problem.parameters = parameters_;
    problem.rows = rows.size();
    problem.log_ratios = [&](std::span<const double> values, std::span<double> ratios) {
      const Calibration c = with(values);
      for (std::size_t i = 0; i < rows.size(); ++i) ratios[i] = log_ratio(c, rows[i]);
    };
    FitOptions options;
    options.several_starts = from == nullptr;
    if (from != nullptr) {
      for (std::size_t i = 0; i < from->size(); ++i) {
        problem.parameters[i].start = std::clamp((*from)[i], problem.parameters[i].min, problem.parameters[i].max);
      }
    }
    return fit(problem, options);
  }

  // `part_of_row`: rows of a part are predicted by a fit to the others.
  KernelFit judged(const std::string& kernel, const std::vector<int>& part_of_row, int parts) const {
    std::vector<std::size_t> all(measured_.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    const FitResult found = run(all, nullptr);
    KernelFit result;
    result.kernel = kernel;
    result.rows = all.size();
    result.before = errors_with(base_);
    result.warnings = found.warnings;
    if (!found.converged) result.warnings.push_back("the fit did not settle");
    std::vector<double> values;
    for (std::size_t i = 0; i < constants_.size(); ++i) {
      const std::string text = written(found.values[i]);
      values.push_back(*config::parse_number(text));
      result.constants.push_back({constants_[i].name, "", text + (constants_[i].time ? " us" : ""),
                                  constants_[i].meaning, found.standard_errors[i], ""});
    }
    result.log_ratios = log_ratios(with(values), all);
    result.after = error_quantiles(result.log_ratios);
    result.left_out = error_quantiles(left_out_ratios(part_of_row, parts, found.values));
    return result;
  }

  ErrorQuantiles errors_with(const Calibration& calibration) const {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < measured_.size(); ++i) ratios.push_back(log_ratio(calibration, i));
    return error_quantiles(ratios);
  }

 private:
  Calibration with(std::span<const double> values) const {
    Calibration c = base_;
    for (std::size_t i = 0; i < constants_.size(); ++i) constants_[i].set(c, out_of_units(constants_[i], values[i]));
    return c;
  }
  double log_ratio(const Calibration& c, std::size_t row) const { return std::log(predict_(c, row) / measured_[row]); }
  std::vector<double> log_ratios(const Calibration& c, const std::vector<std::size_t>& rows) const {
    std::vector<double> ratios;
    for (const std::size_t row : rows) ratios.push_back(log_ratio(c, row));
    return ratios;
  }

  std::vector<double> left_out_ratios(const std::vector<int>& part_of_row, int parts,
                                      const std::vector<double>& from) const {
    std::vector<double> ratios;
    for (int part = 0; part < parts; ++part) {
      std::vector<std::size_t> seen, unseen;
      for (std::size_t i = 0; i < measured_.size(); ++i) (part_of_row[i] == part ? unseen : seen).push_back(i);
      if (unseen.empty() || seen.size() < constants_.size()) continue;
      const std::vector<double> of_part = log_ratios(with(run(seen, &from).values), unseen);
      ratios.insert(ratios.end(), of_part.begin(), of_part.end());
    }
    return ratios;
  }

  const Calibration& base_;
  std::vector<Constant> constants_;
  std::vector<double> measured_;
  Predict predict_;
  std::vector<Parameter> parameters_;
};

void name_constants(KernelFit& result, const std::string& beginning, const Calibration& base) {
  for (FittedConstant& constant : result.constants) {
    constant.name = beginning + constant.name;
    for (const sim::CalibrationConstant& c : base.constants) {
      if (c.name == constant.name) constant.before = c.value;
    }
  }
}

}  // namespace

bool is_matmul_refinement(const std::string& name) {
  return name == "matmul.tile_share" || name == "matmul.wave_share" || name == "matmul.accumulation" ||
         name == "matmul.sustained_drop" || name == "matmul.sustained_after" || name == "matmul.start";
}

KernelFit fit_matmul(const KernelRows<MatmulRow>& rows, const Calibration& base, const topology::DeviceSpec& device) {
  if (rows.rows.size() <= matmul_constants().size()) {
    throw Error(ErrorKind::kInput, "too few matmuls to fit: " + std::to_string(rows.rows.size()), {rows.file, 0, "gpu"},
                {"more than " + std::to_string(matmul_constants().size()) +
                 " rows of this device, of 16-bit operands, with their mean times"});
  }
  const sim::KernelRates rates = {device.peak_bf16.value, device.memory_bandwidth.value, device.multiprocessors, 1};
  std::vector<double> measured;
  std::map<std::pair<std::int64_t, std::int64_t>, int> part_of_shape;
  for (const MatmulRow& row : rows.rows) {
    measured.push_back(row.seconds);
    part_of_shape[{row.shape.n, row.shape.k}] = 0;
  }
  int next = 0;
  for (auto& [shape, part] : part_of_shape) part = next++ % kMatmulFolds;
  std::vector<int> parts;
  for (const MatmulRow& row : rows.rows) parts.push_back(part_of_shape[{row.shape.n, row.shape.k}]);
  Calibration plain = base;
  plain.matmul_refinement = {};
  plain.matmul_start.reset();
  ConstantsFit fitted(plain, matmul_constants(), measured, [&](const Calibration& c, std::size_t row) {
    return sim::matmul_seconds(rows.rows[row].shape, {c.matmul_bf16, c.matmul_k_half}, c.matmul_memory,
                               c.matmul_refinement, rates) +
           c.matmul_start.value_or(c.kernel_gap).seconds();
  });
  fitted.drop_untold();
  KernelFit result = fitted.judged("matmul", parts, kMatmulFolds);
  result.before = fitted.errors_with(base);
  name_constants(result, "", base);
  return result;
}

std::vector<KernelFit> fit_attention(const KernelRows<AttentionRow>& rows, const Calibration& base,
                                     const topology::DeviceSpec& device) {
  std::map<std::string, std::vector<AttentionRow>> by_kernel;
  for (const AttentionRow& row : rows.rows) by_kernel[row.kernel].push_back(row);
  Calibration diagonal = base;
  diagonal.attention_forward.diagonal_keys = kDiagonalKeys;
  diagonal.attention_backward.diagonal_keys = kDiagonalKeys;
  std::vector<KernelFit> fits;
  for (const auto& [kernel, of_kernel] : by_kernel) {
    const bool backward = kernel.ends_with(" bwd"), joint = kernel.ends_with(" fwd+bwd");
    const auto pass = backward || joint ? &Calibration::attention_backward : &Calibration::attention_forward;
    std::vector<double> measured;
    std::vector<int> parts;
    for (const AttentionRow& row : of_kernel) {
      measured.push_back(1 / row.rate);
      parts.push_back(static_cast<int>(parts.size()) % kAttentionFolds);
    }
    ConstantsFit fitted(diagonal,
                        backward || joint ? attention_constants<&Calibration::attention_backward>()
                                          : attention_constants<&Calibration::attention_forward>(),
                        measured, [&device, pass, &taken = of_kernel](const Calibration& c, std::size_t row) {
                          const AttentionRow& r = taken[row];
                          return sim::attention_slowdown(c.*pass, r.head_dim, r.keys, r.tiles, r.masked) /
                                 (device.peak_bf16.value * (c.*pass).efficiency);
                        });
    if (of_kernel.size() < kFewestAttentionRows) continue;
    fitted.set_prior(kPriorDeviation);
    KernelFit result = fitted.judged(kernel, parts, kAttentionFolds);
    result.before = fitted.errors_with(base);
    result.constants.push_back(
        {"diagonal_keys", "", config::number_text(kDiagonalKeys), kDiagonalMeaning, 0, kDiagonalDerivation});
    name_constants(result, joint ? "" : backward ? "attention.backward." : "attention.forward.", base);
    fits.push_back(std::move(result));
  }
  return fits;
}

}  // namespace stepcast::calibrate
