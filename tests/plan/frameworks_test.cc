// What each framework sets by default, with its origin, and what it alone refuses.
#include "plan/frameworks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/rules.h"
#include "tests/plan/scenario_text.h"

namespace stepcast::plan {
namespace {

// Eight sequences of 32 tokens; two tensor-parallel ranks, two replicas.
constexpr const char* kBase = R"(model: {num_hidden_layers: 4, hidden_size: 64, intermediate_size: 192,
  num_attention_heads: 8, num_key_value_heads: 4, vocab_size: 1000}
cluster: local-cpu
gpus: 4
training: {sequence_length: 32, global_batch_size: 8}
plan: {tp: 2}
)";

struct Default {
  const char* framework;
  const char* field;
  const char* value;
  const char* origin;
};

// Buckets: max(40e6, 1e6 * dp) elements; 25 MiB / 4 bytes; 5e8 elements. 1,000 rows to a multiple of 128 * 2 are
// 1,024; to one of 2 they stay.
const Default kDefaults[] = {
    {"megatron-core", "plan.zero", "1", "megatron-core default"},
    {"megatron-core", "plan.sequence_parallel", "true", "derived: tp > 1"},
    {"megatron-core", "plan.bucket", "40000000 elements", "megatron-core default"},
    {"megatron-core", "model.padded_vocab", "1024", "derived: vocab_pad_to * tp"},
    {"megatron-core", "training.lm_head_loss", "fused_vocab_parallel", "megatron-core default"},
    {"megatron-core", "stack.attention", "cudnn", "megatron-core default"},
    {"torchtitan", "plan.zero", "3", "torchtitan default"},
    {"torchtitan", "training.precision.params", "fp32", "torchtitan default"},
    {"torchtitan", "training.precision.compute", "bf16", "default"},
    {"torchtitan", "training.optimizer.master", "none", "derived: parameters are fp32"},
    {"torchtitan", "plan.sequence_parallel", "true", "derived: tp > 1"},
    {"torchtitan", "model.padded_vocab", "1000", "derived: vocab_pad_to"},
    {"torchtitan", "training.lm_head_loss", "unfused", "torchtitan default"},
    {"torchtitan", "stack.attention", "sdpa_flash", "torchtitan default"},
    {"torchtitan", "plan.fsdp.reshard_after_forward", "true", "derived: auto is true with pp = 1"},
    {"torchtitan", "plan.fsdp.gradient_sync", "every_microbatch", "derived: auto is every_microbatch with pp = 1"},
    {"nanotron", "plan.zero", "0", "nanotron default"},
    {"nanotron", "plan.sequence_parallel", "false", "nanotron default"},
    {"nanotron", "plan.bucket", "6553600 elements, the first 262144", "nanotron default"},
    {"nanotron", "plan.overlap.grad_reduce", "true", "nanotron default"},
    {"nanotron", "model.padded_vocab", "1000", "derived: vocab_pad_to * tp"},
    {"nanotron", "training.lm_head_loss", "unfused", "nanotron default"},
    {"deepspeed", "plan.zero", "0", "deepspeed default"},
    {"deepspeed", "plan.bucket", "500000000 elements", "deepspeed default"},
    {"deepspeed", "plan.overlap.grad_reduce", "false", "deepspeed default"},
    {"deepspeed", "plan.sequence_parallel", "false", "deepspeed default"},
    {"plain", "plan.zero", "0", "plain default"},
    {"plain", "plan.bucket", "6553600 elements, the first 262144", "plain default"},
    {"plain", "training.lm_head_loss", "fused_vocab_parallel", "plain default"},
};

TEST(Frameworks, SetDefaultsAndSaySo) {
  for (const Default& d : kDefaults) {
    const ReadScenario read = read_text(kBase, {std::string("framework=") + d.framework});
    EXPECT_EQ(to_text(read.violations), "") << d.framework;
    const ConfigValue* value = find_value(read, d.field);
    ASSERT_NE(value, nullptr) << d.framework << " " << d.field;
    EXPECT_EQ(value->value, d.value) << d.framework << " " << d.field;
    EXPECT_EQ(value->origin, d.origin) << d.framework << " " << d.field;
  }
}

