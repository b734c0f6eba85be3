// The prediction's tables by name, what-ifs and jitter.
//
// A transfer counts once for each member that takes part; a rank's count is the mean over the ranks that do.
#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "report/simulation_parts.h"

namespace stepcast::report {
namespace {

double per_rank_count(const sim::CommunicationUse& use) {
  return static_cast<double>(use.transfers) * static_cast<double>(use.members) / static_cast<double>(use.ranks);
}

CollectiveReport collective_of(const program::Program& p, const sim::CommunicationUse& use) {
  return {.group = p.roles[use.role].name,
          .op = std::string(program::to_string(use.kind)),
          .bytes = use.message.count,
          .count = per_rank_count(use),
          .algorithm = std::string(sim::to_string(use.cost.algorithm)),
          .protocol = std::string(sim::to_string(use.cost.protocol)),
          .busbw_gb_per_s = use.cost.bus_bandwidth * 1e-9,
          .exposed_s = use.exposed.seconds()};
}

TierReport tier_of(const program::Program& p, const sim::TierUse& use) {
  TierReport tier{.tier = use.tier,
                  .links = use.links,
                  .bytes = use.bytes_per_rank,
                  .mean_utilisation = use.mean_utilisation,
                  .peak_utilisation = use.peak_utilisation,
                  .carries = {}};
  for (const auto& [role, bytes] : use.carries) tier.carries.emplace_back(p.roles[role].name, bytes);
  return tier;
}

JitterReport jitter_of(const plan::Jitter& jitter, std::vector<Duration> steps) {
  std::sort(steps.begin(), steps.end());
  // Of sorted values: the sum depends on no thread.
  const double sum = std::accumulate(steps.begin(), steps.end(), 0.0,
                                     [](double total, Duration step) { return total + step.seconds(); });
  return {.jitter = jitter,
          .p50_s = percentile(steps, 50).seconds(),
          .p90_s = percentile(steps, 90).seconds(),
          .p99_s = percentile(steps, 99).seconds(),
          .mean_s = sum / static_cast<double>(steps.size()),
          .min_s = steps.front().seconds(),
          .max_s = steps.back().seconds()};
}

}  // namespace

double share_of_step(const sim::Prediction& prediction, sim::Free kind) {
  double sum = 0;
  double ranks = 0;
  for (const sim::ClassResult& c : prediction.classes) {
    const auto n = static_cast<double>(c.ranks);
    ranks += n;
    if (kind == sim::Free::kHost) sum += n * c.time.host.seconds();
    if (kind == sim::Free::kOptimizer) sum += n * c.time.optimizer.seconds();
    if (kind == sim::Free::kSlowdown) sum += n * c.time.slowed.seconds();
    for (std::size_t k = 0; k < c.time.exposed.size(); ++k) {
      if (sim::free_of(static_cast<sim::Exposed>(k)) == kind) sum += n * c.time.exposed[k].seconds();
    }
  }
  return sum / (ranks * prediction.step.seconds());
}

std::vector<sim::Free> kinds_in_use(const sim::Prediction& prediction) {
  std::array<bool, sim::kFreeCount> used{};
  const auto mark = [&used](sim::Free kind, bool in_use) {
    bool& flag = used[static_cast<std::size_t>(kind)];
    flag = flag || in_use;
  };
  const auto mark_exposed = [&](std::size_t kind, bool in_use) {
    mark(sim::free_of(static_cast<sim::Exposed>(kind)), in_use);
  };
  for (const sim::ClassResult& c : prediction.classes) {
    for (std::size_t k = 0; k < c.time.exposed.size(); ++k) mark_exposed(k, c.time.exposed[k].ps > 0);
    mark(sim::Free::kHost, c.time.host.ps > 0);
    mark(sim::Free::kOptimizer, c.time.optimizer.ps > 0);
    mark(sim::Free::kSlowdown, c.time.slowed.ps > 0);
  }
  for (const sim::CommunicationUse& use : prediction.communication) {
    mark_exposed(static_cast<std::size_t>(use.exposed_as), use.moving.ps > 0);
  }
  std::vector<sim::Free> kinds;
  for (std::size_t k = 0; k < used.size(); ++k) {
    if (used[k]) kinds.push_back(static_cast<sim::Free>(k));
  }
  return kinds;
}

Duration percentile(std::span<const Duration> sorted, std::int64_t percent) {
  CHECK(!sorted.empty() && percent > 0 && percent <= 100, sorted.size(), percent);
  const std::int64_t rank = (percent * static_cast<std::int64_t>(sorted.size()) + 99) / 100;
  return sorted[static_cast<std::size_t>(rank - 1)];
}

void fill_network(SimulationReport& r, const SimulationInputs& in) {
  const program::Program& p = in.program.program();
  for (const sim::TierUse& use : in.prediction.tiers) r.network.push_back(tier_of(p, use));
  sim::Share held = 0;
  for (const sim::CommunicationUse& use : in.prediction.communication) {
    r.collectives.push_back(collective_of(p, use));
    r.moving_s.at(static_cast<std::size_t>(use.exposed_as)) +=
        use.moving.seconds() * static_cast<double>(use.ranks) / static_cast<double>(r.ranks);
    held = std::max(held, use.cost.multiprocessors);
  }
  r.held_multiprocessors = static_cast<double>(held) / static_cast<double>(sim::kWhole) *
                           static_cast<double>(in.scenario.cluster.node.device.multiprocessors);
}

void fill_what_ifs(SimulationReport& r, const SimulationInputs& in) {
  r.kinds_in_use = kinds_in_use(in.prediction);
  for (const auto& [kind, step] : in.if_free) r.if_free.push_back({kind, step.seconds()});
  if (in.jittered_steps.empty()) return;
  CHECK(in.scenario.jitter.has_value());
  r.jitter = jitter_of(*in.scenario.jitter, in.jittered_steps);
}

}  // namespace stepcast::report
