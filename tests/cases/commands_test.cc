// Practitioners' questions that a command answers. D-numbers name the cases; their inputs, with the issue each comes
// from, are in tests/import/cases.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program_run.h"

namespace stepcast::cli {
namespace {

const std::string kCases = "tests/import/cases/";

// What import refuses, with the values that break a rule of the framework and what would work.
struct Refused {
  const char* id;
  std::string arguments;
  std::vector<std::string> mentions;
};

const Refused kRefused[] = {
    {"D01",
     "megatron " + kCases + "D01.sh",
     {"7", "2", "pipeline", "--decoder-first-pipeline-num-layers 3", "Ettt|ttttL"}},
    {"D02", "megatron " + kCases + "D02.sh", {"30", "4", "30 + 2 = 32 divides by 4: 7, 8 x 2, 7"}},
    {"D03",
     "megatron " + kCases + "D03.sh",
     {"80 layers", "16 are 5", "--num-layers-per-virtual-pipeline-stage 1 or 5"}},
    {"D04", "megatron " + kCases + "D04.sh", {"46", "4", "46 + 2 = 48 divides by 4: 11, 12 x 2, 11"}},
    {"D06", "nanotron " + kCases + "D06.yaml", {"batch_accumulation_per_replica 1", "pp - 1 = 7"}},
    {"D07",
     "torchtitan " + kCases + "D07.sh --model " + kCases + "D07.json",
     {"n_kv_heads 2", "tensor_parallel_degree 4"}},
    {"D23", "megatron " + kCases + "D23.sh", {"32", "23", "46", "184", "a world of 1024: data parallel 16"}},
};

TEST(CaseCommands, RefuseWithValuesAndWhatWorks) {
  for (const Refused& refused : kRefused) {
    const ProgramRun run = stepcast("import " + refused.arguments);
    EXPECT_EQ(run.exit_code, 3) << refused.id << run.err;
    EXPECT_EQ(run.out, "") << refused.id;
    for (const std::string& text : refused.mentions) {
      EXPECT_NE(run.err.find(text), std::string::npos) << refused.id << ": " << text << "\n" << run.err;
    }
  }
}

// The same rules hold for a scenario that was written by hand.
TEST(CaseCommands, CheckHoldsScenariosToTheRulesOfTheirFramework) {
  const std::string tiny = "check scenarios/runs/tiny-llama-tp2-pp2.yaml";
  const Refused table[] = {
      {"D06",
       " --set framework=nanotron --set 'plan={tp: 1, pp: 8}' --set gpus=8 --set model.num_hidden_layers=8"
       " --set training.global_batch_size=1",
       {"batch_accumulation_per_replica", "= 1 is below pp - 1 = 7"}},
      {"D07",
       " --set framework=torchtitan --set 'plan={tp: 4, pp: 1}' --set model.num_key_value_heads=2",
       {"2 key-value heads and tp 4: torchtitan does not replicate heads"}},
      {"D23",
       " --set framework=megatron-core --set 'plan={tp: 1, pp: 1}' --set gpus=3 --set training.global_batch_size=4",
       {"global_batch_size 4 does not divide by micro_batch_size * dp = 1 * 3 = 3", "global_batch_size 3 or 6"}},
  };
  for (const Refused& refused : table) {
    const ProgramRun run = stepcast(tiny + refused.arguments);
    EXPECT_EQ(run.exit_code, 1) << refused.id << run.out << run.err;
    for (const std::string& text : refused.mentions) {
      EXPECT_NE((run.out + run.err).find(text), std::string::npos) << refused.id << ": " << text << "\n" << run.out;
    }
  }
}

// The scenario that import makes of a file.
std::string imported(const std::string& arguments, const std::string& name) {
  const std::string file = scratch(name);
  const ProgramRun run = stepcast("import " + arguments + " --out " + file);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return file;
}

void write_text(const std::string& file, const std::string& text) { std::ofstream(file) << text; }

nlohmann::json simulated(const std::string& file) {
  const ProgramRun run = stepcast("simulate " + file + " --json");
  EXPECT_TRUE(run.exit_code == 0 || run.exit_code == 1) << run.err;  // 1: it does not fit
  return nlohmann::json::parse(run.out, nullptr, false);
}

// Six invariants of Megatron-LM broken at once: one problem each, with both values; sequence parallelism without tensor
// parallelism is switched off and told, not refused. Each alone: tests/import/cases_test.cc.
TEST(CaseCommands, D08InvariantsOfMegatron) {
  const std::string script = scratch("d08.sh");
  const std::string start =
      "torchrun --nproc_per_node=8 pretrain_gpt.py --num-layers 4 --seq-length 128 --swiglu --hidden-size 960 ";
  write_text(script, start +
                         "--tensor-model-parallel-size 4 --num-attention-heads 10 --group-query-attention "
                         "--num-query-groups 3 --fp16 --bf16 --tensor-parallel-num-weight-shards 6 "
                         "--overlap-p2p-communication-warmup-flush --fp8-format hybrid --fp4-format e2m1\n");
  const ProgramRun all = stepcast("import megatron " + script);
  EXPECT_EQ(all.exit_code, 3);
  std::size_t problems = 0;
  for (std::size_t at = all.err.find("error:"); at != std::string::npos; at = all.err.find("error:", at + 1))
    ++problems;
  EXPECT_EQ(problems, 6U) << all.err;
  write_text(script, start + "--num-attention-heads 12 --sequence-parallel\n");
  const ProgramRun switched_off = stepcast("import megatron " + script);
  EXPECT_EQ(switched_off.exit_code, 0) << switched_off.err;
  EXPECT_NE((switched_off.out + switched_off.err).find("switched off"), std::string::npos) << switched_off.err;
}

// A script of Megatron's defaults (LayerNorm, GELU, biases, learned positions, dropout) in GPT-3's shape is simulated
// as it stands; its 174,604,259,328 parameters are counted by hand in tests/import/megatron_arguments_test.cc.
TEST(CaseCommands, ScriptOfGpt3) {
  const std::string script = scratch("gpt3.sh");
  write_text(script,
             "torchrun --nproc_per_node 8 --nnodes 16 pretrain_gpt.py --num-layers 96 --hidden-size 12288 \\\n"
             "  --num-attention-heads 96 --seq-length 2048 --max-position-embeddings 2048 --vocab-size 50257 \\\n"
             "  --tensor-model-parallel-size 8 --pipeline-model-parallel-size 16 --sequence-parallel --bf16 \\\n"
             "  --micro-batch-size 1 --global-batch-size 16\n");
  EXPECT_EQ(simulated(imported("megatron " + script, "gpt3.yaml"))["parameters"], 174604259328);
}

// What a script says and this release refuses stays in the scenario; the warning's setting runs.
TEST(CaseCommands, WarningOfImportNamesASettingThatRuns) {
  const std::string script = scratch("overlap.sh");
  write_text(
      script,
      "torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py --num-layers 4 --hidden-size 1024 --swiglu \\\n"
      "  --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 --vocab-size 32000 --bf16 \\\n"
      "  --tensor-model-parallel-size 8 --sequence-parallel --tp-comm-overlap --global-batch-size 8 \\\n"
      "  --optimizer-cpu-offload\n");
  const std::string file = imported("megatron " + script, "overlap.yaml");
  EXPECT_EQ(stepcast("simulate " + file).exit_code, 4);
  const ProgramRun run = stepcast("simulate " + file + " --set plan.offload=none");
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

// 6,738,415,616 parameters N on 8 ranks of data parallelism. Weights 2N and the optimizer's 12N / 8; gradients 4N, and
// beside them the placeholders that Transformer Engine keeps, bf16 and one for each weight's shape: 12288 x 4096,
// 4096 x 4096, 22016 x 4096, 4096 x 11008 and 32000 x 4096. The states alone are 7.5N = 47.07 GiB. The published
// activations of 32 layers are 28.75 GiB.
TEST(CaseCommands, D10MemoryOfLlama7b) {
  const std::string file =
      imported("megatron " + kCases + "D10.sh --set model.vocab_size=32000 --cluster hgx-a100-80", "d10.yaml");
  const nlohmann::json result = simulated(file);
  ASSERT_TRUE(result.is_object());
  constexpr double kParameters = 6738415616.0;
  constexpr double kPlaceholders = 2.0 * 4096 * (12288 + 4096 + 22016 + 11008 + 32000);
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  EXPECT_EQ(result["parameters"], 6738415616);
  const nlohmann::json& stage = result["memory"]["stages"][0];
  EXPECT_NEAR(stage["weights"].get<double>() + stage["optimizer"].get<double>(), 3.5 * kParameters, 1e6);
  EXPECT_NEAR(stage["gradients"].get<double>(), 4 * kParameters + kPlaceholders, 1e6);
  EXPECT_NEAR(7.5 * kParameters / kGiB, 47.07, 0.005);
  EXPECT_GT(stage["activations"].get<double>(), 25 * kGiB);
  EXPECT_LT(stage["activations"].get<double>(), 36 * kGiB);
  EXPECT_NE(result["memory"]["verdict"], "fits");
}

// Measured 296.5 / 420.5 = 0.705. Full recompute alone makes it 0.75 of a step that is all compute; the bubble adds
// little.
TEST(CaseCommands, D20WhyTheSecondRunIsSlower) {
  const nlohmann::json fast = simulated(imported("megatron " + kCases + "D20-run1.sh", "d20-fast.yaml"));
  const nlohmann::json slow = simulated(imported("megatron " + kCases + "D20-run2.sh", "d20-slow.yaml"));
  ASSERT_TRUE(fast.is_object() && slow.is_object());
  const auto rate = [](const nlohmann::json& run) { return run["model_tflops_per_gpu"]["full"].get<double>(); };
  EXPECT_GT(rate(slow) / rate(fast), 0.62);
  EXPECT_LT(rate(slow) / rate(fast), 0.78);
  EXPECT_EQ(slow["plan"]["recompute"], "full[uniform 5]");
  EXPECT_GT(slow["bubble_fraction"].get<double>(), fast["bubble_fraction"].get<double>());
}

// What other frameworks' configurations become is judged and simulated like any scenario.
TEST(CaseCommands, ImportedFrameworksAreSimulated) {
  const std::string nanotron = scratch("nanotron.yaml");
  write_text(nanotron, R"(model:
  model_config: {is_llama_config: true, hidden_size: 2048, intermediate_size: 8192, num_attention_heads: 32,
    num_hidden_layers: 16, num_key_value_heads: 32, vocab_size: 131072, tie_word_embeddings: true,
    max_position_embeddings: 4096}
optimizer: {accumulate_grad_in_fp32: true, zero_stage: 1}
parallelism: {dp: 4, pp: 2, tp: 1, pp_engine: 1f1b}
tokens: {sequence_length: 4096, micro_batch_size: 1, batch_accumulation_per_replica: 16}
)");
  const std::string deepspeed = scratch("ds.json");
  write_text(deepspeed, R"({"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 2,
                            "zero_optimization": {"stage": 3}, "bf16": {"enabled": true}})");
  const std::string titan = scratch("titan.toml");
  write_text(titan, R"([model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 1
seq_len = 8192
[activation_checkpoint]
mode = "selective"
selective_ac_option = "2"
)");
  struct Source {
    std::string arguments, framework, recompute;
  };
  const Source sources[] = {
      {"nanotron " + nanotron, "nanotron", "none"},
      {"deepspeed " + deepspeed + " --gpus 8 --model llama-3.1-8b --set training.sequence_length=4096", "deepspeed",
       "none"},
      {"torchtitan " + titan + " --gpus 8", "torchtitan", "full[every 2]"},
  };
  for (const Source& source : sources) {
    const std::string file = imported(source.arguments, source.framework + ".yaml");
    const ProgramRun check = stepcast("check " + file + " --show-config");
    EXPECT_EQ(check.exit_code, 0) << source.framework << check.out << check.err;
    EXPECT_NE(check.out.find(source.framework + " default"), std::string::npos) << check.out;
    const nlohmann::json result = simulated(file);
    ASSERT_TRUE(result.is_object()) << source.framework;
    EXPECT_GT(result["step_time_s"].get<double>(), 0) << source.framework;
    EXPECT_EQ(result["plan"]["recompute"], source.recompute);
  }
}

}  // namespace
}  // namespace stepcast::cli
