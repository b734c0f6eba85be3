// Columns are as wide as their largest usual values; a note that does not fit goes on in the next line.
#include "report/simulate_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "report/cluster_text.h"
#include "report/text.h"

namespace stepcast::report {
namespace {

constexpr std::size_t kNoteColumn = 82;
constexpr std::size_t kMemoryColumn = 57;
constexpr std::size_t kAllStages = 6;  // at most so many are shown one by one

constexpr double kWorthNaming = 1e-3;  // of what a tier carries

using Of = std::function<double(const TimeShares&)>;

// In the table's unit, with as many decimals as keep columns narrow.
std::string time_text(const SimulationReport& r, double seconds) {
  const double per_second = time_unit_for(r.step_time_s).per_second;
  const double step = r.step_time_s * per_second;
  return fmt::format("{:.{}f}", seconds * per_second, step < 100 ? 3 : step < 1000 ? 2 : 1);
}

// What is saved if `kind` were free, or "-" where it was not simulated.
std::string saved_text(const SimulationReport& r, sim::Free kind) {
  const auto found =
      std::find_if(r.if_free.begin(), r.if_free.end(), [kind](const IfFree& free) { return free.kind == kind; });
  if (found == r.if_free.end()) return "-";
  const double change = found->step_time_s - r.step_time_s;
  std::string size = time_text(r, std::fabs(change));
  if (size.find_first_not_of("0.") == std::string::npos) return size;
  return (change < 0 ? "-" : "+") + size;
}

std::string range_text(const SimulationReport& r, const Of& of) {
  if (r.stages.size() < 2) return "";
  const auto less = [&](const StageReport& a, const StageReport& b) { return of(a.time) < of(b.time); };
  const auto [low, high] = std::minmax_element(r.stages.begin(), r.stages.end(), less);
  return fmt::format("{} (s{})..{} (s{})", time_text(r, of(low->time)), low->stage, time_text(r, of(high->time)),
                     high->stage);
}

std::string row(std::string_view name, std::string_view time, std::string_view share, std::string_view saved,
                std::string_view range, std::string_view note) {
  std::string text = fmt::format("{:<20}{:>10}{:>7}{:>15}  {:<28}", name, time, share, saved, range);
  if (!note.empty()) return wrapped(text, kNoteColumn, note);
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string time_row(const SimulationReport& r, std::string_view name, const Of& of, sim::Free free,
                     std::string_view note) {
  const double seconds = of(r.time);
  return row(name, time_text(r, seconds), fmt::format("{:.1f}", seconds / r.step_time_s * 100), saved_text(r, free),
             range_text(r, of), note);
}

bool is_in_use(const SimulationReport& r, sim::Free kind) {
  return std::find(r.kinds_in_use.begin(), r.kinds_in_use.end(), kind) != r.kinds_in_use.end();
}

// Part of compute, hence in brackets and without a share.
std::string slowed_row(const SimulationReport& r) {
  if (!is_in_use(r, sim::Free::kSlowdown)) return "";
  std::string note;
  if (r.held_multiprocessors > 0) {
    note = fmt::format("communication holds <= {:.0f} of {} SMs", r.held_multiprocessors,
                       r.scenario.cluster.node.device.multiprocessors);
  }
  return row("  slowed by overlap", "(" + time_text(r, r.time.slowed_s) + ")", "", saved_text(r, sim::Free::kSlowdown),
             range_text(r, [](const TimeShares& t) { return t.slowed_s; }), note);
}

std::string hidden_note(const SimulationReport& r, std::size_t kind) {
  const double moving = r.moving_s[kind];
  if (moving <= 0) return "";
  const TimeUnit unit = time_unit_for(moving);
  const bool more = r.time.exposed_s[kind] > moving * (1 + 1e-9);
  return fmt::format("{:.0f} % of {} {} hidden{}", std::max(0.0, 1 - r.time.exposed_s[kind] / moving) * 100,
                     significant(moving * unit.per_second, 3), unit.symbol, more ? "; kernels of its stream too" : "");
}

std::string exposed_rows(const SimulationReport& r) {
  std::string text;
  for (std::size_t k = 0; k < r.time.exposed_s.size(); ++k) {
    const auto free = static_cast<sim::Free>(static_cast<std::size_t>(sim::Free::kTp) + k);
    if (!is_in_use(r, free)) continue;
    text += time_row(
        r, fmt::format(" exposed {}", to_string(static_cast<sim::Exposed>(k))),
        [k](const TimeShares& t) { return t.exposed_s[k]; }, free, hidden_note(r, k));
  }
  return text;
}

std::string bubble_note(const SimulationReport& r) {
  const plan::Plan& p = r.scenario.plan;
  const double work = r.step_time_s - r.time.bubble_s;
  std::string note = fmt::format("{} of work", percent(work > 0 ? r.time.bubble_s / work : 0));
  if (p.pp > 1) {
    note += fmt::format(
        "; ({}-1)/({}*{}) = {}", p.pp, p.vp, r.microbatches,
        percent(static_cast<double>(p.pp - 1) / (static_cast<double>(p.vp) * static_cast<double>(r.microbatches))));
  }
  return note;
}

struct TrafficUnit {
  std::string_view symbol;
  double bytes = 1;
};

TrafficUnit traffic_unit(const SimulationReport& r) {
  double most = 0;
  for (const TierReport& tier : r.network) most = std::max(most, tier.bytes);
  if (most >= 1e9) return {"GB", 1e9};
  if (most >= 1e6) return {"MB", 1e6};
  return {"kB", 1e3};
}

// Cut into pieces of at most `width` columns at the ends of "dp 17.9". What would not show beside the others is left
// out.
std::vector<std::string> carries_text(const TierReport& tier, const TrafficUnit& unit, std::size_t width) {
  std::vector<std::string> lines = {""};
  for (const auto& [group, bytes] : tier.carries) {
    if (bytes < kWorthNaming * tier.bytes) continue;
    const std::string part = fmt::format("{} {}", group, significant(bytes / unit.bytes, 3));
    if (!lines.back().empty() && lines.back().size() + 1 + part.size() > width) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + part;
  }
  return lines;
}

std::vector<std::string> network_lines(const SimulationReport& r) {
  std::vector<std::string> lines;
  if (r.network.empty()) return lines;
  const TrafficUnit unit = traffic_unit(r);
  lines.push_back(fmt::format("network (per GPU){:>4}/step  mean  peak  carries", unit.symbol));
  for (const TierReport& tier : r.network) {
    std::string label =
        fmt::format(" {:<15}{:>10}{:>6}{:>6}  ", tier_text(tier.tier, r.scenario.cluster.fabric),
                    significant(tier.bytes / unit.bytes, 3), fmt::format("{:.0f} %", tier.mean_utilisation * 100),
                    fmt::format("{:.0f} %", tier.peak_utilisation * 100));
    for (const std::string& carries : carries_text(tier, unit, kMemoryColumn - label.size() - 1)) {
      lines.push_back(label + carries);
      label.assign(label.size(), ' ');
    }
  }
  return lines;
}

// Positions of the stages that are shown, ascending.
std::set<std::size_t> shown_stages(const SimulationReport& r) {
  std::set<std::size_t> shown;
  for (std::size_t i = 0; i < r.stages.size(); ++i) {
    if (r.stages.size() <= kAllStages) shown.insert(i);
  }
  if (shown.empty()) {
    shown = {0, r.stages.size() / 2, r.stages.size() - 1, static_cast<std::size_t>(r.memory.peak_stage)};
  }
  return shown;
}

std::string amount(double value) { return fmt::format("{:.{}f}", value, value < 100 ? 2 : value < 1000 ? 1 : 0); }

std::vector<std::string> memory_lines(const SimulationReport& r) {
  const bool small = r.memory.allocated_bytes < (std::int64_t{1} << 30);
  const auto text = [small](std::int64_t bytes) {
    return amount(static_cast<double>(bytes) / (small ? 0x1p20 : 0x1p30));
  };
  std::vector<std::string> lines = {fmt::format("memory {:<3}{:>8}{:>7}{:>7}{:>8}{:>7}{:>8}", small ? "MiB" : "GiB",
                                                "weights", "grads", "optim", "activ", "comm", "total")};
  const std::set<std::size_t> shown = shown_stages(r);
  for (const std::size_t i : shown) {
    const StageReport& stage = r.stages.at(i);
    const auto& b = stage.at_peak;
    lines.push_back(fmt::format("stage {:<4}{:>8}{:>7}{:>7}{:>8}{:>7}{:>8}{}", stage.stage, text(b[0]), text(b[1]),
                                text(b[2]), text(b[3]), text(b[4]), text(stage.allocated_bytes),
                                stage.stage == r.memory.peak_stage ? " <- peak" : ""));
  }
  if (shown.size() < r.stages.size()) {
    lines.push_back(fmt::format("and {} other stages: --json", r.stages.size() - shown.size()));
  }
  return lines;
}

std::string side_by_side(const std::vector<std::string>& left, const std::vector<std::string>& right) {
  std::string text;
  for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    std::string line = i < left.size() ? left[i] : "";
    if (i < right.size()) {
      if (!left.empty()) line.resize(std::max(kMemoryColumn, line.size()), ' ');
      line += right[i];
    }
    text += line + "\n";
  }
  return text;
}

// Why a buffer of gradients stands beside their sum: plan/parameter_store.h, plan/projection_segments.cc.
std::string_view reason_of(std::string_view family) {
  struct Reason {
    std::string_view prefix, text;
  };
  constexpr Reason kReasons[] = {
      {"unsharded_gradients", "whole, until the step's reduction"},
      {"gradient_ring", "of the units that are being reduced, whole"},
      {"bucket", "of buckets that are not reduced yet, whole"},
      {"main_gradients", "their fp32 copies, which the optimizer reads"},
      {"placeholder", "Transformer Engine's placeholders, never written"},
  };
  for (const Reason& reason : kReasons) {
    if (family.substr(0, reason.prefix.size()) == reason.prefix) return reason.text;
  }
  return "of one matmul, not added yet";
}

// What of the column "grads" is not their sum, where that is more than a hundredth of all.
std::string gradients_line(const MemoryReport& m) {
  std::vector<std::string> parts;
  for (const TensorFamily& t : m.other_gradients) {
    if (t.bytes > m.allocated_bytes / 100) {
      parts.push_back(fmt::format("{} {} ({})", t.name, memory_text(t.bytes), reason_of(t.name)));
    }
  }
  return parts.empty() ? ""
                       : wrapped("grads", kLabelWidth, "beside the sum of all microbatches: " + joined(parts, ", "));
}

// Nothing where the device holds tensors alone.
std::string device_line(const MemoryReport& m) {
  if (m.device_bytes == m.allocated_bytes) return "";
  std::string parts = fmt::format(
      "~{} of {}: allocated {}, fragmentation {} ({}), context {}, workspaces {}", memory_text(m.device_bytes),
      memory_text(m.capacity_bytes), memory_text(m.allocated_bytes), memory_text(m.reserved_bytes - m.allocated_bytes),
      percent(m.fragmentation), memory_text(m.context_bytes), memory_text(m.workspace_bytes));
  if (m.user_buffer_bytes > 0) parts += ", user buffers " + memory_text(m.user_buffer_bytes);
  return wrapped("device", kLabelWidth, parts + ", NCCL buffers " + memory_text(m.communicator_bytes));
}

}  // namespace

std::string time_block(const SimulationReport& r) {
  const TimeUnit unit = time_unit_for(r.step_time_s);
  std::string text = row("time", unit.symbol, "%", "saved if free", "stage min..max", "note");
  text += time_row(
      r, " compute", [](const TimeShares& t) { return t.compute_s; }, sim::Free::kNothing,
      fmt::format("HFU {} (causal, flash bwd 2.5x)", percent(r.hfu)));
  text += slowed_row(r);
  text += time_row(
      r, " optimizer", [](const TimeShares& t) { return t.optimizer_s; }, sim::Free::kOptimizer, "");
  text += exposed_rows(r);
  text += time_row(
      r, " bubble", [](const TimeShares& t) { return t.bubble_s; }, sim::Free::kNothing, bubble_note(r));
  text += time_row(
      r, " host", [](const TimeShares& t) { return t.host_s; }, sim::Free::kHost, "");
  return text + row(" step", time_text(r, r.step_time_s), "100.0", "", "", "");
}

std::string network_and_memory_block(const SimulationReport& r) {
  std::vector<std::string> tensors;
  for (const TensorFamily& t : r.memory.top_tensors) {
    if (tensors.size() == 4) break;
    tensors.push_back(fmt::format("{} x{} {}", t.name, t.count, memory_text(t.bytes)));
  }
  return side_by_side(network_lines(r), memory_lines(r)) +
         wrapped("at peak", kLabelWidth, r.memory.peak_path + ":  " + joined(tensors, ",  ")) +
         gradients_line(r.memory) + device_line(r.memory);
}

}  // namespace stepcast::report
