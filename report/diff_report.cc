#include "report/diff_report.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace stepcast::report {
namespace {

__extension__ using Wide = __int128;

constexpr std::size_t kParts = 4 + sim::kExposedCount;

// A part of `t` by its row in the waterfall.
Duration& part_of(sim::TimeParts& t, std::size_t row) {
  if (row == 0) return t.compute;
  if (row == 1) return t.optimizer;
  if (row < 2 + sim::kExposedCount) return t.exposed[row - 2];
  return row == kParts - 2 ? t.bubble : t.host;
}

std::string part_name(std::size_t row) {
  if (row == 0) return "compute";
  if (row == 1) return "optimizer";
  if (row < 2 + sim::kExposedCount) return "exposed " + std::string(to_string(static_cast<sim::Exposed>(row - 2)));
  return row == kParts - 2 ? "bubble" : "host";
}

// Whole quotients of `sums` by `ranks` whose sum is that of the sums, which `ranks` divides.
std::array<std::int64_t, kParts> whole_means(const std::array<Wide, kParts>& sums, std::int64_t ranks) {
  std::array<std::int64_t, kParts> means{};
  std::array<std::int64_t, kParts> rest{};
  for (std::size_t i = 0; i < kParts; ++i) {
    means[i] = static_cast<std::int64_t>(sums[i] / ranks);
    rest[i] = static_cast<std::int64_t>(sums[i] % ranks);
  }
  const std::int64_t all = std::accumulate(rest.begin(), rest.end(), std::int64_t{0});
  CHECK(all % ranks == 0, all, ranks);
  std::array<std::size_t, kParts> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&rest](std::size_t i, std::size_t j) { return rest[i] > rest[j]; });
  for (std::size_t i = 0; i < static_cast<std::size_t>(all / ranks); ++i) ++means[order[i]];
  return means;
}

std::vector<DiffField> fields_of(const std::vector<plan::ConfigValue>& a, const std::vector<plan::ConfigValue>& b) {
  const auto find = [](const std::vector<plan::ConfigValue>& values, const std::string& field) {
    return std::find_if(values.begin(), values.end(),
                        [&field](const plan::ConfigValue& v) { return v.field == field; });
  };
  std::vector<DiffField> fields;
  for (const plan::ConfigValue& v : a) {
    const auto other = find(b, v.field);
    if (v.field == "name" || (other != b.end() && other->value == v.value)) continue;
    if (other == b.end()) {
      fields.push_back({v.field, v.value, "", v.origin, ""});
    } else {
      fields.push_back({v.field, v.value, other->value, v.origin, other->origin});
    }
  }
  for (const plan::ConfigValue& v : b) {
    if (v.field != "name" && find(a, v.field) == a.end()) fields.push_back({v.field, "", v.value, "", v.origin});
  }
  return fields;
}

std::vector<DiffPart> waterfall_of(DiffSide& a, DiffSide& b) {
  std::vector<DiffPart> rows;
  for (std::size_t row = 0; row < kParts; ++row) {
    const DiffPart part{part_name(row), part_of(a.parts, row).ps, part_of(b.parts, row).ps};
    if (part.a_ps != 0 || part.b_ps != 0) rows.push_back(part);
  }
  return rows;
}

const program::ClassBytes& at_peak(const SimulationReport& r) {
  return r.stages.at(static_cast<std::size_t>(r.memory.peak_stage)).at_peak;
}

std::vector<DiffMemory> memory_of(const SimulationReport& a, const SimulationReport& b) {
  std::vector<DiffMemory> rows;
  for (std::size_t c = 0; c < at_peak(a).size(); ++c) {
    rows.push_back(
        {std::string(program::to_string(static_cast<program::MemoryClass>(c))), at_peak(a)[c], at_peak(b)[c]});
  }
  return rows;
}

std::vector<DiffTier> network_of(const SimulationReport& a, const SimulationReport& b) {
  std::vector<DiffTier> rows;
  for (const TierReport& tier : a.network) rows.push_back({tier.tier, tier, {}});
  for (const TierReport& tier : b.network) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const DiffTier& r) { return r.tier == tier.tier; });
    if (row == rows.end()) {
      rows.push_back({tier.tier, {}, tier});
    } else {
      row->b = tier;
    }
  }
  return rows;
}

}  // namespace

sim::TimeParts mean_parts(const sim::Prediction& prediction) {
  std::array<Wide, kParts> sums{};
  Wide slowed = 0;
  std::int64_t ranks = 0;
  for (const sim::ClassResult& c : prediction.classes) {
    sim::TimeParts time = c.time;
    for (std::size_t row = 0; row < kParts; ++row) sums[row] += Wide{part_of(time, row).ps} * c.ranks;
    slowed += Wide{time.slowed.ps} * c.ranks;
    ranks += c.ranks;
  }
  CHECK(ranks > 0);
  const std::array<std::int64_t, kParts> means = whole_means(sums, ranks);
  sim::TimeParts parts;
  for (std::size_t row = 0; row < kParts; ++row) part_of(parts, row) = Duration(means[row]);
  parts.slowed = Duration(static_cast<std::int64_t>(slowed / ranks));
  CHECK(parts.sum() == prediction.step, parts.sum().ps, prediction.step.ps);
  return parts;
}

DiffReport make_diff(DiffSide a, DiffSide b) {
  DiffReport diff;
  diff.fields = fields_of(a.values, b.values);
  diff.waterfall = waterfall_of(a, b);
  diff.step_a_ps = a.parts.sum().ps;
  diff.step_b_ps = b.parts.sum().ps;
  diff.memory = memory_of(a.report, b.report);
  diff.network = network_of(a.report, b.report);
  diff.a = std::move(a);
  diff.b = std::move(b);
  return diff;
}

}  // namespace stepcast::report
