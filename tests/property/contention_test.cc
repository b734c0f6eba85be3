// Properties of contention over random programs: folded equals unfolded to the picosecond whatever splits classes, a
// step is never shorter than without contention, and without demands nothing changes.
#include <gtest/gtest.h>

#include <string>

#include "base/random.h"
#include "sim/prediction.h"
#include "tests/random_cases.h"
#include "tests/sim/random_program.h"

namespace stepcast::sim {
namespace {

const std::uint64_t kContended = stepcast::testing::random_cases(400);

HashedCosts disturbed_costs(std::uint64_t seed) {
  HashedCosts costs(seed);
  costs.demands = true;
  const auto device = static_cast<std::int32_t>(RandomStream(seed, "device").integer_at(0, 9));
  if (seed % 4 == 1) costs.slow_devices = {device};
  if (seed % 4 == 2) costs.half_rate_nics = {device};
  if (seed % 4 == 3) costs.slow_links = {device};
  return costs;
}

TEST(ContentionProperty, FoldedEqualsUnfoldedToThePicosecond) {
  std::uint64_t folded_ranks = 0;
  std::uint64_t folded_links = 0;
  std::uint64_t slower = 0;
  for (std::uint64_t seed = 0; seed < kContended; ++seed) {
    const program::CheckedProgram p = random_program({.seed = seed, .symmetry = Symmetry::kStages, .actions = 40});
    const HashedCosts costs = disturbed_costs(seed);
    const Prediction folded = simulate(p, costs, {.fold = true});
    const Prediction whole = simulate(p, costs, {.fold = false});
    ASSERT_EQ(folded.step, whole.step) << "seed " << seed;
    for (std::size_t rank = 0; rank < p.program().ranks.size(); ++rank) {
      const ClassResult& c = folded.classes[folded.class_of_rank[rank]];
      ASSERT_EQ(c.events, whole.classes[rank].events) << "seed " << seed << " rank " << rank;
      ASSERT_TRUE(c.time == whole.classes[rank].time) << "seed " << seed << " rank " << rank;
    }
    folded_ranks += folded.classes.size() < whole.classes.size() ? 1U : 0U;
    folded_links += folded.link_classes < whole.link_classes ? 1U : 0U;
    slower += whole.step > simulate(p, costs, {.contention = false}).step ? 1U : 0U;
  }
  // All of it is exercised.
  EXPECT_GT(folded_ranks, kContended / 5);
  EXPECT_GT(folded_links, kContended / 8);
  EXPECT_GT(slower, kContended / 4);
}

// Slowing ops down can start others earlier than they would have, so that a step may even end sooner (a list-scheduling
// anomaly; Graham, 1969). Counted, and rare.
TEST(ContentionProperty, ContentionHardlyEverShortensAStep) {
  std::uint64_t shorter = 0;
  for (std::uint64_t seed = 0; seed < kContended; ++seed) {
    const program::CheckedProgram p = random_program({.seed = seed, .symmetry = Symmetry::kNone, .actions = 40});
    const HashedCosts costs = disturbed_costs(seed);
    if (simulate(p, costs, {}).step < simulate(p, costs, {.contention = false}).step) ++shorter;
  }
  EXPECT_LE(shorter, kContended / 50);
  RecordProperty("shorter", std::to_string(shorter));
}

TEST(ContentionProperty, WithoutDemandsNothingChanges) {
  for (std::uint64_t seed = 0; seed < stepcast::testing::random_cases(100); ++seed) {
    const program::CheckedProgram p = random_program({.seed = seed, .symmetry = Symmetry::kNone, .actions = 40});
    const HashedCosts costs(seed);
    const Prediction with = simulate(p, costs, {});
    const Prediction without = simulate(p, costs, {.contention = false});
    ASSERT_EQ(with.step, without.step) << seed;
    for (std::size_t c = 0; c < with.classes.size(); ++c) {
      ASSERT_EQ(with.classes[c].events, without.classes[c].events) << seed;
    }
  }
}

}  // namespace
}  // namespace stepcast::sim
