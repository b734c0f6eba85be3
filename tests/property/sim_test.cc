// Properties of the engine over random programs: it agrees with its oracle and with itself unfolded to the picosecond,
// its accounting adds up, and cheaper ops never make a longer step.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "sim/prediction.h"
#include "tests/random_cases.h"
#include "tests/sim/random_program.h"

namespace stepcast::sim {
namespace {

const std::uint64_t kPrograms = stepcast::testing::random_cases(1000);

program::CheckedProgram program_of(std::uint64_t seed, Symmetry symmetry) {
  return random_program({.seed = seed, .symmetry = symmetry, .actions = 40});
}

Symmetry symmetry_of(std::uint64_t seed) { return seed % 2 == 0 ? Symmetry::kStages : Symmetry::kNone; }

HashedCosts costs_of(std::uint64_t seed) {
  HashedCosts costs(seed);
  if (seed % 3 == 1) costs.slow_devices = {static_cast<std::int32_t>(seed % 5)};
  return costs;
}

TEST(SimProperty, EngineEqualsRelaxationToThePicosecond) {
  std::uint64_t ops = 0;
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const program::CheckedProgram p = program_of(seed, symmetry_of(seed));
    const HashedCosts costs = costs_of(seed);
    const SimOptions options{.fold = seed % 4 < 2};
    const Prediction engine = simulate(p, costs, options);
    const Prediction oracle = relax(p, costs, options);
    ops += engine.events;
    ASSERT_EQ(engine.step, oracle.step) << "seed " << seed;
    ASSERT_EQ(engine.classes.size(), oracle.classes.size()) << "seed " << seed;
    for (std::size_t c = 0; c < engine.classes.size(); ++c) {
      ASSERT_EQ(engine.classes[c].events, oracle.classes[c].events) << "seed " << seed << " class " << c;
      ASSERT_TRUE(engine.classes[c].time == oracle.classes[c].time) << "seed " << seed << " class " << c;
    }
  }
  EXPECT_GT(ops, 50U * kPrograms);  // the generator makes programs worth the name
}

TEST(SimProperty, FoldedEqualsUnfoldedToThePicosecond) {
  std::uint64_t folded_ranks = 0;
  std::uint64_t split = 0;
  const std::uint64_t cases = stepcast::testing::random_cases(300);
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    const program::CheckedProgram p = program_of(seed, Symmetry::kStages);
    const HashedCosts costs = costs_of(seed);
    const Prediction folded = simulate(p, costs, {.fold = true});
    const Prediction whole = simulate(p, costs, {.fold = false});
    const std::size_t ranks = p.program().ranks.size();
    ASSERT_EQ(whole.classes.size(), ranks);
    ASSERT_EQ(folded.step, whole.step) << "seed " << seed;
    std::int64_t counted = 0;
    for (const ClassResult& c : folded.classes) counted += c.ranks;
    ASSERT_EQ(counted, static_cast<std::int64_t>(ranks));
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const ClassResult& c = folded.classes[folded.class_of_rank[rank]];
      ASSERT_EQ(c.events, whole.classes[rank].events) << "seed " << seed << " rank " << rank;
      ASSERT_TRUE(c.time == whole.classes[rank].time) << "seed " << seed << " rank " << rank;
    }
    if (folded.classes.size() < ranks) ++folded_ranks;
    if (folded.classes.size() > p.program().rank_programs.size()) ++split;
  }
  // Both are exercised: programs that fold, and programs whose stages split because of a slow device or a path.
  EXPECT_GT(folded_ranks, cases / 3);
  EXPECT_GT(split, cases / 6);
}

TEST(SimProperty, EveryPicosecondIsAccountedForOnEveryRank) {
  for (std::uint64_t seed = 0; seed < stepcast::testing::random_cases(300); ++seed) {
    const Prediction prediction = simulate(program_of(seed, Symmetry::kNone), costs_of(seed), {.fold = false});
    for (const ClassResult& c : prediction.classes) {
      ASSERT_EQ(c.time.sum(), prediction.step) << "seed " << seed;
      for (const Duration d : {c.time.compute, c.time.optimizer, c.time.host, c.time.bubble}) ASSERT_GE(d.ps, 0);
      for (const Duration d : c.time.exposed) ASSERT_GE(d.ps, 0);
    }
  }
}

