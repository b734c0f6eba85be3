// The validity rules, one broken at a time, then together.
#include "plan/rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/plan/scenario_text.h"

namespace stepcast::plan {
namespace {

struct RuleCase {
  std::vector<std::string> settings;
  const char* field;    // of a violation that must be there
  const char* message;  // part of it
  const char* help;     // part of what would work
  int exit_code;
};

const RuleCase kRuleCases[] = {
    {{"gpus=12", "plan.pp=1", "plan.tp=2", "plan.cp=4"},
     "gpus",
     "gpus 12 do not divide by tp * cp * pp = 2 * 4 * 1 = 8",
     "cp 1, 2, 3, 6 with tp 2",
     3},
    {{"gpus=6", "plan.pp=1", "plan.tp=2", "plan.cp=3"},
     "plan.cp",
     "does not divide by 2 * cp = 6: each member holds two",
     "sequence_length",
     3},
    {{"gpus=6", "plan.pp=1", "plan.tp=4"}, "gpus", "gpus 6 do not divide by tp * pp = 4 * 1 = 4", "gpus 4 or 8", 3},
    {{"gpus=65", "plan.tp=1", "plan.pp=1", "training.global_batch_size=65"},
     "gpus",
     "gpus 65 are not whole nodes of the 64 devices of local-cpu",
     "gpus 64",
     3},
    {{"gpus=128", "plan.tp=1", "plan.pp=1", "training.global_batch_size=128"},
     "gpus",
     "gpus 128 are 2 nodes of the 64 devices of local-cpu, which has no network between nodes",
     "at most 64",
     3},
    {{"gpus=8", "plan.dp=4"}, "plan.dp", "dp 4 disagrees with gpus / (tp * cp * pp) = 8 / (2 * 1 * 2) = 2", "dp 2", 3},
    {{"gpus=6", "plan.dp=1"}, "gpus", "gpus 6 do not divide by tp * pp = 2 * 2 = 4", "gpus 4 or 8", 3},
    {{"gpus=4", "plan.pp=1", "plan.zero=3", "model.tie_word_embeddings=true"},
     "plan.zero",
     "zero 3 with tied embeddings and dp * cp = 2",
     "zero 0, 1 or 2",
     4},
    {{"gpus=4", "plan.tp=1", "plan.pp=1", "plan.zero=3", "plan.dp_shard=3"},
     "plan.dp_shard",
     "dp_shard * dp_replicate = 3 * 1 is not dp * cp = 4",
     "2 * 2",
     3},
    {{"gpus=4", "plan.tp=1", "plan.pp=1", "plan.cp=2", "plan.zero=3", "plan.dp_replicate=4"},
     "plan.dp_replicate",
     "dp_replicate 4 does not divide dp 2: a shard group holds all cp members",
     "4 * 1, 2 * 2",
     3},
    {{"gpus=4", "plan.tp=1", "plan.pp=1", "plan.dp_shard=2"},
     "plan.dp_shard",
     "dp_shard 2 with zero 0: every rank holds everything",
     "zero 1, 2 or 3",
     3},
    {{"plan.layout=[1, 3]", "plan.layers_per_virtual_stage=2"},
     "plan.layers_per_virtual_stage",
     "layers_per_virtual_stage is 2, virtual stage 0 of the layout holds 1 layers",
     "one of the two",
     3},
    {{"plan.layers_per_virtual_stage=1", "plan.vp=4"},
     "plan.layers_per_virtual_stage",
     "layers_per_virtual_stage 1 makes vp 2, vp says 4",
     "one of the two",
     3},
    // 2^30 tokens by 2^24 sequences are 2^54 tokens; by 384 = 2 * 192 columns more than 2^48 elements.
    {{"training.sequence_length=1073741824", "plan.micro_batch_size=16777216"},
     "plan.micro_batch_size",
     "= 18014398509481984 tokens of 384 elements of 4 bytes are not below 2^50 bytes",
     "below 733007751850",  // 2^48 / 384, rounded down
     3},
    // 2^30 tokens by 2^31 sequences.
    {{"training.sequence_length=1073741824", "training.global_batch_size=2147483648"},
     "training.global_batch_size",
     "= 2305843009213693952 tokens a step are more than 2^50",
     "",
     3},
    // 2^20 tokens by 2^28 sequences are 2^48: 384 columns in 4 + 2 layers make more than 2^56 elements.
    {{"training.sequence_length=1048576", "training.global_batch_size=268435456"},
     "training.global_batch_size",
     "281474976710656 tokens a step through 4 layers",
     "at most 31274997412295 tokens a step",  // 2^56 / 384 / 6, rounded down
     3},
    {{"training.global_batch_size=1048577"},
     "training.global_batch_size",
     "1048577 microbatches a step",
     "at most 83333",  // 2e7 ops of 40 per microbatch and each of 4 + 2 layers
     4},
    // 2^24 * 2^24 = 2^48 elements; head_dim 8 keeps the layers small.
    {{"model.hidden_size=16777216", "model.head_dim=8", "model.vocab_size=16777216"},
     "model.hidden_size",
     "a weight of 16777216 by 16777216 elements",
     "",
     3},
    {{"training.global_batch_size=9", "plan.micro_batch_size=2"},
     "training.global_batch_size",
     "global_batch_size 9 does not divide by micro_batch_size * dp = 2 * 1 = 2",
     "global_batch_size 8 or 10",
     3},
    {{"plan.tp=16", "gpus=16", "plan.pp=1"}, "plan.tp", "8 attention heads do not divide by tp 16", "tp 1, 2, 4, 8", 3},
    {{"plan.tp=8", "gpus=8", "plan.pp=1"},
     "plan.tp",
     "4 key-value heads and tp 8: plain does not replicate heads",
     "tp 1, 2, 4",
     3},
    // 16 ranks are 4 a head, whose 18 columns are no 4 equal parts.
    {{"plan.tp=16", "gpus=16", "plan.pp=1", "framework=megatron-core", "model.num_attention_heads=16",
      "model.head_dim=18"},
     "plan.tp",
     "4 key-value heads and tp 16 share each head among 4 ranks, which do not divide head_dim 18",
     "tp 1, 2, 4",
     4},
    {{"plan.tp=8", "gpus=8", "plan.pp=1", "framework=megatron-core", "model.num_attention_heads=24",
      "model.num_key_value_heads=3", "model.head_dim=8"},
     "plan.tp",
     "3 key-value heads and tp 8: neither is a multiple of the other",
     "tp 1, 3",
     3},
    {{"model.intermediate_size=191"}, "plan.tp", "191 columns of the feed-forward size", "tp 1 divides 191", 3},
    {{"model.vocab_size=255"}, "plan.tp", "vocabulary of 255 rows", "model.vocab_pad_to: 2", 3},
    {{"training.sequence_length=31"},
     "plan.sequence_parallel",
     "31 tokens do not divide by tp 2",
     "sequence_parallel: false",
     3},
    {{"plan.overlap={tp_comm: true, tp_input_grad: false}"},
     "plan.overlap.tp_input_grad",
     "tp_comm reduces input gradients beside weight gradients (qkv_wgrad, fc1_wgrad); tp_input_grad is off",
     "tp_comm: false",
     3},
    {{"plan.pp=1", "plan.vp=2"}, "plan.vp", "vp 2 needs pp > 1", "pp of at least 2", 3},
    {{"plan.vp=2", "plan.schedule=1f1b"},
     "plan.schedule",
     "1f1b runs one virtual stage per rank",
     "interleaved_1f1b",
     3},
    {{"plan.vp=2", "plan.schedule=gpipe"}, "plan.schedule", "gpipe with vp 2", "interleaved_1f1b", 4},
    {{"plan.schedule=interleaved_1f1b"}, "plan.schedule", "needs vp > 1", "schedule: 1f1b", 3},
    {{"plan.vp=2", "plan.microbatch_group=1"},
     "plan.microbatch_group",
     "microbatch_group 1 is below pp 2",
     "microbatch_group 2",
     3},
    {{"plan.vp=2", "plan.microbatch_group=9"},
     "plan.microbatch_group",
     "above the 8 microbatches",
     "global_batch_size of at least 9",
     3},
    {{"plan.vp=2", "plan.microbatch_group=7"},
     "plan.microbatch_group",
     "8 mod 7 = 1, below pp 2",
     "microbatch_group 2, 3",
     3},
    {{"framework=megatron-core", "plan.zero=0", "plan.overlap.param_gather=true"},
     "plan.overlap.param_gather",
     "needs the distributed optimizer; zero is 0",
     "zero 1",
     3},
    {{"framework=megatron-core", "plan.zero=0", "training.optimizer.moments=bf16"},
     "training.optimizer.moments",
     "precision-aware optimizer",
     "zero 1",
     3},
    {{"framework=megatron-core", "plan.overlap={param_gather: true, grad_reduce: false}"},
     "plan.overlap.param_gather",
     "needs --overlap-grad-reduce",
     "grad_reduce: true",
     3},
    {{"framework=deepspeed", "plan.tp=1", "plan.pp=1", "plan.zero=3", "plan.fsdp.gradient_sync=last_microbatch"},
     "plan.fsdp.gradient_sync",
     "partitioned gradients are reduced every time",
     "gradient_sync: every_microbatch",
     3},
    {{"framework=megatron-core", "plan.zero=2"}, "plan.zero", "zero 2 is megatron-fsdp", "framework: plain", 4},
    {{"framework=megatron-core", "plan.zero=3"}, "plan.zero", "megatron-fsdp", "framework: plain", 4},
    {{"framework=megatron-core", "training.sequence_length=4096"},
     "training.sequence_length",
     "sequence_length 4096 is above max_position_embeddings 2048",
     "at most 2048",
     3},
    {{"plan.recompute={granularity: full, modules: [layernorm]}"},
     "plan.recompute.modules",
     "granularity selective",
     "no modules",
     3},
};

TEST(CheckRules, SaysValuesRelationAndWhatWorks) {
  for (const RuleCase& rule : kRuleCases) {
    const std::vector<Problem> problems = problems_of(kTiny, rule.settings);
    ASSERT_FALSE(problems.empty()) << rule.message;
    EXPECT_EQ(Error(problems).exit_code(), rule.exit_code) << rule.message << "\n" << to_text(problems);
    const bool found = std::any_of(problems.begin(), problems.end(), [&](const Problem& problem) {
      std::string help;
      for (const std::string& line : problem.help) help += line + "\n";
      return problem.where.field == rule.field && problem.message.find(rule.message) != std::string::npos &&
             help.find(rule.help) != std::string::npos;
    });
    EXPECT_TRUE(found) << rule.message << "\n" << to_text(problems);
  }
}

// Two ranks share each of 4 key-value heads of 8 columns.
TEST(CheckRules, LetsMegatronShareKeyValueHeads) {
  EXPECT_EQ(exit_code_of(kTiny, {"plan.tp=8", "gpus=8", "plan.pp=1", "framework=megatron-core"}), 0);
}

// Just inside each limit of the interleaved rule: M = 8, P = 2; 8 mod 6 = 2 is P.
TEST(CheckRules, AcceptsTheEdgesOfTheInterleavedRule) {
  for (const char* group : {"2", "3", "4", "6", "8"}) {
    EXPECT_EQ(exit_code_of(kTiny, {"plan.vp=2", std::string("plan.microbatch_group=") + group}), 0) << group;
  }
}

// A dp that disagrees is one fault: neither the batch (8 mod 3) nor anything else is judged by it.
TEST(CheckRules, NamesAWrongDpOnce) {
  const std::vector<Problem> problems = problems_of(kTiny, {"plan.dp=3"});
  ASSERT_EQ(problems.size(), 1u) << to_text(problems);
  EXPECT_EQ(problems.front().where.field, "plan.dp");
  EXPECT_EQ(problems_of(kTiny, {"gpus=6", "plan.dp=3"}).size(), 1u);
}

// What helps must work: local-cpu has 64 devices, so a world of 60 = 4 * 15 ranks has nothing above 60.
TEST(CheckRules, OffersNoGpusBeyondTheCluster) {
  const std::vector<Problem> problems =
      problems_of(kTiny, {"gpus=61", "plan.tp=4", "plan.pp=15", "plan.layout=[1,1,1,1,0,0,0,0,0,0,0,0,0,0,0]"});
  ASSERT_EQ(problems.size(), 1u) << to_text(problems);
  EXPECT_EQ(problems.front().help.back(), "gpus 60");
}

// One replica shards nothing, so tied embeddings and ZeRO-3 go together there; untied ones do anywhere.
TEST(CheckRules, RefusesTiedShardsOnlyWhereThereAreSome) {
  EXPECT_EQ(exit_code_of(kTiny, {"plan.zero=3", "model.tie_word_embeddings=true"}), 0);
  EXPECT_EQ(exit_code_of(kTiny, {"plan.zero=3", "plan.pp=1"}), 0);
  EXPECT_EQ(exit_code_of(kTiny, {"plan.zero=1", "plan.pp=1", "model.tie_word_embeddings=true"}), 0);
}

// tp 3 and pp 5 on 4 GPUs: the world, the layers (4 and 6 mod 5), heads, kv heads, vocabulary (256) and the sequence
// (32) break; 192 = 3 * 64 divides, and nothing splits the hidden size.
TEST(CheckRules, ListsEveryViolation) {
  const std::vector<Problem> problems = problems_of(kTiny, {"plan.tp=3", "plan.pp=5"});
  EXPECT_EQ(problems.size(), 6u) << to_text(problems);
}

TEST(CheckRules, SurvivesTheLargestValuesTheSchemaAdmits) {
  const std::vector<std::string> largest = {"gpus=16777216",
                                            "plan.tp=16777216",
                                            "plan.pp=16777216",
                                            "plan.vp=16777216",
                                            "plan.dp=16777216",
                                            "plan.micro_batch_size=16777216",
                                            "plan.microbatch_group=16777216",
                                            "training.global_batch_size=2147483648",
                                            "training.sequence_length=1073741824",
                                            "model.num_hidden_layers=100000",
                                            "model.vocab_pad_to=1048576",
                                            "model.vocab_size=16777216",
                                            "plan.layers_per_virtual_stage=100000"};
  for (const char* framework : {"framework=plain", "framework=megatron-core"}) {
    std::vector<std::string> settings = largest;
    settings.push_back(framework);
    EXPECT_EQ(exit_code_of(kTiny, settings), 3);
    for (const std::string& one : largest) EXPECT_NE(exit_code_of(kTiny, {framework, one}), 70) << one;
  }
}

}  // namespace
}  // namespace stepcast::plan
