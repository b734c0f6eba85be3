// parse_hf_config: what it reads, its defaults, and what it refuses, with locations.
#include "models/hf_config.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "tests/models/model_files.h"

namespace stepcast::models {
namespace {

using testing::expect_problem;
using testing::problems_in;

// A valid file with one key per line, so that a key's line is its position + 2 (the brace is line 1).
const std::vector<std::pair<std::string, std::string>> kMinimal = {
    {"model_type", "\"llama\""}, {"num_hidden_layers", "4"},   {"hidden_size", "64"},
    {"intermediate_size", "96"}, {"num_attention_heads", "8"}, {"vocab_size", "100"},
};

// The minimal file with keys replaced, added or (empty value) removed.
std::string minimal_with(const std::vector<std::pair<std::string, std::string>>& changes) {
  auto keys = kMinimal;
  for (const auto& change : changes) {
    const auto same = [&](const auto& key) { return key.first == change.first; };
    const auto found = std::find_if(keys.begin(), keys.end(), same);
    if (found == keys.end()) {
      keys.push_back(change);
    } else if (change.second.empty()) {
      keys.erase(found);
    } else {
      found->second = change.second;
    }
  }
  std::string text = "{";
  for (std::size_t i = 0; i < keys.size(); ++i) {
    text += std::string(i == 0 ? "" : ",") + "\n\"" + keys[i].first + "\": " + keys[i].second;
  }
  return text + "\n}\n";
}

TEST(ParseHfConfig, ReadsEveryFieldOfLlama32) {
  const Architecture a = testing::preset("llama-3.2-3b");
  EXPECT_EQ(a.name, "llama-3.2-3b");
  EXPECT_EQ(a.layers, 28);
  EXPECT_EQ(a.hidden, 3072);
  EXPECT_EQ(a.ffn, 8192);
  EXPECT_EQ(a.heads, 24);
  EXPECT_EQ(a.kv_heads, 8);
  EXPECT_EQ(a.head_dim, 128);
  EXPECT_EQ(a.vocab, 128256);
  EXPECT_EQ(a.padded_vocab, 128256);
  EXPECT_EQ(a.max_positions, 131072);
  EXPECT_TRUE(a.tied_embeddings);
  EXPECT_EQ(a.norm_eps, 1e-5);
  EXPECT_EQ(a.rope_theta, 500000.0);
}

// Defaults of LlamaConfig: 64 / 8 = 8 per head, as many kv heads as heads, 2048 positions, eps 1e-6, theta 10000,
// untied.
TEST(ParseHfConfig, FillsInTheDefaultsOfLlamaConfig) {
  const Architecture a = parse_hf_config(minimal_with({}), "m.json");
  EXPECT_EQ(a.head_dim, 8);
  EXPECT_EQ(a.kv_heads, 8);
  EXPECT_EQ(a.max_positions, 2048);
  EXPECT_EQ(a.norm_eps, 1e-6);
  EXPECT_EQ(a.rope_theta, 10000.0);
  EXPECT_FALSE(a.tied_embeddings);
}

TEST(ParseHfConfig, TakesNullForAbsent) {
  const Architecture a = parse_hf_config(
      minimal_with({{"head_dim", "null"}, {"num_key_value_heads", "null"}, {"tie_word_embeddings", "null"}}), "m.json");
  EXPECT_EQ(a.head_dim, 8);
  EXPECT_EQ(a.kv_heads, 8);
  EXPECT_FALSE(a.tied_embeddings);
}

TEST(ParseHfConfig, LetsHeadDimDifferFromHiddenOverHeads) {
  const Architecture a = parse_hf_config(minimal_with({{"num_attention_heads", "6"}, {"head_dim", "16"}}), "m.json");
  EXPECT_EQ(a.q_width(), 96);
}

TEST(ParseHfConfig, ReadsThetaWhereTransformers5PutsIt) {
  EXPECT_EQ(parse_hf_config(minimal_with({{"rope_parameters", "{\"rope_theta\": 7e5}"}}), "m.json").rope_theta, 7e5);
  expect_problem(minimal_with({{"rope_parameters", "{\"rope_theta\": \"x\"}"}}), ErrorKind::kInput, 8,
                 "rope_parameters", "expected a number");
}

TEST(ParseHfConfig, NamesTheModelAfterFileOrFolder) {
  EXPECT_EQ(parse_hf_config(minimal_with({}), "a/b/tiny.json").name, "tiny");
  EXPECT_EQ(parse_hf_config(minimal_with({}), "a/tiny-llama/config.json").name, "tiny-llama");
  EXPECT_EQ(parse_hf_config(minimal_with({}), "config.json").name, "config");
  EXPECT_EQ(parse_hf_config(minimal_with({}), "models/tiny.json (built in)").name, "tiny");
}

TEST(ParseHfConfig, ListsTheKeysWithoutInfluenceInFileOrder) {
  std::vector<std::string> ignored;
  parse_hf_config(testing::preset_text("llama-3.1-8b"), "m.json", &ignored);
  EXPECT_EQ(ignored, (std::vector<std::string>{"architectures", "torch_dtype", "rope_scaling"}));
}

TEST(ParseHfConfig, SkipsAByteOrderMark) { EXPECT_TRUE(problems_in("\xEF\xBB\xBF" + minimal_with({})).empty()); }

TEST(ParseHfConfig, RefusesOtherModelTypesWithoutJudgingTheRest) {
  expect_problem("{\n\"model_type\": \"rwkv\"}", ErrorKind::kUnsupported, 2, "model_type", "rwkv");
  expect_problem("{\"model_type\": 3}", ErrorKind::kInput, 1, "model_type", "expected a string, found 3");
  expect_problem("{}", ErrorKind::kInput, 0, "model_type", "missing");
}

TEST(ParseHfConfig, DescribesBiasesActivationsAndDropout) {
  const Architecture a = parse_hf_config(
      minimal_with(
          {{"attention_bias", "true"}, {"mlp_bias", "true"}, {"hidden_act", "\"gelu\""}, {"attention_dropout", "0.1"}}),
      "m.json");
  EXPECT_TRUE(a.qkv_bias && a.attention_output_bias && a.mlp_bias);
  EXPECT_EQ(a.activation, Activation::kGelu);
  EXPECT_EQ(a.dropout, 0.1);
}

TEST(ParseHfConfig, RefusesVariantsThatAreNotDescribed) {
  const std::vector<Problem> problems =
      problems_in(minimal_with({{"sliding_window", "4096"}, {"hidden_act", "\"mish\""}}));
  ASSERT_EQ(problems.size(), 2u);
  const char* const fields[] = {"sliding_window", "hidden_act"};
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(problems[i].kind, ErrorKind::kUnsupported);
    EXPECT_EQ(problems[i].where.field, fields[i]);
    EXPECT_EQ(problems[i].where.line, static_cast<int>(8 + i));
  }
  EXPECT_TRUE(problems_in(minimal_with({{"sliding_window", "null"}, {"attention_dropout", "0.0"}})).empty());
  EXPECT_TRUE(problems_in(minimal_with({{"sliding_window", "4096"}, {"use_sliding_window", "false"}})).empty());
}

TEST(ParseHfConfig, RefusesEachBadValueWithItsLine) {
  const struct {
    const char* key;
    const char* value;
    int line;
    const char* part;
  } cases[] = {
      {"num_hidden_layers", "0", 3, "is 0, not between 1"},
      {"num_hidden_layers", "-4", 3, "is -4"},
      {"num_hidden_layers", "4.0", 3, "whole number, found 4.0"},
      {"num_hidden_layers", "\"4\"", 3, "whole number, found \"4\""},
      {"num_hidden_layers", "[4]", 3, "found a list"},
      {"num_hidden_layers", "true", 3, "found true"},
      {"num_hidden_layers", "2147483649", 3, "is 2147483649"},
      {"num_hidden_layers", "18446744073709551615", 3, "at most 2^31"},
      {"hidden_size", "99999999999999999999999", 4, "whole number"},
      {"num_attention_heads", "7", 6, "64 does not divide by 7"},
      {"num_key_value_heads", "3", 8, "8 attention heads do not divide into 3"},
      {"head_dim", "7", 8, "rotary"},
      {"rms_norm_eps", "\"small\"", 8, "expected a number"},
      {"rms_norm_eps", "-1", 8, "above 0 and below 1"},
      {"rope_theta", "0", 8, "at least 1"},
      {"tie_word_embeddings", "1", 8, "true or false, found 1"},
  };
  for (const auto& c : cases) {
    expect_problem(minimal_with({{c.key, c.value}}), ErrorKind::kInput, c.line, c.key, c.part);
  }
}

// 2^31 layers of about 2^35 parameters: 2^66.
TEST(ParseHfConfig, RefusesAnAbsurdTotal) {
  expect_problem(minimal_with({{"num_hidden_layers", "2147483648"}, {"intermediate_size", "2147483648"}}),
                 ErrorKind::kInput, 0, "", "2^50");
}

TEST(ParseHfConfig, ReportsMissingKeysOnceEach) {
  const std::vector<Problem> problems = problems_in("{\"model_type\": \"llama\"}");
  ASSERT_EQ(problems.size(), 5u) << to_text(problems);
  for (const Problem& problem : problems) EXPECT_EQ(problem.message, "missing key");
}

TEST(ParseHfConfig, ReportsAllProblemsAtOnce) {
  const std::vector<Problem> problems = problems_in(
      minimal_with({{"num_hidden_layers", "0"}, {"hidden_size", ""}, {"vocab_size", "1.5"}, {"mlp_bias", "1"}}));
  ASSERT_EQ(problems.size(), 4u) << to_text(problems);
  EXPECT_EQ(problems[0].where.field, "mlp_bias");
  EXPECT_EQ(problems[1].where.field, "hidden_size");
  EXPECT_EQ(problems[2].where.field, "vocab_size");
  EXPECT_EQ(problems[3].where.field, "num_hidden_layers");
}

TEST(ParseHfConfig, RefusesARepeatedKey) {
  expect_problem(
      "{\"model_type\": \"llama\", \"num_hidden_layers\": 4, \"hidden_size\": 64, \"intermediate_size\": 96,"
      "\n\"num_attention_heads\": 8, \"vocab_size\": 100,\n\"hidden_size\": 128}",
      ErrorKind::kInput, 3, "hidden_size", "first on line 1");
}

TEST(ParseHfConfig, RefusesTextThatIsNotJson) {
  expect_problem("", ErrorKind::kInput, 1, "", "not valid JSON");
  expect_problem("[1, 2]", ErrorKind::kInput, 1, "", "expected an object of keys, found a list");
  expect_problem("{\n\"a\": 1,\n\"b\": }", ErrorKind::kInput, 3, "", "not valid JSON");
  expect_problem("{\n\"a\": \"unclosed\n}", ErrorKind::kInput, 2, "", "not valid JSON");
  expect_problem("{\n\"a\":\n\"\xC3\x28\"}", ErrorKind::kInput, 3, "", "UTF-8");
  expect_problem("{\n\"a\": 1e999}", ErrorKind::kInput, 2, "", "out of range");
}

TEST(ParseHfConfig, RefusesTheTokensPythonWritesForNonFiniteNumbers) {
  expect_problem("{\n\"rope_theta\": NaN}", ErrorKind::kInput, 2, "", "NaN is not JSON");
  expect_problem("{\n\n\"rope_theta\": Infinity}", ErrorKind::kInput, 3, "", "Infinity is not JSON");
  expect_problem("{\n\"rope_theta\": -Infinity}", ErrorKind::kInput, 2, "", "Infinity is not JSON");
}

}  // namespace
}  // namespace stepcast::models
