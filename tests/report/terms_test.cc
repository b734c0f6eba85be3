// Every label of the screens and every warning code of the sources is explained.
#include "report/terms.h"

#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "config/options.pb.h"
#include "plan/lowering.h"
#include "plan/scenario.pb.h"
#include "program/ops/op.h"
#include "report/op_labels.h"
#include "report/simulate_output.h"
#include "sim/exposed.h"
#include "tests/plan/tiny_scenario.h"
#include "tests/report/by_hand.h"

namespace stepcast::report {
namespace {

std::set<std::string> warning_codes() {
  std::set<std::string> codes;
  const std::regex code("\"(W[0-9]{3}) ");
  for (const char* folder : {"cli", "config", "models", "plan", "report", "sim", "topology"}) {
    for (const auto& file :
         std::filesystem::recursive_directory_iterator(std::string(STEPCAST_SOURCE_DIR) + "/" + folder)) {
      if (file.path().extension() != ".cc") continue;
      std::stringstream stream;
      stream << std::ifstream(file.path()).rdbuf();
      const std::string text = stream.str();
      for (std::sregex_iterator it(text.begin(), text.end(), code), end; it != end; ++it) codes.insert((*it)[1]);
    }
  }
  return codes;
}

TEST(Terms, ExplainEveryWarningCode) {
  const std::set<std::string> codes = warning_codes();
  EXPECT_TRUE(codes.contains("W301"));
  EXPECT_TRUE(codes.contains("W302"));
  for (const std::string& code : codes) EXPECT_NE(find_term(code), nullptr) << code;
}

// What a line of the screen begins with: up to two spaces, a colon, a bracket or a digit.
std::string label_of(const std::string& line) {
  std::string label = line.substr(0, line.find("  ", line.find_first_not_of(' ')));
  label = label.substr(0, label.find_first_of(":(0123456789"));
  const std::size_t first = label.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return label.substr(first, label.find_last_not_of(' ') - first + 1);
}

// Labels stand in columns 0 to 2; what lies further in goes on with the line above.
std::set<std::string> labels_of(const std::string& screen) {
  std::set<std::string> labels;
  std::istringstream lines(screen);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find_first_not_of(' ');
    if (first == std::string::npos || first > 2) continue;
    const std::string label = label_of(line);
    // Labels of one word are padded to their column by one space where they are long: "evidence uncalibrated".
    const std::string word = label.substr(0, label.find(' '));
    labels.insert(find_term(label) == nullptr && first == 0 ? word : label);
  }
  labels.erase("");
  return labels;
}

SimulationReport everything() {
  using literals::operator""_ms;
  plan::Scenario s = scenario();
  s.jitter = plan::Jitter{.compute_sigma = 0.1, .comm_sigma = 0, .samples = 1, .seed = 0};
  s.job = plan::Job{.tokens = 1e9, .price = 2, .pue = 1.1};
  SimulationReport r = report_of_traffic(s, {.if_free = {{sim::Free::kDp, 1_ms}}, .jittered_steps = {1_ms}});
  // Every kind of time in use, so that every row is printed.
  r.kinds_in_use.clear();
  for (int k = 1; k < sim::kFreeCount; ++k) r.kinds_in_use.push_back(static_cast<sim::Free>(k));
  r.warnings = {"careful"};
  r.sensitivity = {{"NIC 2x", "cluster.nic.rate x 2", 0.9e-3, Verdict::kFits}};
  r.network.push_back({.tier = "leaf", .links = 1, .bytes = 1e9, .carries = {}});
  r.network.push_back({.tier = "spine", .links = 1, .bytes = 1e9, .carries = {}});
  r.network.push_back({.tier = "nic", .links = 1, .bytes = 1e9, .carries = {}});
  return r;
}

TEST(Terms, ExplainEveryRowOfTheScreen) {
  SimulationReport fits = everything();
  SimulationReport oom = fits;
  oom.memory.verdict = Verdict::kOom;
  std::set<std::string> labels = labels_of(simulate_screen(fits));
  labels.merge(labels_of(simulate_screen(oom)));
  for (const char* known : {"compute", "exposed tp", "bubble", "slowed by overlap", "scale_up", "job", "evidence"}) {
    EXPECT_TRUE(labels.contains(known)) << known;
  }
  for (const std::string& label : labels) EXPECT_NE(find_term(label), nullptr) << "'" << label << "'";
  for (const char* column : {"saved if free", "stage min..max", "weights", "grads", "optim", "activ", "comm", "total",
                             "mean", "peak", "carries", "MFU", "HFU", "tok/s/GPU", "fits", "tight", "oom"}) {
    EXPECT_NE(find_term(column), nullptr) << column;
  }
}

// The first `count` values of an enum that has a name for each.
template <class Enum>
std::set<std::string> names_of(int count) {
  std::set<std::string> names;
  for (int i = 0; i < count; ++i) names.emplace(to_string(static_cast<Enum>(i)));
  return names;
}

void expect_explained(const std::set<std::string>& words) {
  for (const std::string& word : words) EXPECT_NE(find_term(word), nullptr) << "'" << word << "'";
}

TEST(Terms, ExplainEveryKindOfOp) {
  expect_explained(names_of<program::OpKind>(program::kOpKindCount));
  expect_explained(names_of<program::OpCategory>(static_cast<int>(program::OpCategory::kSync) + 1));
  EXPECT_EQ(find_term("quantised_input")->name, "quantise");
}

TEST(Terms, ExplainTheWordsOfTransfersMemoryAndTraces) {
  expect_explained(names_of<sim::Algorithm>(static_cast<int>(sim::Algorithm::kCopyEngines) + 1));
  expect_explained(names_of<sim::Protocol>(static_cast<int>(sim::Protocol::kSimple) + 1));
  expect_explained(names_of<topology::Tier>(static_cast<int>(topology::Tier::kCore) + 1));
  expect_explained(names_of<program::MemoryClass>(program::kMemoryClassCount));
  expect_explained(names_of<program::Stream>(program::kStreamCount));
  expect_explained(names_of<program::Pass>(program::kPassCount));
}

// "carries" names the groups' roles.
TEST(Terms, ExplainEveryRoleOfALoweredPlan) {
  plan::testing::TinyPlan plan{.name = "roles", .tp = 2, .pp = 2};
  plan.dp = plan.cp = 2;
  plan.tied = true;
  std::set<std::string> roles;
  for (const program::Role& role : plan::lower(plan::testing::make_scenario({}, plan)).roles) roles.insert(role.name);
  EXPECT_TRUE(roles.contains("dp_cp"));
  expect_explained(roles);
}

// The keys that do something; check --show-config and remedies print them with their path.
void add_keys(const google::protobuf::Descriptor& message, const std::string& path, std::set<std::string>& keys) {
  for (int i = 0; i < message.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *message.field(i);
    if (field.options().GetExtension(config::rule).not_yet()) continue;
    const std::string key = path.empty() ? field.name() : path + "." + field.name();
    if (field.message_type() != nullptr && !field.is_map()) {
      add_keys(*field.message_type(), key, keys);
    } else {
      keys.insert(key);
    }
  }
}

TEST(Terms, ExplainEveryKeyOfAScenario) {
  std::set<std::string> keys;
  add_keys(*plan::schema::Scenario::descriptor(), "", keys);
  EXPECT_TRUE(keys.contains("plan.overlap.tp_comm"));
  EXPECT_TRUE(keys.contains("cluster.nic.rate"));
  expect_explained(keys);
  EXPECT_EQ(find_term("plan.cp")->name, "context parallelism");
  EXPECT_EQ(find_term("plan.overlap.tp_comm_cfg.qkv_fprop.num_sm")->name, "tp_comm_cfg");
  EXPECT_EQ(find_term("no.such_key"), nullptr);
}

// As find_term reads them: case, spaces, - and _ are alike.
TEST(Terms, GiveNoWordTwoMeanings) {
  std::map<std::string, std::string_view> owners;
  const auto claim = [&owners](const std::string& word, const Term& term) {
    std::string spelling;
    for (const char c : word) {
      if (c != ' ' && c != '-' && c != '_') spelling += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    const auto [it, is_new] = owners.emplace(spelling, term.name);
    EXPECT_TRUE(is_new || it->second == term.name) << word << ": " << it->second << " and " << term.name;
    EXPECT_EQ(find_term(word), find_term(term.name)) << word;
  };
  for (const Term& term : all_terms()) {
    claim(std::string(term.name), term);
    std::istringstream aliases{std::string(term.aliases)};
    for (std::string alias; std::getline(aliases >> std::ws, alias, ',');) claim(alias, term);
  }
}

TEST(Terms, HaveOneNameEachAndSayWhereTheyComeFrom) {
  std::set<std::string> names;
  for (const Term& term : all_terms()) {
    EXPECT_TRUE(names.insert(std::string(term.name)).second) << term.name;
    EXPECT_EQ(find_term(term.name), &term) << term.name;
    EXPECT_FALSE(term.meaning.empty()) << term.name;
    EXPECT_FALSE(term.source.empty()) << term.name;
    std::istringstream lines(term_screen(term));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120U) << line;
  }
}

TEST(Terms, AreFoundByOtherWordsAndWithoutCaseOrDashes) {
  EXPECT_EQ(find_term("mfu"), find_term("MFU full"));
  EXPECT_EQ(find_term("Sequence-Parallel"), find_term("SP"));
  EXPECT_EQ(find_term("bubbel"), nullptr);
  EXPECT_EQ(nearest_terms("bubbel").front(), "bubble");
}

}  // namespace
}  // namespace stepcast::report
