// Megatron arguments that say what the model is, and those that must not pass in silence: mistyped ones, zeros, what is
// kept in host memory, and what this release refuses to simulate.
#include <gtest/gtest.h>

#include "import/megatron_flags.h"
#include "plan/scenario_reader.h"
#include "tests/import/imported_text.h"

namespace stepcast::imports {
namespace {

const std::string kGpt =
    "--num-layers 96 --hidden-size 12288 --num-attention-heads 96 --seq-length 2048 --max-position-embeddings 2048 "
    "--vocab-size 50257 --bf16 --tensor-model-parallel-size 8 --micro-batch-size 1 --global-batch-size 8 ";

Answer gpt(const std::string& flags, ImportRequest request = {}) {
  return import_text("megatron", "run.sh", "torchrun --nproc_per_node 8 pretrain_gpt.py " + kGpt + flags + "\n",
                     std::move(request));
}

plan::ReadScenario read(const Answer& a) {
  const ScratchFolder folder;
  config::ScenarioSource source;
  source.file = folder.write("run.yaml", scenario_yaml(a.imported));
  return plan::read_scenario(source);
}

// The exit code the reader would give: 0 where the scenario is taken.
int code_of(const Answer& a) {
  try {
    const plan::ReadScenario scenario = read(a);
    return scenario.violations.empty() ? 0 : static_cast<int>(scenario.violations.front().kind);
  } catch (const Error& fault) {
    return fault.exit_code();
  }
}

// GPT-3's shape. A layer: attention 4 h^2 + 4 h, MLP 8 h^2 + 5 h, two norms 4 h; with h = 12288 that is 12 *
// 150,994,944
// + 13 * 12,288 = 1,812,099,072, and 173,961,510,912 in 96 layers. The tied table of 50,257 tokens has 617,558,016, the
// positions 2048 * 12,288 = 25,165,824, the last norm 24,576. The padding of the table to 51,200 is no parameter.
TEST(MegatronModel, ReadsItsDefaultsAsAGpt) {
  const Answer a = gpt("");
  ASSERT_EQ(a.problem_text(), "");
  const plan::ReadScenario scenario = read(a);
  EXPECT_TRUE(scenario.violations.empty());
  EXPECT_EQ(models::count_parameters(scenario.scenario.model).total, 174604259328);
  EXPECT_EQ(scenario.scenario.model.padded_vocab, 51200);  // a multiple of 128 * 8
  EXPECT_TRUE(scenario.scenario.model.tied_embeddings);
  EXPECT_EQ(scenario.scenario.training.dropout, 0.1);  // Megatron's default for both
}

TEST(MegatronModel, TakesEachSwitchByItself) {
  const Answer a =
      gpt("--normalization RMSNorm --disable-bias-linear --position-embedding-type rope --squared-relu "
          "--untie-embeddings-and-output-weights --attention-dropout 0.0 --hidden-dropout 0.0");
  EXPECT_EQ(a.value("model.normalization"), "RMSNorm");
  EXPECT_EQ(a.value("model.add_bias_linear"), "false");
  EXPECT_EQ(a.value("model.position_embedding_type"), "rope");
  EXPECT_EQ(a.value("model.hidden_act"), "relu2");
  EXPECT_EQ(a.value("model.tie_word_embeddings"), "false");
  EXPECT_EQ(a.value("training.dropout"), "0");
  EXPECT_EQ(code_of(a), 0);
}

TEST(MegatronModel, TellsWhereGeluIsNoTanh) {
  EXPECT_EQ(import_report(gpt("").imported).find("erf"), std::string::npos);
  for (const char* flag : {"--no-bias-gelu-fusion", "--disable-bias-linear"}) {
    const std::string said = import_report(gpt(flag).imported);
    EXPECT_NE(said.find(std::string("run.sh:1: ") + flag + " makes it the erf form"), std::string::npos) << said;
  }
}

TEST(MegatronModel, RefusesTwoProbabilitiesOfDropout) {
  const Answer a = gpt("--attention-dropout 0");
  ASSERT_EQ(a.problems.size(), 1U) << a.problem_text();
  EXPECT_EQ(a.problems[0].kind, ErrorKind::kUnsupported);
  ImportRequest request;
  request.settings = {config::parse_setting("training.dropout=0.1")};
  EXPECT_EQ(code_of(gpt("--attention-dropout 0", request)), 0);
}

// Each is written under a key that the reader refuses, and the setting that the warning names runs.
TEST(MegatronRefusals, SayWhatRunsInstead) {
  struct Refused {
    std::string flags;
    std::string field;
    std::string value;
    std::string setting;
  };
  const std::string offload = "plan.offload=none";
  const std::string fine = "--fine-grained-activation-offloading --offload-modules core_attn";
  const std::vector<Refused> table = {
      {"--optimizer-cpu-offload --optimizer-offload-fraction 0.5", "plan.offload.optimizer.fraction", "0.5", offload},
      {"--optimizer-cpu-offload", "plan.offload.optimizer.fraction", "1", offload},
      {"--cpu-offloading --cpu-offloading-num-layers 24", "plan.offload.activations.fraction", "0.25", offload},
      {"--cpu-offloading-num-layers 96 --cpu-offloading-weights", "plan.offload.params", "cpu", offload},
      {fine, "plan.offload.activations.modules", "[core_attn]", offload},
      {"--sequence-parallel --tp-comm-overlap", "plan.overlap.tp_comm", "true", "plan.overlap.tp_comm=false"},
  };
  for (const Refused& refused : table) {
    const Answer a = gpt(refused.flags);
    EXPECT_EQ(a.value(refused.field), refused.value) << refused.flags << a.problem_text();
    EXPECT_EQ(code_of(a), 4) << refused.flags;
    EXPECT_NE(import_report(a.imported).find("warning: "), std::string::npos) << refused.flags;
    EXPECT_NE(import_report(a.imported).find("--set " + refused.setting), std::string::npos) << refused.flags;
    ImportRequest request;
    request.settings = {config::parse_setting(refused.setting)};
    const Answer other = gpt(refused.flags, request);
    EXPECT_EQ(code_of(other), 0) << refused.flags;
    EXPECT_TRUE(other.imported.warnings.empty()) << refused.flags;
  }
}

TEST(MegatronRefusals, NameAWindowThatHidesKeys) {
  for (const char* window : {"1024,0", "\"(1024, 0)\"", "1024 0"}) {
    const Answer a = gpt(std::string("--window-size ") + window);
    ASSERT_EQ(a.problems.size(), 1U) << window << a.problem_text();
    EXPECT_EQ(a.problems[0].kind, ErrorKind::kUnsupported);
    EXPECT_EQ(a.problems[0].where.field, "--window-size");
  }
  EXPECT_EQ(gpt("--window-size 4096,0").problem_text(), "");  // longer than the 2048 tokens of a sequence
}

TEST(MegatronRefusals, NameMistypedFlagsBeforeTheirConsequences) {
  const Answer a = gpt("--tp-comm-overlap --sequence-paralell --pipeline-model-paralel-size 2 --fp16 --our-own-loss 3");
  ASSERT_EQ(a.problems.size(), 2U) << a.problem_text();
  EXPECT_EQ(a.problems[0].kind, ErrorKind::kInput);
  EXPECT_EQ(a.problems[0].where.line, 1);
  EXPECT_EQ(a.problems[0].help.front(), "did you mean --sequence-parallel?");
  EXPECT_EQ(a.problems[1].help.front(), "did you mean --pipeline-model-parallel-size?");
}

TEST(MegatronRefusals, RefuseZeroAndBelow) {
  for (const char* flag : {"--micro-batch-size", "--global-batch-size", "--num-layers", "--hidden-size", "--seq-length",
                           "--tensor-model-parallel-size", "--vocab-size"}) {
    for (const char* value : {" 0", " -1"}) {
      const std::string said = gpt(flag + std::string(value)).problem_text();
      EXPECT_NE(said.find("run.sh:1: " + std::string(flag)), std::string::npos) << flag << value << "\n" << said;
    }
  }
}

// Two letters in long names, one in short ones; digits tell the flags of forks.
TEST(MegatronFlags, TellsMistypedFromForeign) {
  EXPECT_EQ(mistyped_megatron_flag("sequence-paralell"), "sequence-parallel");
  EXPECT_EQ(mistyped_megatron_flag("hiden-size"), "hidden-size");
  EXPECT_EQ(mistyped_megatron_flag("sequence-parallel"), "");
  EXPECT_EQ(mistyped_megatron_flag("adam-beta3"), "");
  EXPECT_EQ(mistyped_megatron_flag("our-own-loss"), "");
  EXPECT_EQ(mistyped_megatron_flag("hidden-scale"), "");
}

}  // namespace
}  // namespace stepcast::imports
