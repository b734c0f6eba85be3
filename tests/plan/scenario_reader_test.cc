// What a valid scenario resolves to: defaults by framework, derived values, origins, aliases, layers of files.
#include "plan/scenario_reader.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "tests/plan/scenario_text.h"

namespace stepcast::plan {
namespace {

using program::DType;

constexpr const char* kEight = R"(model: llama-3.1-8b
cluster: hgx-h100
gpus: 8
training: {sequence_length: 8192, global_batch_size: 128}
plan: {tp: 2, pp: 2}
)";

ReadScenario read_run(const std::string& name, const std::vector<std::string>& settings = {}) {
  config::ScenarioSource source;
  source.file = std::string(STEPCAST_SOURCE_DIR) + "/scenarios/runs/" + name;
  for (const std::string& setting : settings) source.settings.push_back(config::parse_setting(setting));
  return read_scenario(source);
}

// Megatron-Core's defaults: distributed optimizer, fp32 gradients and master weights, vocabulary to a multiple of
// 128 * tp = 256 (128,256 = 501 * 256 already), buckets of max(40e6, 1e6 * dp) elements.
TEST(ReadScenario, FillsMegatronDefaults) {
  const ReadScenario read = read_text(kEight);
  const Scenario& s = read.scenario;
  EXPECT_TRUE(read.violations.empty());
  EXPECT_EQ(s.framework, Framework::kMegatronCore);
  EXPECT_EQ(s.plan.dp, 2);
  EXPECT_EQ(s.plan.zero, 1);
  EXPECT_TRUE(s.plan.sequence_parallel);
  EXPECT_EQ(s.plan.schedule, ScheduleKind::k1F1B);
  EXPECT_EQ(s.plan.bucket_elements, 40'000'000);
  EXPECT_EQ(s.training.compute, DType::kBf16);
  EXPECT_EQ(s.training.gradients, DType::kF32);
  EXPECT_EQ(s.training.moments, DType::kF32);
  EXPECT_TRUE(s.training.master_weights);
  EXPECT_EQ(s.model.padded_vocab, 128256);
  EXPECT_EQ(s.model.layers, 32);
  ASSERT_EQ(s.plan.layout.size(), 2u);
  EXPECT_EQ(s.plan.layout[1].layers, 16);
  EXPECT_EQ(s.microbatches(), 64);  // 128 / (1 * 2)
}

// plain: ZeRO 0, no padding, buckets of 25 MiB = 6,553,600 fp32 elements; fp32 parameters need no master copy.
TEST(ReadScenario, FillsPlainDefaults) {
  const Scenario s = read_text(kTiny).scenario;
  EXPECT_EQ(s.framework, Framework::kPlain);
  EXPECT_EQ(s.plan.dp, 1);
  EXPECT_EQ(s.plan.zero, 0);
  EXPECT_EQ(s.plan.bucket_elements, 6'553'600);
  EXPECT_EQ(s.plan.first_bucket_elements, 262'144);  // 1 MiB
  EXPECT_EQ(s.training.compute, DType::kF32);
  EXPECT_FALSE(s.training.master_weights);
  EXPECT_EQ(s.model.padded_vocab, 256);
  EXPECT_EQ(s.model.head_dim, 8);  // 64 / 8
  EXPECT_EQ(s.cluster.name, "local-cpu");
  EXPECT_EQ(s.name, "run");
}

// 1,000 rows to a multiple of 128 * 4 = 512 are 1,024.
TEST(ReadScenario, PadsTheVocabularyPerFramework) {
  EXPECT_EQ(
      read_tiny({"framework=megatron", "model.vocab_size=1000", "plan.tp=4", "plan.pp=1"}).scenario.model.padded_vocab,
      1024);
  EXPECT_EQ(read_tiny({"model.vocab_size=1000", "model.vocab_pad_to=64"}).scenario.model.padded_vocab, 1024);
}

TEST(ReadScenario, ShippedRunsAreValidAndTakeOtherPlans) {
  EXPECT_TRUE(read_run("llama-3.1-8b-h100x8.yaml").violations.empty());
  EXPECT_TRUE(read_run("llama-3.1-70b-h100x64.yaml").violations.empty());
  EXPECT_TRUE(read_run("tiny-gpt-tp2-pp2.yaml").violations.empty());
  const char* tiny = "tiny-llama-tp2-pp2.yaml";
  EXPECT_TRUE(read_run(tiny).violations.empty());
  const std::vector<std::vector<std::string>> plans = {
      {"plan.tp=1", "plan.pp=1", "gpus=2"},
      {"plan.tp=1", "plan.pp=1", "gpus=4", "plan.zero=3", "plan.fsdp={prefetch: 0, reshard_after_forward: false}"},
      {"plan.tp=4", "plan.pp=1", "plan.sequence_parallel=false"},
      {"plan.tp=1", "plan.pp=2", "gpus=2", "plan.vp=2"},
      {"plan.tp=1", "plan.pp=4", "plan.schedule=gpipe"},
      {"model.num_hidden_layers=8", "gpus=8"},
      {"plan.layout=[1, 3]", "plan.recompute=selective[layernorm,mlp_act]"},
      {"plan.micro_batch_size=2", "plan.recompute=full", "model.tie_word_embeddings=true"},
  };
  for (const auto& settings : plans) {
    const ReadScenario read = read_run(tiny, settings);
    EXPECT_TRUE(read.violations.empty()) << settings.front() << "\n" << to_text(read.violations);
  }
}

TEST(ReadScenario, NeedsNoFile) {
  config::ScenarioSource source;
  source.settings = {{"model", "llama-3.1-8b", "llama-3.1-8b"},
                     {"cluster", "hgx-h100", "--cluster hgx-h100"},
                     {"gpus", "8", "--gpus 8"},
                     {"training.sequence_length", "8192", "--seq 8192"},
                     {"training.global_batch_size", "128", "--gbs 128"},
                     {"plan.tp", "2", "--tp 2"}};
  const ReadScenario read = read_scenario(source);
  EXPECT_EQ(read.scenario.name, "llama-3.1-8b");
  EXPECT_EQ(read.scenario.plan.dp, 4);
  EXPECT_EQ(find_value(read, "plan.tp")->origin, "--tp 2");
}

TEST(ReadScenario, SaysWhereEveryValueComesFrom) {
  const ReadScenario read = read_tiny({"plan.tp=4", "plan.pp=1"});
  EXPECT_NE(find_value(read, "gpus")->origin.find("run.yaml:5"), std::string::npos);
  EXPECT_EQ(find_value(read, "plan.tp")->origin, "--set plan.tp=4");
  EXPECT_EQ(find_value(read, "plan.zero")->origin, "plain default");
  EXPECT_EQ(find_value(read, "plan.dp")->origin, "derived: gpus / (tp * cp * pp)");
  EXPECT_EQ(find_value(read, "plan.dp")->value, "1");
  EXPECT_EQ(read.values.front().field, "name");
}

// Conditions, not rules: what held for this plan. 8 devices at 989.5 TFLOP/s are the preset's.
TEST(ReadScenario, SaysUnderWhichConditionADefaultHolds) {
  const auto origin = [](const ReadScenario& read, const char* field) {
    const ConfigValue* value = find_value(read, field);
    return value == nullptr ? std::string("not shown") : value->origin;
  };
  const ReadScenario eight = read_text(kEight);
  EXPECT_EQ(origin(eight, "plan.sequence_parallel"), "derived: tp > 1");
  EXPECT_EQ(origin(eight, "plan.schedule"), "derived: vp = 1");
  EXPECT_EQ(origin(eight, "plan.layout"), "derived: layers / (pp * vp)");
  EXPECT_EQ(origin(eight, "plan.overlap.grad_reduce"), "stepcast default");
  EXPECT_EQ(origin(eight, "plan.cp"), "default");
  EXPECT_EQ(origin(eight, "plan.ep"), "default");
  EXPECT_EQ(origin(eight, "cluster.gpu.peak_bf16").find("clusters/hgx-h100.yaml:"), 0u);
  EXPECT_EQ(find_value(eight, "cluster.gpu.peak_bf16")->value, "989.5 TFLOP/s");
  EXPECT_EQ(find_value(eight, "cluster.gpus_per_node")->value, "8");
  EXPECT_EQ(origin(read_text(kEight, {"plan.tp=1"}), "plan.sequence_parallel"), "derived: tp = 1");
  EXPECT_EQ(origin(read_tiny({"plan.vp=2"}), "plan.schedule"), "derived: vp > 1");
  EXPECT_EQ(origin(read_tiny({"model.num_hidden_layers=6", "plan.pp=4", "gpus=8"}), "plan.layout"),
            "derived: (layers + 2) / (pp * vp), embedding and loss counted");
  const char* reshard = "plan.fsdp.reshard_after_forward";
  EXPECT_EQ(origin(read_tiny({"plan.zero=3"}), reshard), "derived: auto is false with pp > 1");
  EXPECT_EQ(origin(read_tiny({"plan.zero=3", "plan.pp=1"}), reshard), "derived: auto is true with pp = 1");
  EXPECT_EQ(origin(read_tiny({}), reshard), "not shown");
}

// `model: name` and one overridden key: the name stays.
TEST(ReadScenario, SettingsReachInsideAModelGivenByName) {
  const Scenario s = read_text(kEight, {"model.num_hidden_layers=8"}).scenario;
  EXPECT_EQ(s.model.layers, 8);
  EXPECT_EQ(s.model.hidden, 4096);
  EXPECT_EQ(s.model.name, "llama-3.1-8b");
}

TEST(ReadScenario, AcceptsNamesOfOtherTools) {
  const ReadScenario read = read_text(R"(framework: plain
model: {num_layers: 4, hidden_size: 64, ffn_hidden_size: 192, num_attention_heads: 8, num_query_groups: 4,
        vocab_size: 256}
cluster: local-cpu
gpus: 4
seq_length: 32
training: {global_batch_size: 8, precision: fp32}
plan:
  tensor_model_parallel_size: 1
  pipeline_model_parallel_size: 2
  vpp: 2
  use_distributed_optimizer: true
  recompute_granularity: selective
  recompute_modules: [core_attn, layernorm]
)");
  const Scenario& s = read.scenario;
  EXPECT_TRUE(read.violations.empty()) << to_text(read.violations);
  EXPECT_EQ(s.model.layers, 4);
  EXPECT_EQ(s.model.kv_heads, 4);
  EXPECT_EQ(s.training.sequence_length, 32);
  EXPECT_EQ(s.plan.pp, 2);
  EXPECT_EQ(s.plan.vp, 2);
  EXPECT_EQ(s.plan.zero, 1);
  EXPECT_EQ(s.plan.schedule, ScheduleKind::kInterleaved1F1B);
  EXPECT_EQ(s.plan.microbatch_group, 2);
  EXPECT_TRUE(s.plan.recompute.core_attn && s.plan.recompute.layernorm && !s.plan.recompute.mlp_act);
  EXPECT_EQ(read.notes.size(), 10u);  // one for each foreign name above
}

TEST(ReadScenario, ExtendsAnotherFile) {
  const ScratchFolder folder;
  folder.write("base.yaml", kTiny);
  config::ScenarioSource source;
  source.file = folder.write("runs/variant.yaml", "extends: ../base.yaml\nplan: {pp: 1, micro_batch_size: 2}\n");
  const ReadScenario read = read_scenario(source);
  EXPECT_EQ(read.scenario.name, "variant");
  EXPECT_EQ(read.scenario.plan.tp, 2);  // from the base
  EXPECT_EQ(read.scenario.plan.pp, 1);
  EXPECT_EQ(read.scenario.plan.dp, 2);
  EXPECT_EQ(find_value(read, "plan.pp")->origin, source.file + ":2");
}

// 256 tokens of 32 are 8 sequences; Mitok is 2^20.
TEST(ReadScenario, TakesTheBatchInTokens) {
  const std::string text = R"(framework: plain
model: llama-3.1-8b
cluster: hgx-h100
gpus: 8
training: {sequence_length: 8192, global_batch_tokens: 1 Mitok}
)";
  EXPECT_EQ(read_text(text).scenario.training.global_batch_size, 128);        // 2^20 / 2^13
  EXPECT_EQ(exit_code_of(text, {"training.global_batch_tokens=1 Mtok"}), 3);  // 10^6 mod 8192 = 576
  EXPECT_EQ(exit_code_of(text, {"training.global_batch_size=64"}), 3);
  EXPECT_EQ(exit_code_of(text, {"training.global_batch_size=128"}), 0);
}

TEST(ReadScenario, CountsNodesOrGpus) {
  const std::string text =
      "model: llama-3.1-8b\ncluster: hgx-h100\ntraining: {sequence_length: 8192, global_batch_size: 8}\n";
  EXPECT_EQ(read_text(text, {"nodes=1"}).scenario.gpus, 8);
  EXPECT_EQ(exit_code_of(text, {"nodes=1", "gpus=4"}), 3);
  EXPECT_EQ(exit_code_of(text, {"nodes=1", "gpus=8"}), 0);
  EXPECT_EQ(exit_code_of(text), 3);
}

TEST(ReadScenario, ReadsLayoutsInEveryForm) {
  const auto layers = [](const std::vector<std::string>& settings) {
    std::vector<std::int64_t> counts;
    for (const auto& stage : read_tiny(settings).scenario.plan.layout) counts.push_back(stage.layers);
    return counts;
  };
  using Counts = std::vector<std::int64_t>;
  EXPECT_EQ(layers({"plan.layout=auto"}), (Counts{2, 2}));
  EXPECT_EQ(layers({"plan.layout=[3, 1]"}), (Counts{3, 1}));
  EXPECT_EQ(layers({"plan.layout=Ettt|tL"}), (Counts{3, 1}));
  EXPECT_EQ(layers({"plan.layout=Et|t|t|tL"}), (Counts{1, 1, 1, 1}));  // four stages on pp 2: vp 2
  EXPECT_EQ(read_tiny({"plan.layout=Et|t|t|tL"}).scenario.plan.vp, 2);
  EXPECT_EQ(layers({"plan.layers_per_virtual_stage=1"}), (Counts{1, 1, 1, 1}));
  EXPECT_EQ(exit_code_of(kTiny, {"plan.layout=[2, 2]", "plan.layers_per_virtual_stage=2"}), 0);
  EXPECT_EQ(exit_code_of(kTiny, {"plan.layout=[3, 2]"}), 3);
  EXPECT_EQ(exit_code_of(kTiny, {"plan.layout=[3, 1]", "plan.vp=2"}), 3);
  EXPECT_EQ(exit_code_of(kTiny, {"plan.layout=[1, 1, 2]"}), 3);
}

// torchtitan's policy for auto: keep gathered parameters in a pipeline.
TEST(ReadScenario, ReshardsAutomaticallyWithoutAPipeline) {
  EXPECT_TRUE(read_tiny({"plan.zero=3", "plan.pp=1"}).scenario.plan.fsdp.reshard_after_forward);
  EXPECT_FALSE(read_tiny({"plan.zero=3"}).scenario.plan.fsdp.reshard_after_forward);
  EXPECT_TRUE(
      read_tiny({"plan.zero=3", "plan.fsdp.reshard_after_forward=true"}).scenario.plan.fsdp.reshard_after_forward);
}

// 1 MiB of fp32 gradients is 262,144 elements.
TEST(ReadScenario, ReadsBucketsInElementsOrBytes) {
  EXPECT_EQ(read_tiny({"plan.bucket=1000"}).scenario.plan.bucket_elements, 1000);
  EXPECT_EQ(read_tiny({"plan.bucket=40e6 elements"}).scenario.plan.bucket_elements, 40'000'000);
  EXPECT_EQ(read_tiny({"plan.bucket=1 MiB"}).scenario.plan.bucket_elements, 262'144);
  for (const char* value : {"0", "-1", "1 B", "1 W", "many"}) {
    EXPECT_EQ(exit_code_of(kTiny, {std::string("plan.bucket=") + value}), 3) << value;
  }
}

TEST(ReadScenario, ReadsOptimizerSettings) {
  const AdamSettings adam =
      read_tiny({"training.optimizer={lr: 0.01, betas: [0.8, 0.99], eps: 1e-6, clip: false}"}).scenario.training.adam;
  EXPECT_DOUBLE_EQ(adam.learning_rate, 0.01);
  EXPECT_DOUBLE_EQ(adam.beta1, 0.8);
  EXPECT_DOUBLE_EQ(adam.beta2, 0.99);
  EXPECT_DOUBLE_EQ(adam.eps, 1e-6);
  EXPECT_DOUBLE_EQ(adam.clip_norm, 0.0);
  EXPECT_DOUBLE_EQ(read_tiny({"training.optimizer.clip=true"}).scenario.training.adam.clip_norm, 1.0);
}

TEST(ReadScenario, WarnsWhereAPlanRunsButNotAsMeant) {
  EXPECT_EQ(read_tiny({"plan.tp=1", "plan.sequence_parallel=true"}).warnings.size(), 1u);
  EXPECT_FALSE(read_tiny({"plan.tp=1", "plan.sequence_parallel=true"}).scenario.plan.sequence_parallel);
  EXPECT_EQ(read_text(kEight, {"plan.recompute=selective[mlp_act]"}).warnings.size(), 1u);
  EXPECT_EQ(read_text(kEight, {"plan.recompute=selective"}).warnings.size(), 0u);
  EXPECT_EQ(read_text(kEight, {"plan.schedule=gpipe"}).warnings,
            (std::vector<std::string>{"megatron-core: Megatron-Core has no GPipe schedule; simulated as written"}));
  EXPECT_TRUE(read_tiny({"plan.schedule=gpipe"}).warnings.empty());
}

// One of dp_shard and dp_replicate makes the other: dp 8 in groups of 4 are two groups, also by torchtitan's names. The
// group holds the cp members too. Without ZeRO the group of one is what everybody has.
TEST(ReadScenario, SplitsDpIntoShardGroups) {
  const auto groups = [](std::vector<std::string> settings) {
    settings.insert(settings.end(), {"gpus=8", "plan.tp=1", "plan.pp=1"});
    const ReadScenario read = read_tiny(settings);
    EXPECT_TRUE(read.violations.empty()) << to_text(read.violations);
    return std::pair(read.scenario.plan.shards(), read.scenario.plan.dp_replicate);
  };
  EXPECT_EQ(groups({"plan.zero=3"}), std::pair(8, 1));
  EXPECT_EQ(groups({"plan.zero=3", "plan.dp_shard=4"}), std::pair(4, 2));
  EXPECT_EQ(groups({"plan.zero=1", "plan.data_parallel_replicate_degree=4"}), std::pair(2, 4));
  EXPECT_EQ(groups({"plan.zero=2", "plan.cp=2", "plan.dp_shard=4", "plan.dp_replicate=2"}), std::pair(4, 2));
  EXPECT_EQ(groups({"plan.dp_shard=1", "plan.dp_replicate=8"}), std::pair(8, 1));
}

// Megatron-Core buckets where it overlaps; DDP's small first bucket is its default alone.
TEST(ReadScenario, SizesBucketsAsTheFrameworkDoes) {
  using Sizes = std::pair<std::int64_t, std::int64_t>;
  const auto bucket = [](const std::vector<std::string>& settings) {
    const Plan plan = read_tiny(settings).scenario.plan;
    return Sizes(plan.bucket_elements, plan.first_bucket_elements);
  };
  EXPECT_EQ(bucket({"framework=megatron-core", "plan.overlap.grad_reduce=false"}), Sizes(0, 0));
  EXPECT_EQ(bucket({"plan.bucket=25 MiB"}), Sizes(6'553'600, 0));
  EXPECT_EQ(bucket({"training.precision={compute: bf16, grads: bf16}"}), Sizes(13'107'200, 524'288));
}

TEST(ReadScenario, TakesGradientsAndMomentsInBf16) {
  const Training training =
      read_tiny({"training.precision={compute: bf16, grads: bf16}", "training.optimizer.moments=bf16"})
          .scenario.training;
  EXPECT_EQ(training.gradients, DType::kBf16);
  EXPECT_EQ(training.moments, DType::kBf16);
  EXPECT_TRUE(training.master_weights);
}

struct SilentCase {
  std::vector<std::string> settings;
  const char* field;
  const char* warning;
};

// Each is told once, to who gave the key, and stays in the resolved values.
TEST(ReadScenario, WarnsOfKeysWithoutEffect) {
  const SilentCase cases[] = {
      {{"plan.microbatch_group=4"}, "plan.microbatch_group", "with schedule 1f1b"},
      {{"plan.fsdp.prefetch=2"}, "plan.fsdp.prefetch", "with zero 0"},
      {{"plan.zero=1", "plan.fsdp.reshard_after_forward=true"}, "plan.fsdp.reshard_after_forward", "with zero 1"},
      {{"plan.fsdp.unit=block"}, "plan.fsdp.unit", "with zero 0"},
      {{"plan.fsdp.gradient_sync=last_microbatch"}, "plan.fsdp.gradient_sync", "with zero 0"},
      {{"plan.overlap.grad_reduce=false"}, "plan.overlap.grad_reduce", "with dp 1"},
      {{"plan.bucket=1000"}, "plan.bucket", "with dp 1"},
      {{"plan.pp=1", "plan.overlap.param_gather=true"}, "plan.overlap.param_gather", "with zero 0"},
      {{"plan.pp=1", "plan.zero=3", "plan.bucket=1000"}, "plan.bucket", "with zero 3"},
  };
  for (const SilentCase& c : cases) {
    const ReadScenario read = read_tiny(c.settings);
    const std::string expected = std::string(c.field) + " has no effect " + c.warning;
    EXPECT_EQ(read.warnings, std::vector<std::string>{expected});
    ASSERT_NE(find_value(read, c.field), nullptr) << c.field;
    EXPECT_EQ(find_value(read, c.field)->origin, "--set " + c.settings.back());
  }
  EXPECT_TRUE(read_tiny({"plan.pp=1", "plan.bucket=1000", "plan.overlap.grad_reduce=false"}).warnings.empty());
  EXPECT_TRUE(read_tiny({"plan.vp=2", "plan.microbatch_group=4"}).warnings.empty());
  EXPECT_TRUE(read_tiny({"plan.pp=1", "plan.zero=3", "plan.fsdp.prefetch=2"}).warnings.empty());
  EXPECT_TRUE(read_tiny({}).warnings.empty());
}

}  // namespace
}  // namespace stepcast::plan
