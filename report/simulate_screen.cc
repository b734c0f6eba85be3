// The screen of `simulate`: verdict, what was simulated, where the time goes, memory by stage, what is not known.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/quantity.h"
#include "plan/layout.h"
#include "plan/rules.h"
#include "report/resolved_plan.h"
#include "report/simulate_output.h"
#include "report/text.h"

namespace stepcast::report {
namespace {

constexpr std::size_t kIndent = 9;

double gib(std::int64_t bytes) { return static_cast<double>(bytes) / 0x1p30; }

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

std::string verdict_line(const SimulationReport& r) {
  const std::int64_t left = r.memory.capacity_bytes - r.memory.allocated_bytes;
  if (r.memory.verdict == Verdict::kOom) {
    const StageReport& stage = r.stages.at(static_cast<std::size_t>(r.memory.peak_stage));
    const auto largest = std::max_element(stage.at_peak.begin(), stage.at_peak.end());
    const auto largest_class = static_cast<program::MemoryClass>(largest - stage.at_peak.begin());
    return fmt::format("OOM  stage {} needs {} allocated of {}: over by {}; {} {}\n", stage.stage,
                       memory_text(r.memory.allocated_bytes), memory_text(r.memory.capacity_bytes), memory_text(-left),
                       program::to_string(largest_class), memory_text(*largest));
  }
  const TimeUnit unit = time_unit_for(r.step_time_s);
  return fmt::format("{}  {} {}/step (uncalibrated)  {} tok/s/GPU  {}/GPU  MFU {} full / {} causal  {} ({} free)\n",
                     r.memory.verdict == Verdict::kTight ? "TIGHT" : "OK",
                     significant(r.step_time_s * unit.per_second, 4), unit.symbol,
                     format_count(static_cast<std::int64_t>(r.tokens_per_s_per_gpu + 0.5)),
                     rate_text(r.model_tflops_per_gpu.full, 3), percent(r.mfu.full), percent(r.mfu.causal),
                     to_string(r.memory.verdict), memory_text(left));
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

std::string evidence_text(const SimulationReport& r) {
  std::string text =
      "uncalibrated: constants are vendor peaks, stated efficiencies and fits to published kernel tables; no training "
      "step was fitted, so no band is given.";
  if (!r.nearest_published) return text + " No published run of this model on this device is known.";
  const PublishedRun& run = *r.nearest_published;
  return text + fmt::format(
                    " Nearest published: {} s/step, {} on {} x {}, TP{} CP{} PP{} DP{}, {}, GBS {} x {} ({}: {}); its "
                    "plan is not this one, so the difference is no error figure.",
                    significant(run.step_time_s, 4), run.model, run.gpus, run.gpu, run.tp, run.cp, run.pp, run.dp,
                    run.precision, run.global_batch_size, format_count(run.sequence_length), run.id, run.source);
}

std::string subject_block(const SimulationReport& r) {
  const plan::Scenario& s = r.scenario;
  const topology::NodeSpec& node = s.cluster.node;
  std::string text =
      wrapped("model", kIndent,
              fmt::format("{}  {} params  {}FLOP/token full, {}FLOP causal  peak {} dense {}", s.model.name,
                          scaled_count(static_cast<double>(r.parameters), "B"),
                          scaled_count(r.flops_per_token.full, "G"), scaled_count(r.flops_per_token.causal, "G"),
                          rate_text(r.peak_tflops, 4), program::to_string(s.training.compute)));
  text += wrapped("cluster", kIndent,
                  fmt::format("{} x {}: {} x {} a node, {} scale-up per device and direction; {} used", s.cluster.nodes,
                              node.name, node.devices, node.device.name,
                              format_quantity(node.scale_up.bandwidth.value, Dimension::kByteRate), s.gpus));
  text += wrapped("plan", kIndent, plan_text(s));
  text += wrapped("layout", kIndent,
                  fmt::format("{}   framework {}   calibration {} ({} constants)", plan::layout_text(s.plan.layout),
                              to_string(s.framework), r.calibration.name, r.calibration.constants));
  return text + wrapped("evidence", kIndent, evidence_text(r));
}

// One line of the time table: mean, share, and the range of the stages' means.
std::string time_row(const SimulationReport& r, std::string_view name,
                     const std::function<double(const TimeShares&)>& of, std::string_view note) {
  const TimeUnit unit = time_unit_for(r.step_time_s);
  const auto less = [&](const StageReport& a, const StageReport& b) { return of(a.time) < of(b.time); };
  const auto [low, high] = std::minmax_element(r.stages.begin(), r.stages.end(), less);
  std::string range;
  if (r.stages.size() > 1) {
    range = fmt::format("{:.3f} (s{})..{:.3f} (s{})", of(low->time) * unit.per_second, low->stage,
                        of(high->time) * unit.per_second, high->stage);
  }
  std::string row = fmt::format(" {:<16}{:>10.3f}{:>9.1f}    {:<30}{}", name, of(r.time) * unit.per_second,
                                of(r.time) / r.step_time_s * 100, range, note);
  row.erase(row.find_last_not_of(' ') + 1);
  return row + "\n";
}

std::string bubble_note(const SimulationReport& r) {
  const plan::Plan& p = r.scenario.plan;
  const double work = r.step_time_s - r.time.bubble_s;
  std::string note = fmt::format("{} of work", percent(work > 0 ? r.time.bubble_s / work : 0));
  if (p.pp > 1) {
    note += fmt::format(
        "; ideal ({}-1)/({}*{}) = {}", p.pp, p.vp, r.microbatches,
        percent(static_cast<double>(p.pp - 1) / (static_cast<double>(p.vp) * static_cast<double>(r.microbatches))));
  }
  return note;
}

std::string time_block(const SimulationReport& r) {
  const TimeUnit unit = time_unit_for(r.step_time_s);
  std::string text = fmt::format("time             {:>10}{:>9}    {:<30}note\n", unit.symbol, "%", "stage min..max");
  text += time_row(
      r, "compute", [](const TimeShares& t) { return t.compute_s; },
      fmt::format("HFU (causal, flash backward 2.5x) {}", percent(r.hfu)));
  text += time_row(
      r, "optimizer", [](const TimeShares& t) { return t.optimizer_s; }, "");
  for (std::size_t k = 0; k < r.time.exposed_s.size(); ++k) {
    if (r.time.exposed_s[k] == 0) continue;
    text += time_row(
        r, fmt::format("exposed {}", to_string(static_cast<sim::Exposed>(k))),
        [k](const TimeShares& t) { return t.exposed_s[k]; }, "");
  }
  text += time_row(
      r, "bubble", [](const TimeShares& t) { return t.bubble_s; }, bubble_note(r));
  text += time_row(
      r, "host", [](const TimeShares& t) { return t.host_s; }, "");
  return text + fmt::format(" {:<16}{:>10.3f}{:>9.1f}\n", "step", r.step_time_s * unit.per_second, 100.0);
}

std::string memory_block(const SimulationReport& r) {
  const bool small = r.memory.allocated_bytes < (std::int64_t{1} << 30);
  const double scale = small ? 1024.0 : 1.0;
  std::string text = fmt::format("memory {:<9}{:>10}{:>11}{:>11}{:>13}{:>9}{:>11}\n", small ? "MiB" : "GiB", "weights",
                                 "gradients", "optimizer", "activations", "comm", "total");
  for (const StageReport& stage : r.stages) {
    const auto& b = stage.at_peak;
    text += fmt::format(" stage {:<9}{:>10.2f}{:>11.2f}{:>11.2f}{:>13.2f}{:>9.2f}{:>11.2f}{}\n", stage.stage,
                        gib(b[0]) * scale, gib(b[1]) * scale, gib(b[2]) * scale, gib(b[3]) * scale, gib(b[4]) * scale,
                        gib(stage.allocated_bytes) * scale, stage.stage == r.memory.peak_stage ? " <- peak" : "");
  }
  std::vector<std::string> tensors;
  for (const TensorFamily& t : r.memory.top_tensors) {
    if (tensors.size() == 4) break;
    tensors.push_back(fmt::format("{} x{} {}", t.name, t.count, memory_text(t.bytes)));
  }
  return text + wrapped(" at peak", kIndent + 1, r.memory.peak_path + ":  " + joined(tensors, ",  "));
}

std::string notes_block(const SimulationReport& r) {
  std::string text;
  for (const std::string& warning : r.warnings) text += wrapped("warning", kIndent, warning);
  if (r.hfu < r.mfu.full) text += wrapped("note", kIndent, kHfuConvention);
  text += wrapped("not modelled:", 14, joined(r.not_modelled, "; "));
  text +=
      fmt::format("ranks {} in {} class{}, {} ops   fingerprint {:016x}\n", format_count(r.ranks), r.rank_classes,
                  r.rank_classes == 1 ? "" : "es", format_count(static_cast<std::int64_t>(r.events)), r.fingerprint);
  if (r.memory.verdict != Verdict::kOom) {
    return text + "next: --trace step.pftrace   --json   check SCENARIO --show-config\n";
  }
  std::string next;
  for (const std::string& setting : r.remedies) next += (next.empty() ? "--set " : "  or  --set ") + setting;
  if (next.empty()) next = "no single change of recompute, schedule, tp, pp, zero or micro_batch_size makes it fit";
  return text + wrapped("next:", 6, next);
}

}  // namespace

std::string simulate_screen(const SimulationReport& r) {
  return verdict_line(r) + speed_line(r) + "\n" + subject_block(r) + "\n" + time_block(r) + "\n" + memory_block(r) +
         "\n" + notes_block(r);
}

}  // namespace stepcast::report
