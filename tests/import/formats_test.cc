// torchtitan, nanotron, DeepSpeed and Megatron-Bridge: names and identities of their configuration references.
#include <gtest/gtest.h>

#include "plan/scenario_reader.h"
#include "tests/import/imported_text.h"

namespace stepcast::imports {
namespace {

constexpr const char* kTitan = R"([model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 2
seq_len = 8192
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
[float8]
recipe_name = "rowwise"
)";

ImportRequest on(std::int64_t gpus, const std::string& model = "") {
  ImportRequest request;
  request.gpus = gpus;
  request.model = model;
  return request;
}

TEST(TorchtitanImport, CountsTheLocalBatchPerStep) {
  const Answer a = import_text("torchtitan", "run.toml", kTitan, on(128));
  ASSERT_EQ(a.problem_text(), "");
  EXPECT_EQ(a.value("training.global_batch_size"), "256");  // 2 * 128
  EXPECT_EQ(a.value("plan.micro_batch_size"), "2");
  EXPECT_EQ(a.value("plan.zero"), "3");
  EXPECT_EQ(a.value("model.config"), "llama-3.1-8b");
  EXPECT_EQ(a.value("plan.recompute.policy"), "op");
  ASSERT_EQ(a.imported.converted.size(), 1U);
  EXPECT_EQ(a.ignored("float8.recipe_name")->reason, Reason::kNoInfluence);  // no converter asks for float8
}

// What the reader refuses, and the settings that run instead: then it is taken.
TEST(TorchtitanImport, SaysWhatRunsInsteadOfCompileAndOp) {
  const std::string text = std::string(kTitan) + "[compile]\nenable = true\n";
  const auto reads = [](const Answer& a) {
    const ScratchFolder folder;
    config::ScenarioSource source;
    source.file = folder.write("run.yaml", scenario_yaml(a.imported));
    return plan::read_scenario(source).violations.empty();
  };
  const Answer a = import_text("torchtitan", "run.toml", text, on(8));
  ASSERT_EQ(a.imported.warnings.size(), 2U) << import_report(a.imported);
  EXPECT_NE(a.imported.warnings[0].find("--set plan.recompute=full"), std::string::npos);
  EXPECT_NE(a.imported.warnings[1].find("--set stack.compile=none"), std::string::npos);
  EXPECT_THROW(reads(a), Error);
  ImportRequest request = on(8);
  request.settings = {config::parse_setting("plan.recompute=full"), config::parse_setting("stack.compile=none")};
  const Answer other = import_text("torchtitan", "run.toml", text, request);
  EXPECT_TRUE(other.imported.warnings.empty());
  EXPECT_TRUE(reads(other));
}

// With a pipeline the local batch of 8 is cut into microbatches of 1: 8 * dp 2 sequences a step.
TEST(TorchtitanImport, CutsTheLocalBatchForAPipeline) {
  const Answer a = import_text("torchtitan", "run.sh",
                               "./run_train.sh --model.name llama3 --model.flavor 8B --training.local_batch_size 8 "
                               "--parallelism.pipeline_parallel_degree=4 --parallelism.data_parallel_shard_degree 2 "
                               "--parallelism.pipeline_parallel_schedule Interleaved1F1B --training.seq_len 4096\n");
  ASSERT_EQ(a.problem_text(), "");
  EXPECT_EQ(a.value("gpus"), "8");
  EXPECT_EQ(a.value("plan.micro_batch_size"), "1");
  EXPECT_EQ(a.value("training.global_batch_size"), "16");
  EXPECT_EQ(a.value("plan.schedule"), "interleaved_1f1b");
  EXPECT_EQ(a.value("plan.vp"), "2");
}

TEST(TorchtitanImport, LaysFlagsOverTheFileTheyName) {
  const ScratchFolder folder;
  folder.write("base.toml", kTitan);
  ImportRequest request = on(16);
  request.format = "torchtitan";
  request.file = folder.write(
      "run.sh", "CONFIG_FILE=${CONFIG_FILE:-base.toml} ./run_train.sh --parallelism.tensor_parallel_degree 2\n");
  const Answer a = answer(request);
  ASSERT_EQ(a.problem_text(), "");
  EXPECT_EQ(a.value("plan.tp"), "2");
  EXPECT_EQ(a.value("training.sequence_length"), "8192");
  EXPECT_EQ(a.value("training.global_batch_size"), "16");  // 2 * dp 8
}

TEST(TorchtitanImport, TakesHybridShardsApart) {
  const Answer a = import_text("torchtitan", "run.toml",
                               std::string(kTitan) + "[parallelism]\ndata_parallel_replicate_degree = 4\n", on(32));
  EXPECT_EQ(a.value("plan.dp_replicate"), "4");
  EXPECT_EQ(a.value("plan.dp_shard"), "8");
}

TEST(TorchtitanImport, NamesTheLineOfABrokenFile) {
  const Answer a = import_text("torchtitan", "run.toml", "[model]\nname = \n", on(8));
  ASSERT_EQ(a.problems.size(), 1U);
  EXPECT_EQ(a.problems[0].where.line, 2);
}

// Refused where the key that is meant is missing; told where it is there as well.
TEST(TorchtitanImport, NamesMisspeltKeysInTheFilesSpelling) {
  const std::string model = "[model]\nname = \"llama3\"\nflavor = \"8B\"\nflavuor = \"70B\"\n[training]\nsteps = 10\n";
  const Answer told = import_text("torchtitan", "run.toml", model, on(8));
  ASSERT_TRUE(told.problems.empty()) << told.problem_text();
  const std::string report = import_report(told.imported);
  EXPECT_NE(report.find("did you mean model.flavor?"), std::string::npos) << report;
  EXPECT_EQ(report.find("training.steps"), std::string::npos) << report;
  const Answer refused = import_text("torchtitan", "run.toml", model + "local_batch_sise = 4\n", on(8));
  ASSERT_EQ(refused.problems.size(), 1U) << refused.problem_text();
  EXPECT_EQ(refused.problems[0].where.line, 7);
  EXPECT_EQ(refused.problems[0].help.front(), "did you mean local_batch_size?");
}

TEST(TorchtitanImport, RefusesWhatMovesParametersOrStages) {
  const std::string start = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n";
  const Answer a = import_text("torchtitan", "run.toml", start + "[training]\nenable_cpu_offload = true\n", on(8));
  ASSERT_EQ(a.problems.size(), 1U) << a.problem_text();
  EXPECT_EQ(a.problems[0].kind, ErrorKind::kUnsupported);
  const std::string off =
      "[training]\nenable_cpu_offload = false\n[parallelism]\npipeline_parallel_split_points = []\n"
      "pipeline_parallel_schedule_csv = \"\"\n";
  EXPECT_EQ(import_text("torchtitan", "run.toml", start + off, on(8)).problem_text(), "");
}

// U+00E9 and U+2028 lie where toml++ 3.3 asks for white space and does not come back.
TEST(TorchtitanImport, ReadsCharactersOutsideAscii) {
  const std::string start = "[model]\nname = \"llama3\"  # caf\u00e9\nflavor = \"8B\"\n";
  EXPECT_TRUE(
      import_text("torchtitan", "run.toml", start + "[job]\nnote = \"\"\"100 % \u00e9 \\\n \u00e9\"\"\"\n", on(8))
          .problems.empty());
  const Answer unknown = import_text("torchtitan", "run.toml", "[model]\nname = \"llama\u00e9 %C3\"\n", on(8));
  EXPECT_NE(unknown.problem_text().find("llama\u00e9 %C3"), std::string::npos) << unknown.problem_text();
  for (const char* fault : {"\u00e9 = 1\n", "\u2028 = 1\n", "x = 1 \u00e9\n", "\xE9\n"}) {
    const Answer a = import_text("torchtitan", "run.toml", start + fault, on(8));
    ASSERT_EQ(a.problems.size(), 1U) << fault;
    EXPECT_EQ(a.problems[0].where.line, 4) << fault;
  }
}

// Faults that toml++ 3.3 asserts not to be there.
TEST(TorchtitanImport, RefusesHeadersOfOddCharacters) {
  for (const char* fault : {"[!]\n", "[\u00e9]\n", "[[%]]\n", "[ a.! ]\n"}) {
    const Answer a = import_text("torchtitan", "run.toml", std::string("[model]\nname = \"llama3\"\n") + fault, on(8));
    ASSERT_EQ(a.problems.size(), 1U) << fault;
    EXPECT_NE(a.problems[0].message.find("not valid TOML"), std::string::npos) << fault << a.problem_text();
  }
}

constexpr const char* kNanotron = R"(model:
  ddp_bucket_cap_mb: 25
  dtype: bfloat16
  make_vocab_size_divisible_by: 1
  model_config: {is_llama_config: true, hidden_size: 2048, intermediate_size: 8192, num_attention_heads: 32,
    num_hidden_layers: 16, num_key_value_heads: 32, vocab_size: 131072, tie_word_embeddings: true,
    rms_norm_eps: 1.0e-05, max_position_embeddings: 4096, pad_token_id: null}
optimizer: {accumulate_grad_in_fp32: true, zero_stage: 1, learning_rate_scheduler: {learning_rate: 3.0e-4}}
parallelism: {dp: 4, pp: 2, tp: 1, pp_engine: 1f1b, tp_mode: REDUCE_SCATTER, recompute_layer: false}
tokens: {sequence_length: 4096, micro_batch_size: 4, batch_accumulation_per_replica: 16, train_steps: 100}
)";

