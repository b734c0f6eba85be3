// The tree and its locations, and everything the parser refuses.
#include "config/document.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace stepcast::config {
namespace {

// The first problem of parsing `text`; nothing when it parses.
std::optional<Problem> problem_of(const std::string& text) {
  try {
    parse_document(text, "a.yaml");
    return std::nullopt;
  } catch (const Error& fault) {
    EXPECT_EQ(fault.exit_code(), 3);
    return fault.problems().front();
  }
}

TEST(ParseDocument, KeepsTheLineOfEveryKey) {
  const Node root = parse_document("model: m\nplan:\n  tp: 2\n  pp: 4\nlist: [1,\n  2]\n", "a.yaml");
  ASSERT_EQ(root.kind, Node::Kind::kMap);
  const Node* plan = root.find("plan");
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(plan->where.line, 2);
  EXPECT_EQ(plan->find("pp")->where.line, 4);
  EXPECT_EQ(plan->find("pp")->text, "4");
  EXPECT_EQ(root.find("list")->children[1].where.line, 6);
  EXPECT_EQ(origin_text(plan->where), "a.yaml:2");
}

TEST(ParseDocument, TellsQuotedTextFromNumbers) {
  const Node root = parse_document("a: \"4\"\nb: 4\n", "a.yaml");
  EXPECT_TRUE(root.find("a")->quoted);
  EXPECT_FALSE(root.find("b")->quoted);
}

TEST(ParseDocument, ReadsJson) {
  const Node root = parse_document("{\n\"gpus\": 8,\n\"plan\": {\"tp\": 2, \"layout\": [1, 3]}\n}\n", "a.json");
  EXPECT_EQ(root.find("gpus")->where.line, 2);
  EXPECT_EQ(flow_text(*root.find("plan")), "{tp: 2, layout: [1, 3]}");
}

// YAML would take the stray x for a second document; a JSON file has no line of dashes to look for.
TEST(ParseDocument, SaysWhatFollowsTheClosingBracket) {
  const auto message_of = [](const char* text) {
    try {
      parse_document(text, "f.json");
    } catch (const Error& fault) {
      return fault.problems().at(0).message + " at " + std::to_string(fault.problems().at(0).where.line);
    }
    return std::string("taken");
  };
  EXPECT_EQ(message_of("{\"a\": 1\n}x\n"), "something follows the closing bracket of the document at 2");
  EXPECT_EQ(message_of("a: 1\n---\nb: 2\n"), "more than one document (a line \"---\"); keep one at 3");
  EXPECT_EQ(message_of("{\"a\": 1}\n\n"), "taken");
}

TEST(ParseDocument, RefusesRepeatedKeysNamingBothLines) {
  const auto problem = problem_of("gpus: 8\nplan: {}\ngpus: 16\n");
  ASSERT_TRUE(problem.has_value());
  EXPECT_EQ(problem->where.line, 3);
  ASSERT_EQ(problem->help.size(), 1u);
  EXPECT_EQ(problem->help[0], "the first one is at a.yaml:1");
}

TEST(ParseDocument, SaysTheLineOfAByteThatIsNotUtf8) {
  const auto problem = problem_of("gpus: 8\nname: caf\xE9\n");
  ASSERT_TRUE(problem.has_value());
  EXPECT_EQ(problem->where.line, 2);
}

TEST(ParseDocument, RefusesWhatCannotBeAScenario) {
  std::string deep;
  for (std::size_t i = 0; i <= kMaxDepth; ++i) deep += "[";
  std::string wide = "[";
  for (std::size_t i = 0; i <= kMaxNodes; ++i) wide += "0,";
  const std::string cases[] = {
      "",
      "# only a comment\n",
      "a: 1\n---\nb: 2\n",
      "a: &x [1]\nb: 2\n",
      "a: &a [x]\nb: [*a, *a, *a]\n",
      "a: !!binary aGk=\n",
      "a: [1, 2\n",
      "a: {b: 1\n",
      "[a, b]: 1\n",
      "? {a: 1}\n: 2\n",
      ": 1\n",
      "a: 1\n b: 2\n",
      deep,
      deep + std::string(kMaxDepth + 1, ']'),
      wide + "0]",
      std::string(kMaxFileBytes + 1, 'a'),
      std::string("a: \0b", 5),
  };
  for (const std::string& text : cases) EXPECT_TRUE(problem_of(text).has_value()) << text.substr(0, 40);
}

// Ten thousand brackets would overflow a recursive parser's stack without its depth guard.
TEST(ParseDocument, SurvivesDeepNesting) {
  EXPECT_TRUE(problem_of(std::string(10000, '[')).has_value());
  EXPECT_TRUE(problem_of(std::string(10000, '{')).has_value());
  std::string indented;
  for (int i = 0; i < 600; ++i) indented += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_TRUE(problem_of(indented).has_value());
}

TEST(FindPath, FollowsKeysAndNumbers) {
  const Node root = parse_document("a:\n  b: [x, {c: y}]\n  d: z\n", "f.yaml");
  ASSERT_NE(find_path(root, "a.b[1].c"), nullptr);
  EXPECT_EQ(find_path(root, "a.b[1].c")->text, "y");
  EXPECT_EQ(find_path(root, "a.b[0]")->text, "x");
  EXPECT_EQ(find_path(root, "a.d")->where.line, 3);
  EXPECT_EQ(find_path(root, "")->kind, Node::Kind::kMap);
  for (const char* none : {"b", "a.b[2]", "a.b[-1]", "a.b[x]", "a.b[1", "a.d.e", "a.d[0]", "a.b.c", "a.", "a[0]"}) {
    EXPECT_EQ(find_path(root, none), nullptr) << none;
  }
}

}  // namespace
}  // namespace stepcast::config