TEST(Frameworks, AreNamedAlikeEverywhere) {
  EXPECT_EQ(framework_presets().size(), 5u);
  for (const FrameworkPreset& preset : framework_presets()) {
    EXPECT_EQ(find_framework(preset.name), &preset);
    const std::string name(preset.name);
    EXPECT_EQ(to_string(read_text(kBase, {"framework=" + name + "@1.2"}).scenario.framework), name);
  }
  EXPECT_EQ(find_framework("megatron"), find_framework("megatron-core"));
  EXPECT_EQ(find_framework("megatron-fsdp"), nullptr);
}

struct Refusal {
  std::vector<std::string> settings;
  const char* field;
  const char* message;  // part of it
  const char* help;     // part of what would work
  int exit_code;
};

const Refusal kRefusals[] = {
    {{"framework=megatron-fsdp"}, "framework", "megatron-fsdp", "torchtitan", 4},
    {{"framework=torchtitan", "plan.zero=1"}, "plan.zero", "zero 1 is no sharding it has", "zero 0 or 3", 3},
    {{"framework=torchtitan", "plan.tp=4", "model.num_key_value_heads=2"},
     "plan.tp",
     "2 key-value heads and tp 4: torchtitan does not replicate heads",
     "tp 1, 2",
     3},
    {{"framework=torchtitan", "plan.zero=0", "training.precision={compute: bf16, params: fp32}"},
     "training.precision.params",
     "parameters in fp32 with compute in bf16",
     "zero 3",
     4},
    // max(1, 5 / 2) = 2 rounds of 5 microbatches.
    {{"framework=torchtitan", "plan={tp: 2, pp: 2, vp: 2}", "training.global_batch_size=5"},
     "training.global_batch_size",
     "5 microbatches are not equal parts of the 2 rounds",
     "global_batch_size 4 or 6",
     3},
    {{"framework=torchtitan", "training.sequence_length=33"},
     "plan.sequence_parallel",
     "sequence_length 33 does not divide by tp 2",
     "sequence_parallel: false",
     3},
    {{"framework=nanotron", "plan.zero=3"}, "plan.zero", "zero 3 is no sharding it has", "zero 0 or 1", 3},
    {{"framework=nanotron", "plan={tp: 1, pp: 4}", "training.global_batch_size=2"},
     "training.global_batch_size",
     "batch_accumulation_per_replica = global_batch_size / (micro_batch_size * dp) = 2 is below pp - 1 = 3",
     "global_batch_size of at least 3",
     3},
    {{"framework=nanotron", "plan={pp: 2, vp: 2}"}, "plan.vp", "nanotron has no virtual stages", "vp 1", 3},
    {{"framework=nanotron", "training.global_batch_size=9"},
     "training.global_batch_size",
     "micro_batch_size * batch_accumulation_per_replica * dp",
     "8 or 10",
     3},
    {{"framework=deepspeed", "plan={tp: 1, pp: 2, zero: 3}"},
     "plan.zero",
     "zero 3 is incompatible with pipeline parallelism: pp is 2",
     "zero 0 or 1",
     3},
    {{"framework=deepspeed", "plan.zero=3"}, "plan.zero", "AutoTP goes with zero 0 to 2, and tp is 2", "tp 1", 3},
    {{"framework=deepspeed", "plan={pp: 2, vp: 2}"}, "plan.vp", "deepspeed has no virtual stages", "vp 1", 3},
    {{"framework=deepspeed", "plan={tp: 1, cp: 2, cp_comm_type: p2p}"},
     "plan.cp_comm_type",
     "cp_comm_type p2p: its sequences are split by all-to-all (Ulysses) only",
     "cp_comm_type a2a",
     3},
    {{"framework=deepspeed", "plan={tp: 2, cp: 2}"},
     "plan.cp",
     "its sequence parallelism does not work with tensor or pipeline parallelism, and tp is 2, pp 1",
     "tp 1 and pp 1",
     3},
    {{"framework=torchtitan", "plan={tp: 1, cp: 2, cp_comm_type: a2a}"},
     "plan.cp_comm_type",
     "cp_comm_type a2a: it has none by all-to-all",
     "p2p or allgather",
     3},
    // 4 key-value heads of two tensor-parallel ranks.
    {{"framework=megatron-core", "gpus=8", "plan={tp: 2, cp: 4, cp_comm_type: a2a}"},
     "plan.cp",
     "4 key-value heads over tp 2 are 2 a rank, which do not divide by cp 4",
     "cp_comm_type: p2p",
     3},
    {{"framework=deepspeed", "training.global_batch_size=9"},
     "training.global_batch_size",
     "train_micro_batch_size_per_gpu * gradient_accumulation_steps * dp is train_batch_size",
     "8 or 10",
     3},
    {{"stack={env: {CUDA_DEVICE_MAX_CONNECTIONS: many}}"},
     "stack.env.CUDA_DEVICE_MAX_CONNECTIONS",
     "no number of queues",
     "from 1 to 32",
     3},
};