TEST(NanotronImport, ReadsPlanModelAndBatch) {
  const Answer a = import_text("nanotron", "config.yaml", kNanotron);
  ASSERT_EQ(a.problem_text(), "");
  EXPECT_EQ(a.value("gpus"), "8");
  EXPECT_EQ(a.value("training.global_batch_size"), "256");  // 4 * 16 * 4
  EXPECT_EQ(a.value("plan.zero"), "1");
  EXPECT_EQ(a.value("plan.schedule"), "1f1b");
  EXPECT_EQ(a.value("model.tie_word_embeddings"), "true");
  EXPECT_EQ(a.value("training.precision.grads"), "fp32");
  EXPECT_EQ(a.ignored("tokens.train_steps")->reason, Reason::kNoInfluence);
}

TEST(NanotronImport, NamesAMistypedKeyAtItsLine) {
  std::string text = kNanotron;
  text.replace(text.find("num_hidden_layers"), 17, "num_hiden_layers");
  const Answer a = import_text("nanotron", "config.yaml", text);
  ASSERT_EQ(a.problems.size(), 1U) << a.problem_text();
  EXPECT_EQ(a.problems[0].help.front(), "did you mean num_hidden_layers?");
  EXPECT_EQ(a.problems[0].where.line, 6);
}

TEST(DeepSpeedImport, TakesTheBatchFromTwoOfThree) {
  ImportRequest request = on(16, "llama-3.1-8b");
  request.settings = {config::parse_setting("training.sequence_length=4096")};
  const std::string zero =
      R"("zero_optimization": {"stage": 2, "reduce_bucket_size": 5e8}, "bf16": {"enabled": true}})";
  const Answer a = import_text("deepspeed", "ds.json",
                               R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": 2,
                                   "gradient_accumulation_steps": 4, )" +
                                   zero,
                               request);
  ASSERT_EQ(a.problem_text(), "");
  EXPECT_EQ(a.value("training.global_batch_size"), "128");  // 2 * 4 * 16
  EXPECT_EQ(a.value("plan.bucket"), "500000000");
  EXPECT_EQ(a.value("plan.overlap.grad_reduce"), "false");  // overlap_comm's default below stage 3
  const Answer b = import_text("deepspeed", "ds.json",
                               R"({"train_batch_size": 96, "gradient_accumulation_steps": 2, )" + zero, request);
  EXPECT_EQ(b.value("plan.micro_batch_size"), "3");  // 96 / (2 * 16)
  const Answer c = import_text("deepspeed", "ds.json",
                               R"({"train_batch_size": 100, "train_micro_batch_size_per_gpu": 2, )" + zero, request);
  EXPECT_NE(c.problem_text().find("train_batch_size 100"), std::string::npos);
}

