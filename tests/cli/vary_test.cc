// What --vary means.
#include "cli/vary.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace stepcast::cli {
namespace {

using Values = std::vector<std::string>;

Values values(const std::string& text) { return axes_of({text}).at(0).values; }

TEST(Vary, SeparatesValuesAtCommasOutsideBracketsAndQuotes) {
  EXPECT_EQ(values("plan.tp=1, 2,4"), (Values{"1", "2", "4"}));
  EXPECT_EQ(values("plan.recompute=none,selective[layernorm,mlp_act],{granularity: selective, modules: [mlp_act]}"),
            (Values{"none", "selective[layernorm,mlp_act]", "{granularity: selective, modules: [mlp_act]}"}));
  EXPECT_EQ(values("plan.layout=\"Et|t,L\",'a,b',auto"), (Values{"\"Et|t,L\"", "'a,b'", "auto"}));
  EXPECT_EQ(values("name=a=b"), (Values{"a=b"}));
}

TEST(Vary, TakesTheNamesOfFlags) {
  EXPECT_EQ(axes_of({"mbs=1,2"}).at(0).field, "plan.micro_batch_size");
  EXPECT_EQ(axes_of({"gpus=8,16"}).at(0).field, "gpus");
  EXPECT_EQ(axes_of({"plan.tp=1,2"}).at(0).field, "plan.tp");
}

// 2 x 3: the last axis varies fastest.
TEST(Vary, MakesTheCrossProduct) {
  const std::vector<report::SweepAxis> axes = axes_of({"tp=1,2", "pp=1,2,4"});
  ASSERT_EQ(variant_count(axes), 6U);
  EXPECT_EQ(values_of(axes, 0), (Values{"1", "1"}));
  EXPECT_EQ(values_of(axes, 2), (Values{"1", "4"}));
  EXPECT_EQ(values_of(axes, 3), (Values{"2", "1"}));
  EXPECT_EQ(values_of(axes, 5), (Values{"2", "4"}));
  const std::vector<config::Setting> settings = settings_of(axes, 5);
  EXPECT_EQ(settings[0].field, "plan.tp");
  EXPECT_EQ(settings[1].value, "4");
  EXPECT_EQ(settings[1].origin, "--vary plan.pp=4");
}

TEST(Vary, RefusesWhatIsNoListOfValues) {
  for (const char* text : {"plan.tp", "=1,2", "plan.tp=", "plan.tp=1,,2", "plan.tp=1,2,1"}) {
    EXPECT_THROW(axes_of({text}), Error) << text;
  }
  EXPECT_THROW(axes_of({"tp=1,2", "plan.tp=4"}), Error);
  // 50^3 = 125,000.
  std::string fifty = "=0";
  for (int i = 1; i < 50; ++i) fifty += "," + std::to_string(i);
  EXPECT_THROW(axes_of({"a" + fifty, "b" + fifty, "c" + fifty}), Error);
}

}  // namespace
}  // namespace stepcast::cli
