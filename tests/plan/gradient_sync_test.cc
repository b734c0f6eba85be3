// When ZeRO-3 reduces gradients: how often, in which order, and what it holds until then.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "plan/lowering.h"
#include "program/check.h"
#include "program/lifetimes.h"
#include "tests/plan/scenario_text.h"
#include "tests/plan/tiny_scenario.h"

namespace stepcast::plan {
namespace {

using program::OpKind;
using program::RankProgramId;
using testing::make_scenario;
using testing::TinyPlan;
using testing::TinyShape;

// Reduce-scatters of gradients; those of sequence parallelism are on the stream of tp.
bool scatters_gradients(const program::Op& op) {
  return op.kind == OpKind::kReduceScatter && op.stream == program::Stream::kDp;
}

std::vector<std::size_t> scatters_per_stage(TinyPlan p, GradientSync sync) {
  p.sync = sync;
  const program::Program lowered = lower(make_scenario(TinyShape{}, p));
  std::vector<std::size_t> counts;
  for (std::size_t stage = 0; stage < lowered.rank_programs.size(); ++stage) {
    std::size_t& n = counts.emplace_back(0);
    for (const program::Call& call : lowered.rank_programs[RankProgramId(stage)].calls) {
      for (const program::Op& op : lowered.segments[call.segment].ops) n += scatters_gradients(op) ? 1 : 0;
    }
  }
  return counts;
}

using Scatters = std::vector<std::size_t>;

// Four layers on two stages: embedding and two layers, or two layers and the head: 3 units each, reduced once for each
// of the 4 microbatches (8 sequences, dp 2), or once. In two chunks a stage has the same 3 units.
TEST(GradientSync, ReducesAUnitPerMicrobatchOrOnce) {
  const TinyPlan pipeline{.name = "pp2", .dp = 2, .pp = 2, .zero = 3};
  EXPECT_EQ(scatters_per_stage(pipeline, GradientSync::kEveryMicrobatch), (Scatters{12, 12}));
  EXPECT_EQ(scatters_per_stage(pipeline, GradientSync::kLastMicrobatch), (Scatters{3, 3}));
  const TinyPlan chunks{.name = "pp2_vp2", .dp = 2, .pp = 2, .vp = 2, .zero = 3};
  EXPECT_EQ(scatters_per_stage(chunks, GradientSync::kEveryMicrobatch), (Scatters{12, 12}));
  EXPECT_EQ(scatters_per_stage(chunks, GradientSync::kLastMicrobatch), (Scatters{3, 3}));
  // Without a pipeline: embedding, four layers, head.
  const TinyPlan alone{.name = "dp2", .dp = 2, .zero = 3};
  EXPECT_EQ(scatters_per_stage(alone, GradientSync::kEveryMicrobatch), (Scatters{24}));
  EXPECT_EQ(scatters_per_stage(alone, GradientSync::kLastMicrobatch), (Scatters{6}));
  // With tp, norms of a layer and of the head are scattered apart: 3 units and 2 or 3 of norms. HSDP sums each over its
  // copies, too.
  const TinyPlan split{.name = "tp2", .dp = 4, .tp = 2, .sequence_parallel = true, .pp = 2, .zero = 3, .replicate = 2};
  EXPECT_EQ(scatters_per_stage(split, GradientSync::kLastMicrobatch), (Scatters{5, 6}));
}

// The last microbatch's backward passes and reductions in their order, each with its chunk: "I" input gradients, one
// word for neighbours, "r" the reduction of a unit, "w" the compute stream's wait.
std::string order_of(const program::Program& p, std::size_t stage, std::uint32_t last_microbatch) {
  std::string order;
  std::string before;
  for (const program::Call& call : p.rank_programs[RankProgramId(stage)].calls) {
    if (call.tag.microbatch != last_microbatch) continue;
    for (const program::Op& op : p.segments[call.segment].ops) {
      const std::string kind = call.tag.pass == program::Pass::kInputGrad ? "I"
                               : scatters_gradients(op)                   ? "r"
                               : op.kind == OpKind::kJoin                 ? "w"
                                                                          : "";
      if (kind.empty()) continue;
      const std::string word = kind + std::to_string(call.tag.chunk.value());
      if (kind != "I" || word != before) order += " " + word;
      before = word;
    }
  }
  return order;
}

// torch.distributed.pipelining reduces a chunk behind its last backward pass and waits before it goes on: chunk 1 of
// stage 0 holds one layer, chunk 0 the embedding and one.
TEST(GradientSync, ReducesAChunkBehindItsLastBackwardPass) {
  TinyPlan p{.name = "pp2_vp2", .dp = 2, .pp = 2, .vp = 2, .zero = 3, .sync = GradientSync::kLastMicrobatch};
  const program::Program chunks = lower(make_scenario(TinyShape{}, p));
  EXPECT_EQ(order_of(chunks, 0, 3), " I1 r1 w1 I0 r0 r0 w0");
  EXPECT_EQ(order_of(chunks, 1, 3), " I1 r1 r1 w1 I0 r0 w0");
  // FSDP2's hooks reduce unit by unit beside the backward pass: head, four layers, embedding.
  p.pp = p.vp = 1;
  const program::Program alone = lower(make_scenario(TinyShape{}, p));
  EXPECT_EQ(order_of(alone, 0, 3), " I0 r0 I0 r0 I0 r0 I0 r0 I0 r0 r0");
}

// bf16 compute with fp32 shards over dp 2: kept are 4 bytes of every parameter of the stage, beside the shard's 4/2 and
// one weight's gradient in bf16, the largest of them: gate and up of a layer, 2fh. Reduced in bf16, 2 bytes are kept.
TEST(GradientSync, KeepsWholeGradients) {
  const TinyShape shape;
  const auto held = [&](program::DType reduced) {
    TinyPlan p{.name = "kept", .dp = 2, .pp = 2, .zero = 3, .reshard = false, .sync = GradientSync::kLastMicrobatch};
    p.accumulation = GradientAccumulation::kSeparate;
    p.gradients = reduced;
    p.fp32_shards = true;
    const program::CheckedProgram lowered(lower(make_scenario(shape, p)));
    const RankProgramId id(0);
    return derive_lifetimes(lowered.program(), lowered.program().rank_programs[id], lowered.resolution(id))
        .class_peak[static_cast<std::size_t>(program::MemoryClass::kGradients)];
  };
  // Queries h^2, keys and values of half the heads h^2, output h^2, gate, up and down 3fh, two norms; the embedding Vh.
  const std::int64_t h = shape.hidden, f = shape.ffn;
  const std::int64_t stage = 2 * (3 * h * h + 3 * f * h + 2 * h) + shape.vocab * h;
  EXPECT_EQ(held(program::DType::kF32), 4 * stage + 4 * stage / 2 + 2 * 2 * f * h);
  EXPECT_EQ(held(program::DType::kBf16), 2 * stage + 4 * stage / 2 + 2 * 2 * f * h);
}

// A pipeline reduces once, with a kernel that adds; without one every microbatch, as torchtitan's accumulation does.
TEST(GradientSync, IsOnceAStepInAPipeline) {
  const std::string text = R"(framework: torchtitan
model: {num_hidden_layers: 4, hidden_size: 64, intermediate_size: 192, num_attention_heads: 8, vocab_size: 256}
cluster: hgx-h100
gpus: 8
training: {sequence_length: 64, global_batch_size: 32}
)";
  const Scenario pipeline = read_text(text, {"plan.pp=2"}).scenario;
  EXPECT_EQ(pipeline.plan.fsdp.gradient_sync, GradientSync::kLastMicrobatch);
  EXPECT_EQ(pipeline.accumulation, GradientAccumulation::kSeparate);
  const Scenario alone = read_text(text).scenario;
  EXPECT_EQ(alone.plan.fsdp.gradient_sync, GradientSync::kEveryMicrobatch);
  EXPECT_EQ(alone.accumulation, GradientAccumulation::kFused);
  // torchtitan has no flag for either of the others, which is told.
  const std::string every = "plan.fsdp.gradient_sync=every_microbatch";
  const ReadScenario told = read_text(text, {"plan.pp=2", every});
  EXPECT_EQ(told.scenario.plan.fsdp.gradient_sync, GradientSync::kEveryMicrobatch);
  EXPECT_EQ(told.warnings.size(), 1u);
  EXPECT_TRUE(read_text(text, {"plan.pp=2"}).warnings.empty());
  EXPECT_TRUE(read_text(text, {every}).warnings.empty());
  const std::string last = "plan.fsdp.gradient_sync=last_microbatch";
  EXPECT_EQ(read_text(text, {last}).warnings.size(), 1u);
  EXPECT_EQ(read_text(text, {last}).scenario.accumulation, GradientAccumulation::kSeparate);
  EXPECT_EQ(read_text(text, {last, "stack.gradient_accumulation=fused"}).scenario.accumulation,
            GradientAccumulation::kFused);
}

}  // namespace
}  // namespace stepcast::plan