TEST(DeepSpeedImport, TellsWhatStage3LeavesOut) {
  ImportRequest request = on(8);
  request.model = "llama-3.1-8b";
  request.settings = {config::parse_setting("training.sequence_length=4096")};
  const Answer a = import_text("deepspeed", "ds.json",
                               R"({"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1,
  "zero_optimization": {"stage": 3, "overlap_comm": false, "reduce_bucket_size": 1e6}})",
                               request);
  ASSERT_EQ(a.problem_text(), "");
  const std::string said = import_report(a.imported);
  EXPECT_NE(said.find("zero_optimization.overlap_comm"), std::string::npos) << said;
  EXPECT_NE(said.find("zero_optimization.reduce_bucket_size"), std::string::npos) << said;
}

TEST(DeepSpeedImport, SaysAllItLacks) {
  EXPECT_EQ(import_text("deepspeed", "ds.json", R"({"train_batch_size": 8})").problems.size(), 3U);
}

TEST(MegatronBridgeImport, ReadsOverrides) {
  const Answer a = import_text("megatron-bridge", "run.sh",
                               "python run.py --num_gpus 64 model.tensor_model_parallel_size=4 \\\n"
                               "  +model.sequence_parallel=True model.virtual_pipeline_model_parallel_size=5 "
                               "model.pipeline_model_parallel_size=4 train.global_batch_size=128 model.seq_length=8192 "
                               "mixed_precision=bf16_with_fp8_current_scaling_mixed ++ddp.overlap_grad_reduce=false\n",
                               on(64, "llama-3.1-70b"));
  ASSERT_EQ(a.problem_text(), "");
  EXPECT_EQ(a.value("plan.tp"), "4");
  EXPECT_EQ(a.value("plan.vp"), "5");  // 80 layers over 4 ranks are 20, in 5 virtual stages of 4
  EXPECT_EQ(a.value("plan.sequence_parallel"), "true");
  EXPECT_EQ(a.value("training.precision.compute"), "fp8");
  EXPECT_EQ(a.value("training.precision.fp8_recipe"), "tensorwise");
}

