// parse_hf_config on damaged files: any text either gives a sound Architecture or throws stepcast::Error.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/random.h"
#include "tests/models/model_files.h"

namespace stepcast::models {
namespace {

// Pieces that a mutation may insert: numbers at the edges, tokens of JSON and of Python, bytes that are not UTF-8.
const std::string kPieces[] = {"0",       "-1",      "2147483648", "9223372036854775807",
                               "1e308",   "1e999",   "NaN",        "Infinity",
                               "null",    "\"",      "{",          "}",
                               "[",       "]",       ",",          ":",
                               "\xFF",    "\n",      "true",       "\\u0000",
                               "\\ud800", "mixtral", "0.5",        "\xEF\xBB\xBF"};

// Counter-based draws, so that a failing round can be run by its number alone.
class Draws {
 public:
  explicit Draws(std::uint64_t round) : stream_(20240607, "hf-config-fuzz"), next_(round * 1000) {}
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(stream_.integer_at(next_++, bound)); }

 private:
  RandomStream stream_;
  std::uint64_t next_;
};

std::string mutated(std::string text, Draws& draws) {
  const std::size_t count = 1 + draws.below(8);
  for (std::size_t i = 0; i < count && !text.empty(); ++i) {
    const std::size_t at = draws.below(text.size());
    const std::size_t length = std::min(draws.below(12), text.size() - at);
    switch (draws.below(4)) {
      case 0:
        text[at] = static_cast<char>(draws.below(256));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, kPieces[draws.below(std::size(kPieces))]);
        break;
      default:
        text.replace(at, length, kPieces[draws.below(std::size(kPieces))]);
        break;
    }
  }
  return text;
}

bool plain_text(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); });
}

// Every preset, so every family of the presets, and a params.json.
std::vector<std::string> corpus() {
  std::vector<std::string> texts = {
      R"({"dim": 8192, "n_layers": 80, "n_heads": 64, "n_kv_heads": 8, "multiple_of": 4096,
    "ffn_dim_multiplier": 1.3, "vocab_size": 32000, "norm_eps": 1e-05})"};
  for (const std::string& name : testing::preset_names()) texts.push_back(testing::preset_text(name));
  return texts;
}

TEST(ParseHfConfigFuzz, NeverFailsOtherwiseThanByError) {
  const std::vector<std::string> originals = corpus();
  int accepted = 0;
  int refused = 0;
  for (std::uint64_t round = 0; round < 20000; ++round) {
    Draws draws(round);
    const std::string text = mutated(originals[round % originals.size()], draws);
    try {
      std::vector<std::string> ignored;
      const Architecture a = parse_hf_config(text, "fuzz.json", &ignored);
      ASSERT_TRUE(problems_of(a).empty()) << "round " << round;
      ASSERT_GT(count_parameters(a).total, 0) << "round " << round;
      ASSERT_GE(training_flops_per_token(a, 4096).full, training_flops_per_token(a, 4096).causal) << "round " << round;
      for (const std::string& key : ignored) ASSERT_TRUE(plain_text(key)) << "round " << round;
      ++accepted;
    } catch (const Error& e) {
      ASSERT_TRUE(plain_text(e.what())) << "round " << round << ": " << e.what();
      ++refused;
    }
  }
  // Both outcomes are exercised; small edits of a preset leave some files valid.
  EXPECT_GT(accepted, 200);
  EXPECT_GT(refused, 5000);
}

TEST(ParseHfConfigFuzz, TruncationIsAlwaysRefused) {
  const std::string text = testing::preset_text("llama-3.1-8b");
  const std::size_t end = text.rfind('}');
  for (std::size_t length = 0; length <= end; ++length) {
    EXPECT_THROW(parse_hf_config(std::string_view(text).substr(0, length), "cut.json"), Error) << length;
  }
}

TEST(ParseHfConfigFuzz, DeepNestingDoesNotExhaustTheStack) {
  const std::string deep = "{\"model_type\": " + std::string(200000, '[') + std::string(200000, ']') + "}";
  EXPECT_THROW(parse_hf_config(deep, "deep.json"), Error);
}

}  // namespace
}  // namespace stepcast::models
