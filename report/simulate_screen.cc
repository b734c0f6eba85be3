// The screen of `simulate`: verdict, what was simulated, where the time goes, memory by stage, what is not known.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/quantity.h"
#include "plan/layout.h"
#include "plan/rules.h"
#include "report/cluster_text.h"
#include "report/resolved_plan.h"
#include "report/simulate_output.h"
#include "report/simulate_tables.h"
#include "report/text.h"

namespace stepcast::report {
namespace {

// A kind of time that costs more than this share of the step is worth a line of its own.
constexpr double kWorthALine = 0.1;

std::string rate_text(double tflops, int digits) {
  return format_quantity(tflops * 1e12, Dimension::kFlopRate, digits);
}

// "8.030 B" parameters, "57.91 G" FLOP: a count in the largest unit below it; `giga` is the letter for 1e9.
std::string scaled_count(double count, const char* giga) {
  const std::pair<double, const char*> units[] = {{1e12, "T"}, {1e9, giga}, {1e6, "M"}, {1e3, "k"}};
  for (const auto& [scale, unit] : units) {
    if (count >= scale) return significant(count / scale, 4) + " " + unit;
  }
  return significant(count, 4) + " ";
}

// Beyond tensors it is an estimate.
std::string device_text(const MemoryReport& m) {
  return (m.device_bytes > m.allocated_bytes ? "~" : "") + memory_text(m.device_bytes);
}

std::string verdict_line(const SimulationReport& r) {
  const std::int64_t left = r.memory.capacity_bytes - r.memory.device_bytes;
  if (r.memory.verdict == Verdict::kOom) {
    const StageReport& stage = r.stages.at(static_cast<std::size_t>(r.memory.peak_stage));
    const auto largest = std::max_element(stage.at_peak.begin(), stage.at_peak.end());
    const auto largest_class = static_cast<program::MemoryClass>(largest - stage.at_peak.begin());
    return fmt::format("OOM  stage {} needs {} allocated ({} device) of {}: over by {}; {} {}\n", stage.stage,
                       memory_text(r.memory.allocated_bytes), device_text(r.memory),
                       memory_text(r.memory.capacity_bytes), memory_text(-left), program::to_string(largest_class),
                       memory_text(*largest));
  }
  const TimeUnit unit = time_unit_for(r.step_time_s);
  std::string line =
      fmt::format("{}  {} {}/step (uncalibrated)  {} tok/s/GPU  {}/GPU  MFU {} full / {} causal  {} ({} free)\n",
                  r.memory.verdict == Verdict::kTight ? "TIGHT" : "OK", significant(r.step_time_s * unit.per_second, 4),
                  unit.symbol, format_count(static_cast<std::int64_t>(r.tokens_per_s_per_gpu + 0.5)),
                  rate_text(r.model_tflops_per_gpu.full, 3), percent(r.mfu.full), percent(r.mfu.causal),
                  to_string(r.memory.verdict), memory_text(left));
  // Long figures take the room of double spaces, the last ones first.
  for (std::size_t at = line.rfind("  "); line.size() > kColumns + 1 && at != std::string::npos;
       at = line.rfind("  ")) {
    line.erase(at, 1);
  }
  return line;
}

// On an OOM verdict line 1 speaks of memory, so the speed gets a line of its own.
std::string speed_line(const SimulationReport& r) {
  if (r.memory.verdict != Verdict::kOom) return "";
  const TimeUnit unit = time_unit_for(r.step_time_s);
  return fmt::format("if it fitted: {} {}/step (uncalibrated), {} tok/s/GPU, MFU {} full / {} causal\n",
                     significant(r.step_time_s * unit.per_second, 4), unit.symbol,
                     format_count(static_cast<std::int64_t>(r.tokens_per_s_per_gpu + 0.5)), percent(r.mfu.full),
                     percent(r.mfu.causal));
}

// Fields of the table in which a published run is not the scenario.
std::vector<std::string> differences(const PublishedRun& run, const plan::Scenario& s) {
  const std::tuple<const char*, std::int64_t, std::int64_t> fields[] = {
      {"gpus", run.gpus, s.gpus},
      {"tp", run.tp, s.plan.tp},
      {"cp", run.cp, s.plan.cp},
      {"pp", run.pp, s.plan.pp},
      {"dp", run.dp, s.plan.dp},
      {"global batch", run.global_batch_size, s.training.global_batch_size},
      {"sequence length", run.sequence_length, s.training.sequence_length}};
  std::vector<std::string> names;
  for (const auto& [name, published, own] : fields) {
    if (published != own) names.emplace_back(name);
  }
  if (run.precision != precision_of(s)) names.emplace_back("precision");
  return names;
}

std::string evidence_text(const SimulationReport& r) {
  std::string text =
      "uncalibrated: constants are vendor peaks, stated efficiencies and fits to published kernel tables; no training "
      "step was fitted, so no band is given.";
  if (!r.nearest_published) {
    return text + " The table of published runs has none of this model on this device.";
  }
  const PublishedRun& run = *r.nearest_published;
  const std::vector<std::string> other = differences(run, r.scenario);
  text += fmt::format(" {}: {} s/step, {} on {} x {}, TP{} CP{} PP{} DP{}, {}, GBS {} x {} ({}: {}); ",
                      other.empty() ? "Published" : "Nearest published", significant(run.step_time_s, 4), run.model,
                      run.gpus, run.gpu, run.tp, run.cp, run.pp, run.dp, run.precision, run.global_batch_size,
                      format_count(run.sequence_length), run.id, run.source);
  if (!other.empty()) return text + "other in " + joined(other, ", ") + ", so the difference is no error figure.";
  return text + fmt::format("the same degrees and batch: error {:+.1f} %, if the rest of the plan is too.",
                            100 * (r.step_time_s / run.step_time_s - 1));
}

// Most tables of quantised runs state MFU over the peak of what is quantised, some over that of bf16.
std::string bf16_utilisation_text(const SimulationReport& r) {
  if (r.scenario.training.recipe == plan::MatmulRecipe::kNone) return "";
  const double bf16 = r.scenario.cluster.node.device.peak_bf16.value * 1e-12;
  return fmt::format("; over the {} of bf16 MFU is {} full / {} causal", rate_text(bf16, 4),
                     percent(r.model_tflops_per_gpu.full / bf16), percent(r.model_tflops_per_gpu.causal / bf16));
}

std::string subject_block(const SimulationReport& r) {
  const plan::Scenario& s = r.scenario;
  std::string text = wrapped(
      "model", kLabelWidth,
      fmt::format("{}  {} params  {}FLOP/token full, {}FLOP causal  peak {} dense {}", s.model.name,
                  scaled_count(static_cast<double>(r.parameters), "B"), scaled_count(r.flops_per_token.full, "G"),
                  scaled_count(r.flops_per_token.causal, "G"), rate_text(r.peak_tflops, 4), precision_of(s)) +
          bf16_utilisation_text(r));
  text += wrapped("cluster", kLabelWidth, cluster_text(s));
  text += wrapped("plan", kLabelWidth, plan_text(s));
  text += wrapped("layout", kLabelWidth,
                  fmt::format("{}   framework {}   calibration {} ({} constants)", plan::layout_text(s.plan.layout),
                              to_string(s.framework), r.calibration.name, r.calibration.constants));
  return text + wrapped("evidence", kLabelWidth, evidence_text(r));
}

std::string jitter_text(const SimulationReport& r) {
  const JitterReport& j = *r.jitter;
  const TimeUnit unit = time_unit_for(j.p50_s);
  const auto time = [&unit](double seconds) { return significant(seconds * unit.per_second, 4); };
  return fmt::format(
      "p50 {} p90 {} p99 {} {}/step, min..max {}..{}, mean {} ({} samples of {} ranks, seed {}, sigma compute {:g}, "
      "communication "
      "{:g})",
      time(j.p50_s), time(j.p90_s), time(j.p99_s), unit.symbol, time(j.min_s), time(j.max_s), time(j.mean_s),
      j.jitter.samples, format_count(r.ranks), j.jitter.seed, j.jitter.compute_sigma, j.jitter.comm_sigma);
}

// "-5.9 %"; what rounds to nothing has no sign.
std::string signed_percent(double fraction) {
  const double rounded = std::round(fraction * 1000) / 10;
  return rounded == 0 ? "0.0 %" : fmt::format("{:+.1f} %", rounded);
}

// Of kinds of time only what takes a large part of the step; the table has the others. Changes that were asked for are
// all told.
std::vector<std::string> changes_of(const SimulationReport& r) {
  std::vector<std::string> parts;
  for (const IfFree& free : r.if_free) {
    const double change = free.step_time_s / r.step_time_s - 1;
    if (change < -kWorthALine) parts.push_back(fmt::format("{} free {}", to_string(free.kind), percent(change)));
  }
  for (const Sensitivity& s : r.sensitivity) {
    const bool breaks = s.verdict == Verdict::kOom && r.memory.verdict != Verdict::kOom;
    parts.push_back(
        fmt::format("{} {}{}", s.change, signed_percent(s.step_time_s / r.step_time_s - 1), breaks ? " (oom)" : ""));
  }
  return parts;
}

// Lines of whole entries.
std::string change_block(const SimulationReport& r) {
  constexpr std::size_t kChangeIndent = 22;
  const std::vector<std::string> parts = changes_of(r);
  if (parts.empty()) return "";
  std::string text;
  std::string line = fmt::format("{:<{}}", "what would change it:", kChangeIndent);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string part = parts[i] + (i + 1 < parts.size() ? "," : "");
    const bool is_first = line.size() <= kChangeIndent;
    if (!is_first && line.size() + 1 + part.size() > kColumns) {
      text += line + "\n";
      line = std::string(kChangeIndent, ' ') + part;
    } else {
      line += (is_first ? "" : " ") + part;
    }
  }
  return text + line + "\n";
}

std::string remedy_text(const Remedy& remedy) {
  if (remedy.verdict == Verdict::kOom) return "no, over by " + memory_text(-remedy.free_bytes);
  return fmt::format("{}, {} free{}", to_string(remedy.verdict), memory_text(remedy.free_bytes),
                     remedy.warnings.empty() ? "" : " (with a warning)");
}

std::string remedy_block(const SimulationReport& r) {
  if (r.remedies.empty()) return "";
  const TimeUnit unit = time_unit_for(r.step_time_s);
  std::string text = fmt::format("{:<46}{:>11}{:>11}   {}\n", "remedies (each simulated)", "device GiB",
                                 fmt::format("{}/step", unit.symbol), "verdict");
  for (const Remedy& remedy : r.remedies) {
    text +=
        fmt::format(" {:<45}{:>11.1f}{:>11}   {}\n", remedy.setting, static_cast<double>(remedy.device_bytes) / 0x1p30,
                    significant(remedy.step_time_s * unit.per_second, 4), remedy_text(remedy));
  }
  return text;
}

std::string notes_block(const SimulationReport& r) {
  std::string text;
  if (r.jitter) text += wrapped("jitter", kLabelWidth, jitter_text(r));
  text += r.memory.verdict == Verdict::kOom ? remedy_block(r) : change_block(r);
  if (r.job) {
    const bool fits = r.memory.verdict != Verdict::kOom;
    text += wrapped("job", kLabelWidth, (fits ? "" : "if it fitted: ") + job_text(*r.job));
  }
  for (const std::string& warning : r.warnings) text += wrapped("warning", kLabelWidth, warning);
  if (r.hfu < r.mfu.full) text += wrapped("note", kLabelWidth, kHfuConvention);
  text += wrapped("not modelled:", 14, joined(r.not_modelled, "; "));
  text += fmt::format("ranks {} in {} class{}, {}{} ops   fingerprint {:016x}\n", format_count(r.ranks), r.rank_classes,
                      r.rank_classes == 1 ? "" : "es",
                      r.link_classes > 0
                          ? fmt::format("shared links in {} class{}, ", r.link_classes, r.link_classes == 1 ? "" : "es")
                          : "",
                      format_count(static_cast<std::int64_t>(r.events)), r.fingerprint);
  if (r.memory.verdict != Verdict::kOom) {
    return text +
           "next: --trace step.pftrace   --sensitivity   sweep SCENARIO --vary plan.tp=1,2   diff A B   explain "
           "bubble\n";
  }
  const bool helps = !r.remedies.empty() && r.remedies.front().verdict != Verdict::kOom;
  return text + wrapped("next:", 6,
                        helps ? "--set " + r.remedies.front().setting
                              : "no single change of recompute, schedule, tp, cp, pp, vp, zero or micro_batch_size "
                                "makes it fit");
}

}  // namespace

std::string simulate_screen(const SimulationReport& r) {
  return verdict_line(r) + speed_line(r) + "\n" + subject_block(r) + "\n" + time_block(r) + "\n" +
         network_and_memory_block(r) + "\n" + notes_block(r);
}

}  // namespace stepcast::report
