// What lowering refuses, and what it promises about shared rank programs.
#include "plan/lowering.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/plan/tiny_scenario.h"

namespace stepcast::plan {
namespace {

using testing::make_scenario;
using testing::TinyPlan;
using testing::TinyShape;

ErrorKind refusal_of(const Scenario& s) {
  try {
    lower(s);
  } catch (const Error& e) {
    return e.kind();
  }
  ADD_FAILURE() << "not refused";
  return ErrorKind::kSubject;
}

// 200,000 microbatches of four layers are 200,000 * 6 * 40 = 48 million ops.
TEST(Lowering, RefusesAStepTooLongToHold) {
  TinyShape shape;
  shape.global_batch = 200'000;
  EXPECT_EQ(refusal_of(make_scenario(shape, TinyPlan{.name = "long"})), ErrorKind::kUnsupported);
}

TEST(Lowering, RefusesTiedEmbeddingsUnderZero3) {
  EXPECT_EQ(refusal_of(make_scenario(TinyShape{}, TinyPlan{.name = "tied", .dp = 2, .zero = 3, .tied = true})),
            ErrorKind::kUnsupported);
}

// Ranks of one stage do the same work: two stages, two programs, whatever tp and dp.
TEST(Lowering, RanksOfAStageShareTheirProgram) {
  const program::Program p = lower(make_scenario(TinyShape{}, TinyPlan{.name = "p", .dp = 2, .tp = 2, .pp = 2}));
  EXPECT_EQ(p.ranks.size(), 8u);
  EXPECT_EQ(p.rank_programs.size(), 2u);
}

// Layers carry their global number, so no two stages share a program.
TEST(Lowering, StagesDifferByTheirLayers) {
  const program::Program p = lower(make_scenario(TinyShape{}, TinyPlan{.name = "p", .pp = 4}));
  EXPECT_EQ(p.rank_programs.size(), 4u);
}

}  // namespace
}  // namespace stepcast::plan
