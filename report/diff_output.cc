// A diff as a screen and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/quantity.h"
#include "report/diff_report.h"
#include "report/json.h"
#include "report/text.h"

namespace stepcast::report {
namespace {

constexpr std::size_t kValueWidth = 30;

std::string cut(const std::string& text) {
  if (text.empty()) return "-";
  return text.size() <= kValueWidth ? text : text.substr(0, kValueWidth - 3) + "...";
}

std::string row(std::string_view name, std::string_view a, std::string_view b, std::string_view change) {
  std::string text = fmt::format(" {:<27}{:>16}{:>16}{:>16}", name, a, b, change);
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string relative(double a, double b) { return a == 0 ? "" : fmt::format("{:+.1f} %", (b / a - 1) * 100); }

std::string count_row(std::string_view name, double a, double b) {
  const auto text = [](double value) { return format_count(std::llround(value)); };
  return row(name, text(a), text(b), a == b ? "" : relative(a, b));
}

// A share and by how many points of it B differs.
std::string share_row(std::string_view name, double a, double b) {
  return row(name, percent(a), percent(b), fmt::format("{:+.1f} points", (b - a) * 100));
}

std::string tflops_text(double tflops) { return fmt::format("{:.1f}", tflops); }

// "1979 fp8"
std::string peak_text(const SimulationReport& r) {
  return significant(r.peak_tflops, 4) + " " + std::string(precision_of(r.scenario));
}

TimeUnit unit_of(const DiffReport& d) {
  return time_unit_for(static_cast<double>(std::max(d.step_a_ps, d.step_b_ps)) * 1e-12);
}

std::string time_text(std::int64_t ps, const TimeUnit& unit) {
  return significant(static_cast<double>(ps) * 1e-12 * unit.per_second, 4);
}

std::string change_text(std::int64_t ps, const TimeUnit& unit) {
  return fmt::format("{:+.3f}", static_cast<double>(ps) * 1e-12 * unit.per_second);
}

// Who does not fit, where one does not.
std::string fit_text(const DiffReport& d) {
  const bool a = d.a.report.memory.verdict != Verdict::kOom;
  const bool b = d.b.report.memory.verdict != Verdict::kOom;
  if (a && b) return "";
  return a   ? "OOM  B does not fit; if it did: "
         : b ? "OOM  A does not fit, B does; if A did: "
             : "OOM  neither fits; if they did: ";
}

// The parts that make up most of the difference, the largest first.
std::string verdict_text(const DiffReport& d) {
  const TimeUnit unit = unit_of(d);
  const std::int64_t change = d.step_b_ps - d.step_a_ps;
  if (change == 0) return fmt::format("SAME  {} {}/step", time_text(d.step_a_ps, unit), unit.symbol);
  std::vector<DiffPart> parts = d.waterfall;
  std::stable_sort(parts.begin(), parts.end(), [](const DiffPart& x, const DiffPart& y) {
    return std::abs(x.change_ps()) > std::abs(y.change_ps());
  });
  parts.resize(std::min<std::size_t>(parts.size(), 3));
  std::vector<std::string> words;
  for (const DiffPart& part : parts) words.push_back(part.part + " " + change_text(part.change_ps(), unit));
  const std::string fit = fit_text(d);
  return fmt::format("{}B takes {:.1f} % {} a step: {} -> {} {} ({}): {}",
                     !fit.empty() ? fit
                     : change > 0 ? "SLOWER  "
                                  : "FASTER  ",
                     std::fabs(static_cast<double>(change)) / static_cast<double>(d.step_a_ps) * 100,
                     change > 0 ? "longer for" : "less for", time_text(d.step_a_ps, unit), time_text(d.step_b_ps, unit),
                     unit.symbol, change_text(change, unit), joined(words, ", "));
}

std::string fields_block(const DiffReport& d) {
  if (d.fields.empty()) return "what differs  nothing in the configuration\n";
  std::size_t width = 28;
  for (const DiffField& f : d.fields) width = std::max(width, f.field.size() + 1);
  const std::size_t used = width + 2 * (kValueWidth + 2) + 2;
  const std::size_t room = used < kColumns ? kColumns - used : 0;
  std::string text = fmt::format("{:<{}}  {:<{}}  {:<{}}  {}\n", "what differs", width, "A", kValueWidth, "B",
                                 kValueWidth, "set by (B)");
  for (const DiffField& f : d.fields) {
    std::string line = fmt::format("{:<{}}  {:<{}}  {:<{}}  {}", " " + f.field, width, cut(f.a), kValueWidth, cut(f.b),
                                   kValueWidth, f.origin_b.substr(0, room));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string result_block(const DiffReport& d) {
  const SimulationReport& a = d.a.report;
  const SimulationReport& b = d.b.report;
  const TimeUnit unit = unit_of(d);
  std::string text = fmt::format("{:<28}{:>16}{:>16}{:>16}\n", "result", "A", "B", "change");
  text += row(fmt::format("{}/step", unit.symbol), time_text(d.step_a_ps, unit), time_text(d.step_b_ps, unit),
              relative(a.step_time_s, b.step_time_s));
  text += count_row("tok/s/GPU", a.tokens_per_s_per_gpu, b.tokens_per_s_per_gpu);
  text +=
      row("model TFLOP/s/GPU full", tflops_text(a.model_tflops_per_gpu.full), tflops_text(b.model_tflops_per_gpu.full),
          relative(a.model_tflops_per_gpu.full, b.model_tflops_per_gpu.full));
  if (a.peak_tflops != b.peak_tflops) {
    text += row("  of a peak of (MFU)", peak_text(a), peak_text(b), relative(a.peak_tflops, b.peak_tflops));
  }
  text += share_row("MFU full", a.mfu.full, b.mfu.full);
  text += share_row("MFU causal", a.mfu.causal, b.mfu.causal);
  text += share_row("HFU", a.hfu, b.hfu);
  text += share_row("bubble of step", a.bubble_fraction, b.bubble_fraction);
  text += count_row("GPUs", static_cast<double>(a.scenario.gpus), static_cast<double>(b.scenario.gpus));
  text += count_row("tokens of a step", static_cast<double>(a.tokens), static_cast<double>(b.tokens));
  text += count_row("microbatches", static_cast<double>(a.microbatches), static_cast<double>(b.microbatches));
  return text + row("memory", to_string(a.memory.verdict), to_string(b.memory.verdict), "");
}

// With as many decimals as the changes beside it.
std::string column_text(std::int64_t ps, const TimeUnit& unit) {
  return fmt::format("{:.3f}", static_cast<double>(ps) * 1e-12 * unit.per_second);
}

std::string waterfall_block(const DiffReport& d) {
  const TimeUnit unit = unit_of(d);
  std::string text = fmt::format("{:<28}{:>16}{:>16}{:>16}   {}\n", fmt::format("why ({})", unit.symbol), "A", "B",
                                 "B - A", "adds up to");
  std::int64_t sum = 0;
  for (const DiffPart& part : d.waterfall) {
    sum += part.change_ps();
    std::string line =
        row(part.part, column_text(part.a_ps, unit), column_text(part.b_ps, unit), change_text(part.change_ps(), unit));
    line.back() = ' ';
    text += line + fmt::format("{:>12}\n", change_text(sum, unit));
  }
  return text + row("step", column_text(d.step_a_ps, unit), column_text(d.step_b_ps, unit),
                    change_text(d.step_b_ps - d.step_a_ps, unit));
}

std::string memory_block(const DiffReport& d) {
  const auto text_of = [](std::int64_t bytes) { return fmt::format("{:.2f}", static_cast<double>(bytes) / 0x1p30); };
  const auto change = [](std::int64_t a, std::int64_t b) {
    return fmt::format("{:+.2f}", static_cast<double>(b - a) / 0x1p30);
  };
  std::string text = fmt::format("{:<28}{:>16}{:>16}{:>16}\n", "memory at the peak (GiB)",
                                 fmt::format("A stage {}", d.a.report.memory.peak_stage),
                                 fmt::format("B stage {}", d.b.report.memory.peak_stage), "change");
  for (const DiffMemory& m : d.memory) {
    text += row(m.memory_class, text_of(m.a_bytes), text_of(m.b_bytes), change(m.a_bytes, m.b_bytes));
  }
  const std::int64_t a = d.a.report.memory.allocated_bytes;
  const std::int64_t b = d.b.report.memory.allocated_bytes;
  const std::int64_t device_a = d.a.report.memory.device_bytes;
  const std::int64_t device_b = d.b.report.memory.device_bytes;
  return text + row("allocated", text_of(a), text_of(b), change(a, b)) +
         row("device", text_of(device_a), text_of(device_b), change(device_a, device_b)) +
         row("of", text_of(d.a.report.memory.capacity_bytes), text_of(d.b.report.memory.capacity_bytes), "");
}

std::string tier_cell(const std::optional<TierReport>& tier) {
  if (!tier) return "-";
  return fmt::format("{} {:>3.0f} %", significant(tier->bytes * 1e-9, 3), tier->mean_utilisation * 100);
}

std::string network_block(const DiffReport& d) {
  if (d.network.empty()) return "";
  std::string text = fmt::format("\n{:<28}{:>16}{:>16}{:>16}\n", "network GB/GPU/step, mean", "A", "B", "change");
  for (const DiffTier& t : d.network) {
    const bool both = t.a && t.b;
    text += row(t.tier, tier_cell(t.a), tier_cell(t.b), both ? relative(t.a->bytes, t.b->bytes) : "");
  }
  return text;
}

Json side_json(const DiffSide& side) {
  const SimulationReport& r = side.report;
  return {{"subject", side.subject},
          {"scenario", r.scenario.name},
          {"gpus", r.scenario.gpus},
          {"step_time_s", r.step_time_s},
          {"tokens_per_s", r.tokens_per_s},
          {"tokens_per_s_per_gpu", r.tokens_per_s_per_gpu},
          {"model_tflops_per_gpu", {{"full", r.model_tflops_per_gpu.full}, {"causal", r.model_tflops_per_gpu.causal}}},
          {"peak_tflops", r.peak_tflops},
          {"mfu", {{"full", r.mfu.full}, {"causal", r.mfu.causal}}},
          {"hfu", r.hfu},
          {"bubble_fraction", r.bubble_fraction},
          {"microbatches", r.microbatches},
          {"allocated_bytes", r.memory.allocated_bytes},
          {"device_bytes", r.memory.device_bytes},
          {"capacity_bytes", r.memory.capacity_bytes},
          {"verdict", to_string(r.memory.verdict)},
          {"peak_stage", r.memory.peak_stage},
          {"calibration", r.calibration.name},
          {"warnings", r.warnings},
          {"fingerprint", hex(r.fingerprint)}};
}

Json tier_json(const std::optional<TierReport>& tier) {
  if (!tier) return nullptr;
  return {{"bytes", tier->bytes},
          {"mean_utilisation", tier->mean_utilisation},
          {"peak_utilisation", tier->peak_utilisation}};
}

}  // namespace

std::string diff_screen(const DiffReport& d) {
  return wrapped("", 0, verdict_text(d)) + fmt::format("A  {}\nB  {}\n\n", d.a.subject, d.b.subject) + fields_block(d) +
         "\n" + result_block(d) + "\n" + waterfall_block(d) + "\n" + memory_block(d) + network_block(d);
}

std::string diff_json(const DiffReport& d) {
  Json fields = Json::array();
  for (const DiffField& f : d.fields) {
    fields.push_back({{"field", f.field}, {"a", f.a}, {"b", f.b}, {"origin_a", f.origin_a}, {"origin_b", f.origin_b}});
  }
  Json waterfall = Json::array();
  for (const DiffPart& p : d.waterfall) {
    waterfall.push_back({{"part", p.part}, {"a_ps", p.a_ps}, {"b_ps", p.b_ps}, {"change_ps", p.change_ps()}});
  }
  Json memory = Json::array();
  for (const DiffMemory& m : d.memory) {
    memory.push_back({{"class", m.memory_class},
                      {"a_bytes", m.a_bytes},
                      {"b_bytes", m.b_bytes},
                      {"change_bytes", m.b_bytes - m.a_bytes}});
  }
  Json network = Json::array();
  for (const DiffTier& t : d.network) {
    network.push_back({{"tier", t.tier}, {"a", tier_json(t.a)}, {"b", tier_json(t.b)}});
  }
  return to_text(Json{{"schema", "stepcast/diff/1"},
                      {"a", side_json(d.a)},
                      {"b", side_json(d.b)},
                      {"config", fields},
                      {"step_a_ps", d.step_a_ps},
                      {"step_b_ps", d.step_b_ps},
                      {"change_ps", d.step_b_ps - d.step_a_ps},
                      {"waterfall", waterfall},
                      {"memory", memory},
                      {"network", network}});
}

}  // namespace stepcast::report