TEST(Frameworks, RefuseWhatTheyDoNotHave) {
  for (const Refusal& refusal : kRefusals) {
    const std::vector<Problem> problems = problems_of(kBase, refusal.settings);
    ASSERT_EQ(problems.size(), 1u) << refusal.message << "\n" << to_text(problems);
    EXPECT_EQ(problems[0].where.field, refusal.field) << to_text(problems);
    EXPECT_NE(problems[0].message.find(refusal.message), std::string::npos) << to_text(problems);
    EXPECT_NE(to_text(problems).find(refusal.help), std::string::npos) << to_text(problems);
    EXPECT_EQ(Error(problems).exit_code(), refusal.exit_code) << to_text(problems);
  }
}

// 8 microbatches over 3 stages: torch runs max(1, 8 / 3) = 2 rounds, of 4 each; Megatron-Core groups of pp.
TEST(Frameworks, GroupMicrobatchesAsTheirSchedulesDo) {
  const std::vector<std::string> plan = {"plan={tp: 1, pp: 3, vp: 2}", "gpus=3", "model.num_hidden_layers=6"};
  const auto group = [&](const char* framework, const char* batch) {
    std::vector<std::string> settings = plan;
    settings.insert(settings.end(), {std::string("framework=") + framework, batch});
    return read_text(kBase, settings).scenario.plan.microbatch_group;
  };
  EXPECT_EQ(group("torchtitan", "training.global_batch_size=8"), 4);
  EXPECT_EQ(group("torchtitan", "training.global_batch_size=9"), 3);
  EXPECT_EQ(group("megatron-core", "training.global_batch_size=9"), 3);
}

// Ulysses is DeepSpeed's only way to split a sequence, and needs no word.
TEST(Frameworks, DeepSpeedSplitsSequencesByAllToAll) {
  const ReadScenario read = read_text(kBase, {"framework=deepspeed", "plan={tp: 1, cp: 2}"});
  EXPECT_EQ(to_text(read.violations), "");
  EXPECT_EQ(read.scenario.plan.cp_comm, ContextComm::kAllToAll);
  EXPECT_EQ(find_value(read, "plan.cp_comm_type")->origin, "deepspeed default");
}

// FSDP sums in the type of its parameters, fp32, whatever it reduces in.
TEST(Frameworks, TorchtitanSumsGradientsInFp32) {
  const auto given = [](const char* precision) {
    return read_text(kBase, {"framework=torchtitan", std::string("training.precision=") + precision});
  };
  const ReadScenario half = given("{grads: fp32, grad_reduce: bf16}");
  EXPECT_EQ(to_text(half.violations), "");
  EXPECT_EQ(half.scenario.training.gradients, program::DType::kBf16);
  EXPECT_EQ(Error(given("{grads: bf16}").violations).exit_code(), 3);
}

// Sharding and mixed precision come with several replicas.
TEST(Frameworks, TorchtitanShardsOnlyOverReplicas) {
  const Scenario alone = read_text(kBase, {"framework=torchtitan", "gpus=2"}).scenario;
  EXPECT_EQ(alone.plan.zero, 0);
  const ReadScenario sharded = read_text(kBase, {"framework=torchtitan"});
  EXPECT_EQ(sharded.scenario.plan.zero, 3);
  EXPECT_TRUE(sharded.scenario.training.fp32_shards);
  EXPECT_FALSE(alone.training.fp32_shards);
}

TEST(Frameworks, WarnOfHardwareQueues) {
  const auto warnings = [](const char* framework, const char* queues) {
    const std::string environment = std::string("stack={env: {CUDA_DEVICE_MAX_CONNECTIONS: ") + queues + "}}";
    return read_text(kBase, {std::string("framework=") + framework, environment}).warnings.size();
  };
  EXPECT_EQ(warnings("megatron-core", "8"), 1u);
  EXPECT_EQ(warnings("megatron-core", "1"), 0u);
  EXPECT_EQ(warnings("torchtitan", "1"), 1u);  // the gathers of FSDP wait behind its matmuls
  EXPECT_EQ(warnings("torchtitan", "8"), 0u);
  EXPECT_EQ(warnings("plain", "8"), 0u);
}

}  // namespace
}  // namespace stepcast::plan
