// Orders, the best variant and the four forms of a sweep, on figures made up by hand.
#include "report/sweep_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace stepcast::report {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

SweepVariant variant(const std::string& tp, SweepStatus status, double step, double tokens, std::int64_t gib) {
  SweepVariant v;
  v.values = {tp};
  v.status = status;
  v.step_time_s = step;
  v.tokens_per_s_per_gpu = tokens;
  v.mfu = {0.5, 0.4};
  v.allocated_bytes = gib * kGiB;
  v.device_bytes = v.allocated_bytes;
  v.capacity_bytes = 80 * kGiB;
  return v;
}

// tp 1 is the fastest and does not fit, 2 is the fastest of those that do, 4 fits, 3 is refused.
SweepReport example() {
  SweepReport sweep;
  sweep.subject = "a.yaml";
  sweep.axes = {{"plan.tp", {"1", "2", "3", "4"}}};
  sweep.variants = {variant("1", SweepStatus::kOom, 2.0, 4000, 92), variant("2", SweepStatus::kTight, 2.5, 3200, 79),
                    refused_variant({"3"}, {Problem{ErrorKind::kInput, "heads, 32 | 3 \"do\" not divide", {}, {"2"}}}),
                    variant("4", SweepStatus::kFits, 2.2, 3000, 40)};
  return sweep;
}

std::vector<std::string> order_of(const SweepReport& sweep) {
  std::vector<std::string> order;
  for (const SweepVariant& v : sweep.variants) order.push_back(v.values[0]);
  return order;
}

using Order = std::vector<std::string>;

TEST(SweepReport, OrdersWhatFitsBeforeWhatDoesNotAndTheRest) {
  const std::pair<SweepOrder, Order> cases[] = {{SweepOrder::kGiven, {"1", "2", "3", "4"}},
                                                {SweepOrder::kStep, {"4", "2", "1", "3"}},
                                                {SweepOrder::kTokens, {"2", "4", "1", "3"}},
                                                {SweepOrder::kMemory, {"4", "2", "1", "3"}},
                                                {SweepOrder::kMfu, {"2", "4", "1", "3"}}};
  for (const auto& [order, expected] : cases) {
    SweepReport sweep = example();
    finish_sweep(sweep, order, {});
    EXPECT_EQ(order_of(sweep), expected);
    EXPECT_EQ(sweep.variants.at(sweep.best.value()).values[0], "2");
    EXPECT_EQ(sweep.counts, (std::vector<std::size_t>{1, 1, 1, 1, 0}));
  }
}

TEST(SweepReport, KeepsTheBestAmongTheFirst) {
  SweepReport sweep = example();
  finish_sweep(sweep, SweepOrder::kMemory, 1);
  EXPECT_EQ(order_of(sweep), (Order{"2"}));
  EXPECT_EQ(sweep.best, 0U);
  sweep = example();
  finish_sweep(sweep, SweepOrder::kTokens, 2);
  EXPECT_EQ(order_of(sweep), (Order{"2", "4"}));
  EXPECT_EQ(sweep.best, 0U);
}

TEST(SweepReport, PrefersTheSmallerOfEquallyFastOnes) {
  SweepReport sweep = example();
  sweep.variants = {variant("1", SweepStatus::kFits, 2, 100, 50), variant("2", SweepStatus::kFits, 2, 100, 40),
                    variant("4", SweepStatus::kFits, 2, 100, 40)};
  finish_sweep(sweep, SweepOrder::kGiven, {});
  EXPECT_EQ(sweep.best, 1U);
  sweep.variants = {variant("1", SweepStatus::kOom, 2, 100, 90)};
  finish_sweep(sweep, SweepOrder::kGiven, {});
  EXPECT_FALSE(sweep.best.has_value());
}

TEST(SweepReport, SaysHowMuchIsOverAndWhyOneWasRefused) {
  SweepReport sweep = example();
  finish_sweep(sweep, SweepOrder::kGiven, {});
  const std::string text = sweep_text(sweep, SweepFormat::kTable);
  EXPECT_NE(text.find("oom, over by 12.0 GiB\n"), std::string::npos) << text;
  EXPECT_NE(text.find("tight, 1.0 GiB free  <- best\n"), std::string::npos) << text;
  EXPECT_NE(text.find("refused: heads, 32 | 3"), std::string::npos) << text;
  EXPECT_NE(text.find("next: --set plan.tp=2\n"), std::string::npos) << text;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120U) << line;
}

TEST(SweepReport, SaysWhatSharesAreOfWherePeaksDiffer) {
  SweepReport sweep = example();
  for (const std::size_t i : {0U, 1U, 3U}) sweep.variants[i].peak_tflops = 989.5;
  finish_sweep(sweep, SweepOrder::kGiven, {});
  EXPECT_EQ(sweep_text(sweep, SweepFormat::kTable).find("of TFLOP/s"), std::string::npos);
  sweep.variants[3].peak_tflops = 1979;
  for (const SweepFormat format : {SweepFormat::kTable, SweepFormat::kMarkdown}) {
    const std::string text = sweep_text(sweep, format);
    for (const char* word : {"of TFLOP/s", "989.5", "1979"}) EXPECT_NE(text.find(word), std::string::npos) << word;
  }
  EXPECT_NE(sweep_text(sweep, SweepFormat::kCsv).find(",0.5,0.4,1979,"), std::string::npos);
}

TEST(SweepReport, QuotesInCsvAndMarkdown) {
  SweepReport sweep = example();
  finish_sweep(sweep, SweepOrder::kGiven, {});
  const std::string csv = sweep_text(sweep, SweepFormat::kCsv);
  EXPECT_TRUE(csv.starts_with("plan.tp,status,best,step_time_s,")) << csv;
  // RFC 4180: a cell with a comma or quotes is quoted, and quotes are doubled.
  EXPECT_NE(csv.find("3,refused,0,,,,,,,,,,,\"heads, 32 | 3 \"\"do\"\" not divide\"\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find("\n1,oom,0,2,4000,0.5,0.4,0,0,0,98784247808,98784247808,12884901888,\n"), std::string::npos)
      << csv;
  const std::string markdown = sweep_text(sweep, SweepFormat::kMarkdown);
  EXPECT_NE(markdown.find("heads, 32 \\| 3"), std::string::npos) << markdown;
  EXPECT_EQ(std::count(markdown.begin(), markdown.end(), '\n'), 6);
}

TEST(SweepReport, IsOneJsonObject) {
  SweepReport sweep = example();
  finish_sweep(sweep, SweepOrder::kGiven, {});
  const auto json = nlohmann::json::parse(sweep_text(sweep, SweepFormat::kJson));
  EXPECT_EQ(json["schema"], "stepcast/sweep/1");
  EXPECT_EQ(json["best"], 1);
  EXPECT_EQ(json["counts"]["oom"], 1);
  EXPECT_EQ(json["variants"][0]["over_bytes"], 12 * kGiB);
  EXPECT_EQ(json["variants"][1]["over_bytes"], 0);
  EXPECT_TRUE(json["variants"][2]["step_time_s"].is_null());
  EXPECT_EQ(json["variants"][2]["problems"][0]["exit_code"], 3);
}

}  // namespace
}  // namespace stepcast::report
