// Every label of the screens and every warning code of the sources is explained.
#include "report/terms.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "report/simulate_output.h"
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
