// `stepcast models`: one line for each model, one in detail, JSON; files of the user.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "report/models_output.h"
#include "tests/report/screens.h"

namespace stepcast::report {
namespace {

// The words of the line that starts with `name`.
std::vector<std::string> row_of(const std::string& table, const std::string& name) {
  std::istringstream lines(table);
  std::string row;
  while (std::getline(lines, row) && !row.starts_with(name + " ")) {
  }
  std::istringstream words(row);
  return {std::istream_iterator<std::string>(words), {}};
}

// Cells by hand from the presets' files; counts in billions from their published totals.
TEST(Models, ListsOneLineForEachModel) {
  const ModelList list = read_all_models({});
  EXPECT_GE(list.entries.size(), 46u);
  EXPECT_TRUE(list.unreadable.empty());
  const std::string table = models_table(list);
  expect_narrow(table);
  for (const ModelEntry& entry : list.entries) EXPECT_FALSE(row_of(table, entry.name).empty()) << entry.name;
  EXPECT_EQ(row_of(table, "llama-3.1-8b"), (std::vector<std::string>{"llama-3.1-8b", "llama", "8.030", "8.030", "32",
                                                                     "4096", "32/8", "14336", "-", "128256", "yes"}));
  EXPECT_EQ(row_of(table, "mixtral-8x7b"),
            (std::vector<std::string>{"mixtral-8x7b", "mixtral", "46.70", "12.88", "32", "4096", "32/8", "-", "2", "of",
                                      "8", "x", "14336", "32000", "-"}));
}

TEST(Models, ShowsOneInDetail) {
  const std::string screen = model_screen(read_model("deepseek-v3", {}));
  expect_narrow(screen);
  for (const char* part : {"models/deepseek-v3.json (built in)", "671,026,419,200", "37,552,297,472", "11,610,068,224",
                           "61: 3 x attention + mlp, 58 x attention + experts", "mixture of experts (256, 8 a token)",
                           "multi-head latent attention"}) {
    EXPECT_NE(screen.find(part), std::string::npos) << part << "\n" << screen;
  }
  EXPECT_NE(model_screen(read_model("llama-3.1-8b", {})).find("simulate and run take it"), std::string::npos);
}

TEST(Models, FitsItsScreen) {
  for (const ModelEntry& entry : read_all_models({}).entries) expect_narrow(model_screen(entry));
}

// What is simulated today: dense decoders; a window (StarCoder2's) only of whole sequences.
TEST(Models, SaysWhatIsNotLowered) {
  for (const ModelEntry& entry : read_all_models({}).entries) {
    const bool dense = !entry.shape.experts && !entry.shape.mamba;
    const bool windowed = entry.shape.family == "starcoder2";
    EXPECT_EQ(entry.not_lowered.empty(), dense && !windowed) << entry.name;
  }
}

TEST(Models, ReadsFilesOfTheUserAndSaysWhatIsWrong) {
  const config::SearchPath search = folder_with("models/ours.json", R"({"model_type": "llama", "num_hidden_layers": 4,
    "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 8, "vocab_size": 100})");
  folder_with("models/wrong.json", R"({"model_type": "rwkv"})");
  const ModelList list = read_all_models(search);
  ASSERT_EQ(list.unreadable.size(), 1u);
  const std::string table = models_table(list);
  EXPECT_NE(table.find("wrong is unreadable"), std::string::npos);
  EXPECT_NE(table.find("ours is read from "), std::string::npos);
  EXPECT_EQ(read_model("ours", search).shape.hidden, 64);
}

TEST(Models, NamesTheNearestModel) {
  try {
    read_model("deepseek-v33", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_NE(std::string(error.what()).find("deepseek-v3"), std::string::npos) << error.what();
  }
}

TEST(Models, IsOneJsonObject) {
  const auto json = nlohmann::json::parse(models_json({{read_model("qwen3-30b-a3b", {})}, {}}));
  EXPECT_EQ(json["schema"], "stepcast/models/1");
  ASSERT_EQ(json["models"].size(), 1u);
  const auto& model = json["models"][0];
  EXPECT_EQ(model["name"], "qwen3-30b-a3b");
  EXPECT_EQ(model["family"], "qwen3_moe");
  EXPECT_EQ(model["parameters"]["total"], 30532122624);
  EXPECT_EQ(model["experts"]["top_k"], 8);
  EXPECT_TRUE(model["latent_attention"].is_null());
  EXPECT_EQ(model["layer_kinds"][0]["feed_forward"], "experts");
  EXPECT_EQ(model["layer_kinds"][0]["layers"], 48);
  EXPECT_GT(model["flops_per_token"][0]["full"], model["flops_per_token"][0]["causal"]);
  EXPECT_FALSE(model["not_lowered"].empty());
}

}  // namespace
}  // namespace stepcast::report