TEST(MegatronBridgeImport, NamesTheRecipesOfMixedPrecision) {
  const auto precision = [](const std::string& word, const std::string& field) {
    const Answer a = import_text("megatron-bridge", "run.sh",
                                 "python run.py --num_gpus 8 train.global_batch_size=128 model.seq_length=8192 "
                                 "mixed_precision=" +
                                     word + "\n",
                                 on(8, "llama-3.1-8b"));
    EXPECT_EQ(a.problem_text(), "") << word;
    return a.value("training.precision." + field);
  };
  EXPECT_EQ(precision("bf16_with_fp8_mixed", "fp8_recipe"), "delayed");
  EXPECT_EQ(precision("bf16_with_fp8_delayed_scaling_mixed", "fp8_recipe"), "delayed");
  EXPECT_EQ(precision("bf16_with_fp8_subchannel_scaling_mixed", "fp8_recipe"), "blockwise");
  EXPECT_EQ(precision("bf16_with_mxfp8_mixed", "fp8_recipe"), "mxfp8");
  EXPECT_EQ(precision("bf16_with_nvfp4_mixed", "compute"), "fp4");
}

TEST(Import, RefusesAnUnknownFormat) {
  const Answer a = import_text("megatorn", "run.sh", "x\n");
  ASSERT_EQ(a.problems.size(), 1U);
  EXPECT_EQ(a.problems[0].kind, ErrorKind::kUsage);
}

}  // namespace
}  // namespace stepcast::imports