TEST(SimProperty, ComputeIsTheTimeOfLocalOpsOnTheComputeStream) {
  for (std::uint64_t seed = 0; seed < stepcast::testing::random_cases(100); ++seed) {
    const program::CheckedProgram p = program_of(seed, Symmetry::kNone);
    const Prediction prediction = simulate(p, costs_of(seed), {.fold = false});
    for (const ClassResult& c : prediction.classes) {
      Duration busy;
      for (const trace::Event& e : c.events) {
        if (e.stream == static_cast<std::uint8_t>(program::Stream::kCompute)) busy += e.end - e.begin;
      }
      ASSERT_EQ(c.time.compute + c.time.optimizer, busy) << "seed " << seed;
    }
  }
}

TEST(SimProperty, EventsAreOrderedAndStreamsNeverOverlap) {
  for (std::uint64_t seed = 0; seed < stepcast::testing::random_cases(200); ++seed) {
    const Prediction prediction = simulate(program_of(seed, symmetry_of(seed)), costs_of(seed), {.fold = false});
    Duration latest;
    for (const ClassResult& c : prediction.classes) {
      std::array<SimTime, program::kStreamCount> free{};
      SimTime issued;
      for (const trace::Event& e : c.events) {
        ASSERT_LE(issued, e.issue);
        ASSERT_LE(e.issue, e.begin);
        ASSERT_LE(e.begin, e.transfer);
        ASSERT_LE(e.transfer, e.end);
        ASSERT_LE(free[e.stream], e.begin) << "seed " << seed;
        free[e.stream] = e.end;
        issued = e.issue;
        latest = std::max(latest, Duration(e.end.ps));
      }
      // A step is at least as long as the busiest stream of any rank has work for, and no shorter than its last end.
      for (const SimTime end : free) ASSERT_GE(prediction.step.ps, end.ps);
    }
    ASSERT_EQ(prediction.step, latest);
  }
}

TEST(SimProperty, AStepIsAtLeastTheWorkOfItsBusiestStream) {
  for (std::uint64_t seed = 0; seed < stepcast::testing::random_cases(200); ++seed) {
    const Prediction prediction = simulate(program_of(seed, symmetry_of(seed)), costs_of(seed), {.fold = true});
    for (const ClassResult& c : prediction.classes) {
      std::array<Duration, program::kStreamCount> busy{};
      for (const trace::Event& e : c.events) busy[e.stream] += e.end - e.transfer;
      ASSERT_GE(prediction.step, *std::max_element(busy.begin(), busy.end())) << "seed " << seed;
    }
  }
}

TEST(SimProperty, CheaperOpsNeverMakeALongerStep) {
  std::map<std::string, std::uint64_t> shorter;
  const std::uint64_t cases = stepcast::testing::random_cases(300);
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    const program::CheckedProgram p = program_of(seed, symmetry_of(seed));
    const Duration step = simulate(p, costs_of(seed), {.record_events = false}).step;
    const auto faster = [&](const char* what, const HashedCosts::Speed& speed) {
      HashedCosts costs = costs_of(seed);
      costs.speed = speed;
      const Duration now = simulate(p, costs, {.record_events = false}).step;
      EXPECT_LE(now, step) << "seed " << seed << " faster " << what;
      if (now < step) ++shorter[what];
    };
    faster("local", {.local = 2});
    faster("collective", {.collective = 2});
    faster("message", {.message = 3});
    faster("launch", {.launch = 2});
  }
  for (const char* what : {"local", "collective", "message", "launch"}) EXPECT_GT(shorter[what], cases / 30) << what;
}

TEST(SimProperty, TwoRunsAgreeInEveryEvent) {
  for (std::uint64_t seed = 0; seed < stepcast::testing::random_cases(50); ++seed) {
    const program::CheckedProgram p = program_of(seed, symmetry_of(seed));
    const Prediction first = simulate(p, costs_of(seed), {});
    const Prediction second = simulate(p, costs_of(seed), {});
    ASSERT_EQ(first.class_of_rank, second.class_of_rank);
    for (std::size_t c = 0; c < first.classes.size(); ++c) ASSERT_EQ(first.classes[c].events, second.classes[c].events);
  }
}

}  // namespace
}  // namespace stepcast::sim
