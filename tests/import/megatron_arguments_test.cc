// Megatron arguments that say what the model is, and those that must not pass in silence: mistyped ones, zeros, what is
// kept in host memory, and what this release refuses to simulate.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

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

TEST(MegatronPlan, OverlapsTensorParallelCommunication) {
  const Answer a = gpt("--tensor-model-parallel-size 2 --sequence-parallel --tp-comm-overlap");
  EXPECT_EQ(a.value("plan.overlap.tp_comm"), "true") << a.problem_text();
  EXPECT_EQ(code_of(a), 0);
  EXPECT_TRUE(a.imported.warnings.empty());
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
  ASSERT_EQ(a.problems.size(), 3U) << a.problem_text();
  EXPECT_EQ(a.problems[0].kind, ErrorKind::kInput);
  EXPECT_EQ(a.problems[0].where.line, 1);
  EXPECT_EQ(a.problems[0].help.front(), "did you mean --sequence-parallel?");
  EXPECT_EQ(a.problems[1].help.front(), "did you mean --pipeline-model-parallel-size?");
  EXPECT_EQ(a.problems[2].message, "Megatron-LM has no --our-own-loss");
}

// The list of known flags may lack a release's: who knows better can say so.
TEST(MegatronRefusals, TellUnknownFlagsWhereThatIsAllowed) {
  ImportRequest request;
  request.allow_unknown = true;
  const Answer a = gpt("--our-own-loss 3", request);
  EXPECT_EQ(a.problem_text(), "");
  EXPECT_TRUE(std::any_of(a.imported.ignored.begin(), a.imported.ignored.end(), [](const Ignored& flag) {
    return flag.name == "--our-own-loss" && flag.reason == Reason::kUnknown;
  }));
  const Answer refused = gpt("--our-own-loss 3");
  ASSERT_EQ(refused.problems.size(), 1U) << refused.problem_text();
  EXPECT_NE(refused.problems[0].help.front().find("--allow-unknown"), std::string::npos);
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

// argparse.ArgumentParser(allow_abbrev=False): Megatron-LM takes no shortened names.
TEST(MegatronFlags, TellsWhatAShortNameMeans) {
  EXPECT_EQ(abbreviated_megatron_flag("use-dist-optimizer"), "use-distributed-optimizer");
  EXPECT_EQ(abbreviated_megatron_flag("cp-size"), "context-parallel-size");
  EXPECT_EQ(abbreviated_megatron_flag("tp"), "tensor-model-parallel-size");
  EXPECT_EQ(abbreviated_megatron_flag("pipeline-parallel-size"), "pipeline-model-parallel-size");
  EXPECT_EQ(abbreviated_megatron_flag("mbs"), "micro-batch-size");
  EXPECT_EQ(abbreviated_megatron_flag("our-own-loss"), "");
  EXPECT_EQ(abbreviated_megatron_flag("use-distributed-optimizer"), "");
}

TEST(MegatronRefusals, NameFlagsThatMegatronWouldStopAt) {
  const std::pair<const char*, const char*> table[] = {{"--use-dist-optimizer", "--use-distributed-optimizer"},
                                                       {"--cp-size 2", "--context-parallel-size"},
                                                       {"--tensor-model-parallel 2", "--tensor-model-parallel-size"}};
  for (const auto& [flag, meant] : table) {
    const Answer a = gpt(flag);
    ASSERT_EQ(a.problems.size(), 1U) << flag << a.problem_text();
    EXPECT_EQ(a.problems[0].kind, ErrorKind::kInput);
    EXPECT_EQ(a.problems[0].help.front(), std::string("did you mean ") + meant + "?");
  }
  EXPECT_EQ(gpt("--our-own-loss 2").problems.size(), 1U);
  // Logging and flags of older releases move nothing; a fork's program has flags of its own.
  EXPECT_EQ(gpt("--log-our-own 2 --no-async-tensor-model-parallel-allreduce").problem_text(), "");
  const Answer fork =
      import_text("megatron", "run.sh", "torchrun --nproc_per_node 8 train.py " + kGpt + "--our-own 2\n");
  ASSERT_EQ(fork.problem_text(), "");
  EXPECT_EQ(fork.ignored("--our-own")->reason, Reason::kUnknown);
}

// What changes the model, its sharding or its precision is never left out in silence.
TEST(MegatronRefusals, NameWhatChangesTheRun) {
  for (const char* flag :
       {"--multi-latent-attention", "--mtp-num-layers 1", "--use-torch-fsdp2", "--fp32-residual-connection",
        "--qk-layernorm", "--spec my.module", "--experimental-attention-variant dsa", "--hybrid-layer-pattern M*",
        "--tensor-parallel-num-weight-shards 16", "--exp-avg-dtype bf16 --use-precision-aware-optimizer",
        "--rotary-percent 0.5 --position-embedding-type rope", "--transformer-impl inference_optimized",
        "--fp8-hybrid"}) {
    const Answer a = gpt(flag);
    ASSERT_EQ(a.problems.size(), 1U) << flag << a.problem_text();
    EXPECT_EQ(a.problems[0].kind, ErrorKind::kUnsupported) << flag;
    EXPECT_EQ(a.problems[0].where.line, 1) << flag;
    EXPECT_NE(a.problem_text().find(std::string(flag).substr(2, 4)), std::string::npos) << a.problem_text();
  }
  EXPECT_EQ(gpt("--mtp-num-layers 0 --softmax-type vanilla --rotary-percent 1.0 --tokenizer-type X").problem_text(),
            "");
  ImportRequest request;
  request.model = "llama-3.1-8b";  // --model takes the place of the flags of the model
  EXPECT_EQ(gpt("--multi-latent-attention", request).problem_text(), "");
}

// LocalSpecProvider's attention is DotProductAttention, which keeps scores in memory.
TEST(MegatronPlan, TakesUnfusedAttentionFromLocalLayers) {
  EXPECT_EQ(gpt("--transformer-impl local").value("stack.attention"), "unfused");
  EXPECT_EQ(gpt("--transformer-impl transformer_engine").value("stack.attention"), "-");
  const Answer flash = gpt("--transformer-impl local --use-flash-attn");
  EXPECT_EQ(flash.value("stack.attention"), "-");
  EXPECT_NE(import_report(flash.imported).find("fused attention, of the legacy layers"), std::string::npos);
  for (const char* flags : {"--sequence-parallel --tp-comm-overlap", "--fp8-format hybrid", "--delay-wgrad-compute",
                            "--tensor-model-parallel-size 4 --context-parallel-size 2"}) {
    const Answer a = gpt(std::string("--transformer-impl local ") + flags);
    ASSERT_EQ(a.problems.size(), 1U) << flags << a.problem_text();
    EXPECT_NE(a.problem_text().find("Transformer Engine's layers"), std::string::npos) << a.problem_text();
  }
}

// validate_args switches accumulation in fp32 on only for fp32 main gradients.
TEST(MegatronTraining, KeepsGradientsInTheTypeOfTheMainOnes) {
  const Answer a = gpt("--main-grads-dtype bf16 --use-precision-aware-optimizer");
  ASSERT_EQ(a.problem_text(), "");
  EXPECT_EQ(a.value("training.precision.grads"), "bf16");
  EXPECT_EQ(a.value("training.precision.grad_reduce"), "bf16");
  EXPECT_EQ(gpt("--main-grads-dtype fp32").value("training.precision.grads"), "fp32");
  EXPECT_EQ(gpt("--main-grads-dtype bf16").problems.size(), 1U);
  EXPECT_EQ(gpt("--main-grads-dtype bf16 --use-precision-aware-optimizer --accumulate-allreduce-grads-in-fp32")
                .problems.size(),
            1U);
}

TEST(MegatronPlan, TellsSingleFusionsSwitchedOff) {
  const Answer a =
      gpt("--no-gradient-accumulation-fusion --no-bias-swiglu-fusion --no-rope-fusion --no-persist-layer-norm "
          "--disable-tp-comm-bulk-dgrad --no-tp-comm-split-ag");
  ASSERT_EQ(a.problem_text(), "");
  EXPECT_EQ(a.value("stack.gradient_accumulation"), "separate");
  EXPECT_EQ(gpt("").value("stack.gradient_accumulation"), "-");
  for (const char* flag : {"--no-bias-swiglu-fusion", "--no-rope-fusion", "--no-persist-layer-norm",
                           "--disable-tp-comm-bulk-dgrad", "--no-tp-comm-split-ag"}) {
    ASSERT_NE(a.ignored(flag), nullptr) << flag;
    EXPECT_EQ(a.ignored(flag)->reason, Reason::kNotSupported) << flag;
  }
}

TEST(MegatronStack, TakesTheAllocatorFromTheEnvironment) {
  const auto with = [](const std::string& line) {
    return import_text("megatron", "run.sh", line + "torchrun --nproc_per_node 8 pretrain_gpt.py " + kGpt + "\n");
  };
  EXPECT_EQ(with("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n").value("stack.allocator"), "expandable");
  EXPECT_EQ(
      with("PYTORCH_CUDA_ALLOC_CONF=\"max_split_size_mb:512, expandable_segments:True\" ").value("stack.allocator"),
      "expandable");
  EXPECT_EQ(with("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False\n").value("stack.allocator"), "default");
  const Answer none = with("");
  EXPECT_EQ(none.value("stack.allocator"), "default");
  EXPECT_NE(import_report(none.imported).find("assumed: stack.allocator default: PYTORCH_CUDA_ALLOC_CONF is not set"),
            std::string::npos);
}

}  // namespace
}  // namespace stepcast::imports
