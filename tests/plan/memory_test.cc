// Bytes read off lowered Programs against closed forms.
#include <gtest/gtest.h>

#include <cstdint>

#include "plan/lowering.h"
#include "program/check.h"
#include "program/lifetimes.h"
#include "tests/plan/tiny_scenario.h"

namespace stepcast::plan {
namespace {

using program::ClassBytes;
using program::MemoryClass;
using testing::TinyPlan;
using testing::TinyShape;

program::Lifetimes lifetimes_of(const Scenario& s, std::size_t stage = 0) {
  const program::CheckedProgram p(lower(s));
  const program::RankProgramId id(stage);
  return program::derive_lifetimes(p.program(), p.program().rank_programs[id], p.resolution(id));
}

std::int64_t bytes_of(const ClassBytes& bytes, MemoryClass c) { return bytes[static_cast<std::size_t>(c)]; }

TinyShape bf16_shape() {
  TinyShape shape;
  shape.compute = program::DType::kBf16;
  return shape;
}

// Weights, gradients and optimizer states over parameters.
double state_bytes_per_parameter(const Scenario& s) {
  const ClassBytes held = lifetimes_of(s).persistent;
  const std::int64_t states = bytes_of(held, MemoryClass::kWeights) + bytes_of(held, MemoryClass::kGradients) +
                              bytes_of(held, MemoryClass::kOptimizer);
  return static_cast<double>(states) / static_cast<double>(models::count_parameters(s.model).total);
}

// bf16 weights 2, f32 gradients 4, f32 master 4, two f32 moments 8 = 18; the distributed optimizer shards the last 12
// over dp: 6 + 12/8 = 7.5 at dp 8 (Megatron-LM issue 654). One bucket, whose elements dp divides: no padding.
TEST(Memory, StatesTakeEighteenBytesOrSixPlusTwelveOverDp) {
  TinyPlan p{.name = "dp1", .bucket_elements = 0};
  EXPECT_DOUBLE_EQ(state_bytes_per_parameter(make_scenario(bf16_shape(), p)), 18.0);
  p.dp = 8;
  EXPECT_DOUBLE_EQ(state_bytes_per_parameter(make_scenario(bf16_shape(), p)), 18.0);
  p.zero = 1;
  EXPECT_DOUBLE_EQ(state_bytes_per_parameter(make_scenario(bf16_shape(), p)), 7.5);
  p.zero = 2;  // bf16 weights stay whole, f32 gradients too are sharded: 2 + (4 + 12)/8
  EXPECT_DOUBLE_EQ(state_bytes_per_parameter(make_scenario(bf16_shape(), p)), 4.0);
  p.zero = 3;  // 18/8; every unit's elements are multiples of 8
  EXPECT_DOUBLE_EQ(state_bytes_per_parameter(make_scenario(bf16_shape(), p)), 2.25);
}

// bf16 gradients take 2 bytes and bf16 moments 2 x 2: replicated 2 + 2 + 12 = 16 (mixed precision of the ZeRO paper),
// or with bf16 moments and f32 gradients 2 + 4 + 4 + 4 = 14 (Megatron-Core's precision-aware optimizer, DeepSeek-V3's
// recipe). Sharded over 8: 4 + 12/8, 2 + 14/8, 16/8.
TEST(Memory, NarrowGradientsAndMomentsTakeTheirBytes) {
  TinyShape shape = bf16_shape();
  TinyPlan p{.name = "narrow", .dp = 8, .bucket_elements = 0};
  shape.moments = program::DType::kBf16;
  EXPECT_DOUBLE_EQ(state_bytes_per_parameter(make_scenario(shape, p)), 14.0);
  p.zero = 1;
  EXPECT_DOUBLE_EQ(state_bytes_per_parameter(make_scenario(shape, p)), 7.0);  // 2 + 4 + 8/8
  shape.moments = program::DType::kF32;
  shape.gradients = program::DType::kBf16;
  EXPECT_DOUBLE_EQ(state_bytes_per_parameter(make_scenario(shape, p)), 5.5);
  p.zero = 0;
  EXPECT_DOUBLE_EQ(state_bytes_per_parameter(make_scenario(shape, p)), 16.0);
  p.zero = 2;
  EXPECT_DOUBLE_EQ(state_bytes_per_parameter(make_scenario(shape, p)), 3.75);
  p.zero = 3;
  EXPECT_DOUBLE_EQ(state_bytes_per_parameter(make_scenario(shape, p)), 2.0);
}

// FSDP2's mixed precision: fp32 shards, fp32 gradients and two fp32 moments, 16/8, whatever gradients are reduced in.
TEST(Memory, Fp32ShardsHaveNoMasterCopy) {
  TinyPlan p{.name = "fsdp2", .dp = 8, .zero = 3, .fp32_shards = true};
  EXPECT_DOUBLE_EQ(state_bytes_per_parameter(make_scenario(TinyShape{}, p)), 2.0);
  p.gradients = program::DType::kBf16;
  EXPECT_DOUBLE_EQ(state_bytes_per_parameter(make_scenario(TinyShape{}, p)), 2.0);
  p.replicate = 2;
  EXPECT_DOUBLE_EQ(state_bytes_per_parameter(make_scenario(TinyShape{}, p)), 4.0);
}

// HSDP holds in each of its groups what ZeRO over that many ranks holds: with two groups of 4 the states are sharded
// over 4, whatever dp is: 18/4, 2 + 16/4, 6 + 12/4.
TEST(Memory, HybridShardsOverTheInnerGroup) {
  TinyPlan p{.name = "hsdp", .dp = 8, .zero = 3, .bucket_elements = 0, .replicate = 2};
  EXPECT_DOUBLE_EQ(state_bytes_per_parameter(make_scenario(bf16_shape(), p)), 4.5);
  p.zero = 2;
  EXPECT_DOUBLE_EQ(state_bytes_per_parameter(make_scenario(bf16_shape(), p)), 6.0);
  p.zero = 1;
  EXPECT_DOUBLE_EQ(state_bytes_per_parameter(make_scenario(bf16_shape(), p)), 9.0);
}

// fp32 weights are their own master: 4 + 4 + 8 = 16 bytes.
TEST(Memory, Fp32StatesTakeSixteenBytes) {
  EXPECT_DOUBLE_EQ(state_bytes_per_parameter(make_scenario(TinyShape{}, TinyPlan{.name = "fp32"})), 16.0);
}

// ZeRO-2 holds, beside its shard, the gradients of buckets that are not reduced yet, 4 bytes per element each. One
// bucket: P + P/8. Smallest buckets, one for each parameter: those of the largest module, reduced when its backward
// pass is complete: the MLP's norm h, gate and up 2fh, down fh.
TEST(Memory, ZeroTwoHoldsOneBucketOfGradients) {
  TinyPlan p{.name = "zero2", .dp = 8, .zero = 2, .bucket_elements = 0};
  const auto gradients = [&] {
    return bytes_of(lifetimes_of(make_scenario(bf16_shape(), p)).class_peak, MemoryClass::kGradients);
  };
  const TinyShape shape = bf16_shape();
  const std::int64_t parameters = models::count_parameters(make_scenario(shape, p).model).total;
  EXPECT_EQ(gradients(), 4 * parameters + 4 * parameters / 8);
  p.bucket_elements = 1;
  const std::int64_t module = 3 * shape.ffn * shape.hidden + shape.hidden;
  EXPECT_EQ(gradients(), 4 * module + 4 * parameters / 8);
  // Gradients of several microbatches meet in the shard: more of them hold no more.
  p.dp = 2;
  EXPECT_EQ(gradients(), 4 * module + 4 * parameters / 2);
}

// One more layer adds what a layer keeps between its passes. bf16, per token (own count, as in published recipes for
// Llama-type layers with a flash kernel): two norm inputs and outputs 8h, qkv 2h(1 + 2g/a), attention output 2h, gate
// and up 4f, their product 2f, log-sum-exp 4a, and the two norms' f32 statistics 8. For Llama 3 8B that is 139,392 + 8.
TEST(Memory, OneLayerKeepsTheClosedForm) {
  TinyShape shape = bf16_shape();
  shape.global_batch = 1;
  const auto peak_with = [&](std::int64_t layers, Recompute recompute) {
    shape.layers = layers;
    const TinyPlan p{.name = "layers", .recompute = recompute};
    return bytes_of(lifetimes_of(make_scenario(shape, p)).class_peak, MemoryClass::kActivations);
  };
  const std::int64_t h = shape.hidden, f = shape.ffn, a = shape.heads, g = shape.kv_heads;
  const std::int64_t per_token = 8 * h + 2 * h + 4 * h * g / a + 2 * h + 6 * f + 4 * a + 8;
  EXPECT_EQ(peak_with(5, {}) - peak_with(4, {}), per_token * shape.sequence);
  // Recomputing norms drops their two outputs (4h) and statistics (8); the activation drops 2f; full keeps the input
  // 2h.
  const Recompute norms{RecomputeKind::kSelective, true, false, false};
  EXPECT_EQ(peak_with(5, norms) - peak_with(4, norms), (per_token - 4 * h - 8) * shape.sequence);
  const Recompute act{RecomputeKind::kSelective, false, true, false};
  EXPECT_EQ(peak_with(5, act) - peak_with(4, act), (per_token - 2 * f) * shape.sequence);
  const Recompute full{RecomputeKind::kFull, false, false, false};
  EXPECT_EQ(peak_with(5, full) - peak_with(4, full), 2 * h * shape.sequence);
}

// By all-to-all a layer keeps its queries, keys and values as attention saw them, in place of its own rows', and so the
// attention's output beside that of the own rows: 2h more per token (Transformer Engine since 2.8). A ring keeps the
// same as one rank.
TEST(Memory, ExchangedHeadsKeepTheOutputTwice) {
  TinyShape shape = bf16_shape();
  shape.global_batch = 1;
  const auto layer_keeps = [&](ContextComm comm) {
    const auto peak_with = [&](std::int64_t layers) {
      shape.layers = layers;
      const TinyPlan p{.name = "layers", .cp = 2, .cp_comm = comm};
      return bytes_of(lifetimes_of(make_scenario(shape, p)).class_peak, MemoryClass::kActivations);
    };
    return peak_with(5) - peak_with(4);
  };
  EXPECT_EQ(layer_keeps(ContextComm::kAllToAll) - layer_keeps(ContextComm::kP2p),
            2 * shape.hidden * shape.sequence / 2);
}

// Under 1F1B stage r keeps pp - r microbatches: the first stage of four keeps four times one microbatch's layers, the
// last keeps one.
TEST(Memory, EarlierStagesKeepMoreMicrobatches) {
  TinyShape shape = bf16_shape();
  const auto peak = [&](ScheduleKind kind, std::size_t stage) {
    const TinyPlan p{.name = "pp4", .pp = 4, .schedule = kind};
    return bytes_of(lifetimes_of(make_scenario(shape, p), stage).class_peak, MemoryClass::kActivations);
  };
  EXPECT_GT(peak(ScheduleKind::k1F1B, 1), peak(ScheduleKind::k1F1B, 2));
  EXPECT_GT(peak(ScheduleKind::kGpipe, 1), 3 * peak(ScheduleKind::k1F1B, 2));
}

}  // namespace
}  // namespace stepcast::plan
