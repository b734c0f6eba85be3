// What 8- and 4-bit matmuls add to a layer's Program, against counts by hand.
//
// The layer: hidden h 32, 8 heads and 4 kv heads of 4 (q 32, qkv 64 columns), MLP f 48 (gate and up 96), T 16 tokens,
// bf16 otherwise. Its weights: wqkv 64x32, wo 32x32, gate_up 96x32, down 32x48 = 2048 + 1024 + 3072 + 1536 = 7680.
// Inputs of the four matmuls: norm h, attention q, norm h, activation f: T (32 + 32 + 32 + 48) = 2304 elements.
// Gradients of their outputs: qkv 64, h 32, 96, h 32: T 224 = 3584 elements.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "plan/lowering.h"
#include "plan/quantisation.h"
#include "program/check.h"
#include "program/lifetimes.h"
#include "program/ops/rules.h"
#include "tests/plan/tiny_scenario.h"

namespace stepcast::plan {
namespace {

using program::Call;
using program::DType;
using program::OpKind;
using program::Pass;
using program::Program;
using program::RankProgram;
using program::Work;
using testing::TinyPlan;
using testing::TinyShape;

constexpr std::int64_t kWeights = 7680;
constexpr std::int64_t kInputs = 2304;
constexpr std::int64_t kGradients = 3584;

Scenario scenario(MatmulRecipe recipe, const std::string& architecture, TinyPlan plan = {.name = "layer"},
                  std::int64_t layers = 4) {
  TinyShape shape;
  shape.layers = layers;
  shape.global_batch = 2;
  shape.compute = DType::kBf16;
  plan.name = "quantised";
  Scenario s = make_scenario(shape, plan);
  s.training.recipe = recipe;
  s.cluster.node.device.architecture = architecture;
  s.cluster.node.device.peak_fp8 = FlopsPerSecond(2e9);
  s.cluster.node.device.peak_fp4 = FlopsPerSecond(4e9);
  return s;
}

struct Sum {
  std::int64_t count = 0, read = 0, written = 0;
  double flops = 0;
  bool operator==(const Sum&) const = default;
};

bool is_of(const Call& call, Pass pass, std::uint32_t microbatch, std::uint32_t layer) {
  return call.tag.pass == pass && call.tag.microbatch == microbatch && call.tag.layer == layer;
}

// Ops of one kind in the passes of a layer of the first rank program.
Sum sum_of(const Program& p, OpKind kind, std::vector<Pass> passes, std::uint32_t microbatch, std::uint32_t layer) {
  Sum sum;
  const RankProgram& r = p.rank_programs[program::RankProgramId(0)];
  for (const Call& call : r.calls) {
    if (std::none_of(passes.begin(), passes.end(), [&](Pass pass) { return is_of(call, pass, microbatch, layer); })) {
      continue;
    }
    const program::Segment& segment = p.segments[call.segment];
    for (const program::Op& op : segment.ops) {
      if (op.kind != kind) continue;
      std::vector<program::TensorType> types;
      for (const program::Operand& o : op.operands) types.push_back(segment.type_of(o));
      const Work w = program::work_of(op, types);
      sum = {sum.count + 1, sum.read + w.read.count, sum.written + w.written.count, sum.flops + w.flops.count};
    }
  }
  return sum;
}

const std::vector<Pass> kBackward = {Pass::kInputGrad, Pass::kWeightGrad};

// Hopper, one scale a tensor: every input and gradient is read once for its maximum and once to be quantised (bf16, 2
// bytes, and its f32 maximum), and written twice, as it is and transposed.
TEST(QuantisedLayer, TensorwiseCastsOnHopper) {
  const Program p = lower(scenario(MatmulRecipe::kTensorwise, "sm90"));
  EXPECT_EQ(sum_of(p, OpKind::kAbsMax, {Pass::kForward}, 1, 1), (Sum{4, 2 * kInputs, 16, 0}));
  EXPECT_EQ(sum_of(p, OpKind::kQuantise, {Pass::kForward}, 1, 1), (Sum{4, 2 * kInputs + 16, 2 * kInputs, 0}));
  EXPECT_EQ(sum_of(p, OpKind::kAbsMax, kBackward, 1, 1), (Sum{4, 2 * kGradients, 16, 0}));
  EXPECT_EQ(sum_of(p, OpKind::kQuantise, kBackward, 1, 1), (Sum{4, 2 * kGradients + 16, 2 * kGradients, 0}));
  // The first microbatch quantises the weights too.
  const Sum first = sum_of(p, OpKind::kQuantise, {Pass::kForward}, 0, 1);
  EXPECT_EQ(first, (Sum{8, 2 * kInputs + 2 * kWeights + 32, 2 * kInputs + 2 * kWeights, 0}));
}

// With delayed scales the two norms write 8 bits themselves, 2 T h in all; what is quantised are the inputs of the
// other two projections, T (q + f) = 1280 elements. The norms' outputs are transposed.
TEST(QuantisedLayer, DelayedCastsOnHopper) {
  const Program p = lower(scenario(MatmulRecipe::kDelayed, "sm90"));
  EXPECT_EQ(sum_of(p, OpKind::kAbsMax, {Pass::kForward}, 1, 1), (Sum{}));
  EXPECT_EQ(sum_of(p, OpKind::kQuantise, {Pass::kForward}, 1, 1), (Sum{2, 2 * 1280, 2 * 1280, 0}));
  EXPECT_EQ(sum_of(p, OpKind::kTranspose, {Pass::kForward}, 1, 1), (Sum{2, 1024, 1024, 0}));
  // A norm reads x and its weight, 2 T h + 2 h, and writes T h and 4 T statistics.
  EXPECT_EQ(sum_of(p, OpKind::kRmsNormForward, {Pass::kForward}, 1, 1), (Sum{2, 2 * (1024 + 64), 2 * (512 + 64), 0}));
}

// Blackwell reads one scale's tensors in any layout: one copy of each. Blocks of 32 with a byte make two of 33 / 32
// bytes an element; of 16 half bytes with a byte two of 9 / 16, and a pass for the maximum of all.
TEST(QuantisedLayer, CastsOnBlackwell) {
  const Program delayed = lower(scenario(MatmulRecipe::kDelayed, "sm100"));
  EXPECT_EQ(sum_of(delayed, OpKind::kQuantise, kBackward, 1, 1), (Sum{4, 2 * kGradients, kGradients, 0}));
  EXPECT_EQ(sum_of(delayed, OpKind::kTranspose, {Pass::kForward}, 1, 1), (Sum{}));
  const Program mx = lower(scenario(MatmulRecipe::kMxfp8, "sm100"));
  EXPECT_EQ(sum_of(mx, OpKind::kQuantise, kBackward, 1, 1), (Sum{4, 2 * kGradients, 2 * kGradients * 33 / 32, 0}));
  const Program nv = lower(scenario(MatmulRecipe::kNvfp4, "sm100"));
  EXPECT_EQ(sum_of(nv, OpKind::kQuantise, kBackward, 1, 1), (Sum{4, 2 * kGradients + 16, 2 * kGradients * 9 / 16, 0}));
  EXPECT_EQ(sum_of(nv, OpKind::kAbsMax, kBackward, 1, 1).count, 4);
}

// 2 T times the weights forward, twice that backward, whatever is read: forward 1 byte an element of input and weight,
// and 2 bytes written of T (64 + 32 + 96 + 32) = 3584 outputs. Gradients of weights are f32, read and written.
TEST(QuantisedLayer, MatmulsReadAByteAnElement) {
  for (const char* const architecture : {"sm90", "sm100"}) {
    const Program p = lower(scenario(MatmulRecipe::kDelayed, architecture));
    const Sum forward = sum_of(p, OpKind::kMatmul, {Pass::kForward}, 1, 1);
    EXPECT_EQ(forward, (Sum{4, kInputs + kWeights, 2 * kGradients, 2.0 * 16 * kWeights})) << architecture;
    const Sum input = sum_of(p, OpKind::kMatmul, {Pass::kInputGrad}, 1, 1);
    EXPECT_EQ(input, (Sum{4, kGradients + kWeights, 2 * kInputs, 2.0 * 16 * kWeights})) << architecture;
    const Sum weight = sum_of(p, OpKind::kMatmul, {Pass::kWeightGrad}, 1, 1);
    EXPECT_EQ(weight, (Sum{4, kGradients + kInputs + 4 * kWeights, 4 * kWeights, 2.0 * 16 * kWeights})) << architecture;
  }
}

// Bytes of one memory class that one more layer adds to the peak of a class.
std::int64_t bytes_per_layer(MatmulRecipe recipe, const std::string& architecture, program::MemoryClass of) {
  const auto peak = [&](std::int64_t layers) {
    const program::CheckedProgram p(lower(scenario(recipe, architecture, {.name = ""}, layers)));
    const program::RankProgramId id(0);
    const program::Lifetimes l =
        program::derive_lifetimes(p.program(), p.program().rank_programs[id], p.resolution(id));
    return l.class_peak[static_cast<std::size_t>(of)];
  };
  return peak(5) - peak(4);
}

// In bf16 the inputs of the matmuls are kept at 2 bytes. Quantised, those of the norms and of the activation at 1 (33 /
// 32, 9 / 16), T (h + h + f) = 1792 elements; the output of attention stays, since its own backward pass reads it, and
// 1 byte of T q = 512 elements comes beside it.
TEST(QuantisedLayer, KeepsQuantisedInputs) {
  const auto activations = program::MemoryClass::kActivations;
  const std::int64_t plain = bytes_per_layer(MatmulRecipe::kNone, "sm90", activations);
  const std::int64_t rest = plain - 2 * 1792;
  EXPECT_EQ(bytes_per_layer(MatmulRecipe::kTensorwise, "sm90", activations), rest + 1792 + 512);
  EXPECT_EQ(bytes_per_layer(MatmulRecipe::kDelayed, "sm90", activations), rest + 1792 + 512);
  EXPECT_EQ(bytes_per_layer(MatmulRecipe::kDelayed, "sm100", activations), rest + 1792 + 512);
  EXPECT_EQ(bytes_per_layer(MatmulRecipe::kMxfp8, "sm100", activations), rest + (1792 + 512) * 33 / 32);
  EXPECT_EQ(bytes_per_layer(MatmulRecipe::kNvfp4, "sm100", activations), rest + (1792 + 512) * 9 / 16);
}

// Copies of the weights stay: two where directions differ, one where they do not. Delayed scales and their maxima: six
// numbers for a module's forward pass, four for its backward pass, of two modules: 2 x 20 x 4 bytes.
TEST(QuantisedLayer, KeepsQuantisedWeights) {
  const auto weights = program::MemoryClass::kWeights;
  const std::int64_t plain = bytes_per_layer(MatmulRecipe::kNone, "sm90", weights);
  EXPECT_EQ(plain, 2 * (kWeights + 64));  // and two norms of 32
  EXPECT_EQ(bytes_per_layer(MatmulRecipe::kTensorwise, "sm90", weights), plain + 2 * kWeights);
  EXPECT_EQ(bytes_per_layer(MatmulRecipe::kTensorwise, "sm100", weights), plain + kWeights);
  EXPECT_EQ(bytes_per_layer(MatmulRecipe::kDelayed, "sm90", weights), plain + 2 * kWeights + 160);
  EXPECT_EQ(bytes_per_layer(MatmulRecipe::kMxfp8, "sm100", weights), plain + 2 * kWeights * 33 / 32);
  EXPECT_EQ(bytes_per_layer(MatmulRecipe::kNvfp4, "sm100", weights), plain + 2 * kWeights * 9 / 16);
}

// Message bytes of a rank's step by kind of collective in the passes of one layer and microbatch.
std::int64_t message_bytes(const Program& p, OpKind kind, std::vector<Pass> passes) {
  std::int64_t bytes = 0;
  const RankProgram& r = p.rank_programs[program::RankProgramId(0)];
  for (const Call& call : r.calls) {
    if (std::none_of(passes.begin(), passes.end(), [&](Pass pass) { return is_of(call, pass, 1, 1); })) continue;
    const program::Segment& segment = p.segments[call.segment];
    for (const program::Op& op : segment.ops) {
      if (op.kind != kind) continue;
      std::vector<program::TensorType> types;
      for (const program::Operand& o : op.operands) types.push_back(segment.type_of(o));
      bytes += program::work_of(op, types).message.count;
    }
  }
  return bytes;
}

// Under sequence parallelism a layer gathers T h four times forward and backward: twice its norms' outputs, again for
// the weight gradients, and two gradients: in all 6. Scatters stay bf16. Blocks scaled by direction gather a gradient
// twice, so that 8 gathers of 33 / 32 bytes stand against 6 of 2.
TEST(QuantisedLayer, TensorParallelRanksGatherWhatIsQuantised) {
  const TinyPlan plan{.name = "", .tp = 2, .sequence_parallel = true};
  const std::int64_t th = 16 * 32;
  const auto gathers = [&](MatmulRecipe recipe, const char* architecture) {
    const Program p = lower(scenario(recipe, architecture, plan));
    return message_bytes(p, OpKind::kAllGather, {Pass::kForward, Pass::kInputGrad});
  };
  EXPECT_EQ(gathers(MatmulRecipe::kNone, "sm90"), 6 * 2 * th);
  EXPECT_EQ(gathers(MatmulRecipe::kDelayed, "sm90"), 6 * th);
  EXPECT_EQ(gathers(MatmulRecipe::kTensorwise, "sm100"), 6 * th);
  EXPECT_EQ(gathers(MatmulRecipe::kMxfp8, "sm100"), 8 * th * 33 / 32);
  const auto scatters = [&](MatmulRecipe recipe) {
    return message_bytes(lower(scenario(recipe, "sm90", plan)), OpKind::kReduceScatter,
                         {Pass::kForward, Pass::kInputGrad});
  };
  EXPECT_EQ(scatters(MatmulRecipe::kTensorwise), scatters(MatmulRecipe::kNone));
}

// Every op of a step but those that quantise, in issue order.
std::vector<std::string> other_ops(const Scenario& s) {
  const Program p = lower(s);
  std::vector<std::string> ops;
  for (const RankProgram& r : p.rank_programs) {
    for (std::uint32_t c = 0; c < r.calls.size(); ++c) {
      const program::Segment& segment = p.segments[r.calls[c].segment];
      for (std::uint32_t o = 0; o < segment.ops.size(); ++o) {
        const program::Op& op = segment.ops[o];
        const bool quantises = op.kind == OpKind::kQuantise || op.kind == OpKind::kAbsMax ||
                               op.kind == OpKind::kTranspose || op.name.starts_with("reduce_amax");
        if (!quantises) ops.push_back(program::op_path(p, r, c, o) + " " + std::string(to_string(op.kind)));
      }
    }
  }
  return ops;
}

// The other ops of a plan are the same with and without, in the same order: nothing moves but the formats. Delayed
// scales add their update at the end of every pass, so they are left to the other tests.
TEST(QuantisedLayer, ChangesNothingElse) {
  const std::vector<TinyPlan> plans = {
      {.name = ""},
      {.name = "", .dp = 2, .tp = 2, .sequence_parallel = true, .zero = 1},
      {.name = "", .tp = 2, .pp = 2, .vp = 2},
      {.name = "", .recompute = {.kind = RecomputeKind::kFull}},
      {.name = "", .dp = 2, .zero = 3},
      {.name = "", .norm = models::NormKind::kLayerNorm, .activation = models::Activation::kGeluTanh, .biases = true}};
  for (const TinyPlan& plan : plans) {
    const std::vector<std::string> plain = other_ops(scenario(MatmulRecipe::kNone, "sm90", plan));
    EXPECT_GT(plain.size(), 100U);
    EXPECT_EQ(other_ops(scenario(MatmulRecipe::kTensorwise, "sm90", plan)), plain);
  }
}

// Lowering is checked for reads before writes, aliasing, matching and deadlocks by every combination.
TEST(QuantisedLayer, EveryRecipeGoesWithEveryPlan) {
  const std::vector<TinyPlan> plans = {
      {.name = "", .tp = 2},
      {.name = "", .tp = 2, .sequence_parallel = true, .pp = 2, .dropout = 0.1},
      {.name = "", .dp = 2, .tp = 2, .sequence_parallel = true, .pp = 2, .vp = 2, .zero = 1},
      {.name = "", .dp = 2, .zero = 3},
      {.name = "", .recompute = {.kind = RecomputeKind::kSelective, .layernorm = true, .mlp_act = true}},
      {.name = "",
       .tp = 2,
       .sequence_parallel = true,
       .recompute = {.kind = RecomputeKind::kSelective, .layernorm = true, .core_attn = true, .mlp = true}},
      {.name = "", .norm_placement = models::NormPlacement::kAfter},
      {.name = "", .cp = 2}};
  for (const TinyPlan& plan : plans) {
    for (const MatmulRecipe recipe : {MatmulRecipe::kDelayed, MatmulRecipe::kTensorwise, MatmulRecipe::kBlockwise,
                                      MatmulRecipe::kMxfp8, MatmulRecipe::kNvfp4}) {
      for (const char* const architecture : {"sm90", "sm100"}) {
        const program::CheckedProgram p(lower(scenario(recipe, architecture, plan)));
        EXPECT_GT(sum_of(p.program(), OpKind::kQuantise, {Pass::kForward}, 0, 0).count, 0);
      }
    }
  }
}

// The first and the last layer keep bf16 matmuls and no copies.
TEST(QuantisedLayer, LeavesFirstAndLastLayerInBf16) {
  Scenario s = scenario(MatmulRecipe::kTensorwise, "sm90");
  s.training.first_last_layers_bf16 = true;
  const program::CheckedProgram p(lower(s));
  for (std::uint32_t layer = 0; layer < 4; ++layer) {
    const bool outermost = layer == 0 || layer == 3;
    EXPECT_EQ(sum_of(p.program(), OpKind::kQuantise, {Pass::kForward}, 1, layer).count, outermost ? 0 : 4) << layer;
    const std::int64_t operand = outermost ? 2 : 1;
    EXPECT_EQ(sum_of(p.program(), OpKind::kMatmul, {Pass::kForward}, 1, layer).read, operand * (kInputs + kWeights));
  }
}

// All ranks of a stage agree on delayed scales at the end of every pass: 2 virtual stages x 2 microbatches, forward and
// backward.
TEST(QuantisedLayer, DelayedScalesAreReducedOncePerPass) {
  const TinyPlan plan{.name = "", .dp = 2, .tp = 2, .pp = 2, .vp = 2};
  Scenario s = scenario(MatmulRecipe::kDelayed, "sm90", plan);
  s.training.global_batch_size = 4;
  const Program p = lower(s);
  const RankProgram& r = p.rank_programs[program::RankProgramId(0)];
  std::int64_t reductions = 0;
  for (const Call& call : r.calls) {
    if (p.segments[call.segment].label == "scales") ++reductions;
  }
  EXPECT_EQ(reductions, 2 * 2 * 2);
}

// fp16: one pass over the fp32 gradients of a rank, and one flag that the host reads.
TEST(HalfPrecision, UnscalesGradientsOnce) {
  const auto unscaled = [](DType gradients, std::int32_t zero) {
    TinyShape shape;
    shape.compute = DType::kF16;
    shape.gradients = gradients;
    Scenario s = make_scenario(shape, {.name = "half", .dp = 2, .zero = zero});
    const program::CheckedProgram checked(lower(s));
    const Program& p = checked.program();
    Sum sum;
    for (const Call& call : p.rank_programs[program::RankProgramId(0)].calls) {
      const program::Segment& segment = p.segments[call.segment];
      for (const program::Op& op : segment.ops) {
        if (op.kind != OpKind::kUnscale) continue;
        std::vector<program::TensorType> types;
        for (const program::Operand& o : op.operands) types.push_back(segment.type_of(o));
        const Work w = program::work_of(op, types);
        sum = {sum.count + 1, sum.read + w.read.count - 4, sum.written + w.written.count - 4, 0};
      }
    }
    return sum;
  };
  // 4 layers of 7680 + 64, embedding and head of 64 x 32 and a norm of 32: 35104 parameters.
  constexpr std::int64_t kParameters = 4 * (kWeights + 64) + 2 * 64 * 32 + 32;
  // Replicated: f32 gradients, or the widened copy of fp16 ones, in place. ZeRO-1 over 2: half of it in place, or from
  // half as many fp16 elements into an f32 copy of the shard.
  for (const DType gradients : {DType::kF32, DType::kF16}) {
    const Sum whole = unscaled(gradients, 0);
    EXPECT_EQ(whole.read, 4 * kParameters);
    EXPECT_EQ(whole.written, 4 * kParameters);
  }
  EXPECT_EQ(unscaled(DType::kF32, 1).read, 4 * kParameters / 2);
  EXPECT_EQ(unscaled(DType::kF16, 1).read, 2 * kParameters / 2);
  EXPECT_EQ(unscaled(DType::kF16, 1).written, 4 * kParameters / 2);
}

}  // namespace
}  // namespace stepcast::plan
