// What each way of recomputing means: which layers run again, and what is kept instead of their activations.
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/lowering.h"
#include "plan/rules.h"
#include "program/check.h"
#include "program/lifetimes.h"
#include "tests/plan/scenario_text.h"
#include "tests/plan/tiny_scenario.h"

namespace stepcast::plan {
namespace {

using program::MemoryClass;
using testing::TinyPlan;
using testing::TinyShape;

struct Words {
  std::vector<std::string> settings;
  RecomputeKind kind;
  std::int64_t together, first, every;
  bool mlp;
};

TEST(Recompute, ReadsTheWordsOfMegatronAndTorchtitan) {
  const Words table[] = {
      {{"plan.recompute=full"}, RecomputeKind::kFull, 1, 0, 1, false},
      {{"plan.recompute={granularity: full, method: uniform, num_layers: 2}"}, RecomputeKind::kFull, 2, 0, 1, false},
      {{"plan.recompute={granularity: full, method: block, num_layers: 3}"}, RecomputeKind::kFull, 1, 3, 1, false},
      {{"plan.recompute=selective[mlp]"}, RecomputeKind::kSelective, 1, 0, 1, true},
      {{"plan.recompute={mode: full}"}, RecomputeKind::kFull, 1, 0, 1, false},
      {{"plan.recompute={mode: none}"}, RecomputeKind::kNone, 1, 0, 1, false},
      {{"plan.recompute={mode: selective, policy: every 3}"}, RecomputeKind::kFull, 1, 0, 3, false},
      {{"plan.recompute={policy: 2}"}, RecomputeKind::kFull, 1, 0, 2, false},
      {{"plan.activation_checkpoint={mode: selective, selective_ac_option: 4}"}, RecomputeKind::kFull, 1, 0, 4, false},
      {{"framework=torchtitan", "plan.recompute=selective"}, RecomputeKind::kFull, 1, 0, 2, false},
      {{"framework=megatron-core", "plan.recompute=selective"}, RecomputeKind::kSelective, 1, 0, 1, false},
  };
  for (const Words& words : table) {
    const ReadScenario read = read_tiny(words.settings);
    const Recompute& r = read.scenario.plan.recompute;
    const std::string& what = words.settings.back();
    EXPECT_EQ(to_text(read.violations), "") << what;
    EXPECT_EQ(to_string(r.kind), to_string(words.kind)) << what;
    EXPECT_EQ(r.together, words.together) << what;
    EXPECT_EQ(r.first, words.first) << what;
    EXPECT_EQ(r.every, words.every) << what;
    EXPECT_EQ(r.mlp, words.mlp) << what;
  }
}

TEST(Recompute, RefusesWordsThatDoNotGoTogether) {
  struct Bad {
    const char* setting;
    int exit_code;
  };
  for (const Bad& bad :
       {Bad{"plan.recompute={granularity: full, mode: full}", 3},
        Bad{"plan.recompute={mode: full, policy: every 2}", 3},
        Bad{"plan.recompute={mode: selective, policy: sometimes}", 3},
        Bad{"plan.recompute={mode: selective, policy: every 0}", 3},
        Bad{"plan.recompute={granularity: full, method: block}", 3},
        Bad{"plan.recompute={granularity: selective, method: uniform}", 3}, Bad{"plan.recompute={num_layers: 2}", 3},
        Bad{"plan.recompute={mode: selective, policy: op}", 4}, Bad{"plan.recompute={mode: memory_budget}", 4},
        Bad{"plan.recompute=selective[moe_act]", 4}}) {
    EXPECT_EQ(exit_code_of(kTiny, {bad.setting}), bad.exit_code) << bad.setting;
  }
  EXPECT_EQ(exit_code_of(kTiny, {"plan={zero: 3}", "plan.recompute={granularity: full, num_layers: 2}"}), 4);
}

// A module or a method that its framework has no flag for runs and is told.
TEST(Recompute, WarnsOfWhatTheFrameworkHasNoFlagFor) {
  const auto warnings = [](const std::string& framework, const std::string& recompute) {
    return read_tiny({"framework=" + framework, "plan.recompute=" + recompute}).warnings.size();
  };
  EXPECT_EQ(warnings("megatron-core", "selective[mlp]"), 0u);
  EXPECT_EQ(warnings("megatron-core", "selective[mlp, mlp_act]"), 1u);
  EXPECT_EQ(warnings("megatron-core", "{granularity: full, num_layers: 2}"), 0u);
  EXPECT_EQ(warnings("megatron-core", "{policy: every 2}"), 1u);
  EXPECT_EQ(warnings("nanotron", "full"), 0u);
  EXPECT_EQ(warnings("nanotron", "selective[core_attn]"), 1u);
  EXPECT_EQ(warnings("nanotron", "{granularity: full, method: block, num_layers: 1}"), 1u);
  EXPECT_EQ(warnings("torchtitan", "{policy: every 2}"), 0u);
  EXPECT_EQ(warnings("plain", "selective[mlp, mlp_act]"), 0u);
}

TinyShape shape_of(std::int64_t layers, std::int64_t batch = 1) {
  TinyShape shape;
  shape.compute = program::DType::kBf16;
  shape.layers = layers;
  shape.global_batch = batch;
  return shape;
}

// Calls of recomputed segments on the first pipeline rank.
std::int64_t recompute_calls(const Scenario& s) {
  const program::Program p = lower(s);
  const auto& calls = p.rank_programs[program::RankProgramId(0)].calls;
  return std::count_if(calls.begin(), calls.end(),
                       [](const program::Call& call) { return call.tag.pass == program::Pass::kRecompute; });
}

// A layer is eight segments: norm, qkv, core, out and norm, gate-up, activation, down. Two microbatches each.
TEST(Recompute, RunsTheChosenLayersAgain) {
  const auto layers_again = [](std::int64_t layers, std::int32_t pp, std::int32_t vp, Recompute recompute) {
    const TinyPlan p{.name = "again", .pp = pp, .vp = vp, .recompute = recompute};
    const std::int64_t calls = recompute_calls(make_scenario(shape_of(layers, 2), p));
    EXPECT_EQ(calls % 16, 0);
    return calls / 16;
  };
  const RecomputeKind full = RecomputeKind::kFull;
  EXPECT_EQ(layers_again(8, 1, 1, {.kind = full}), 8);
  EXPECT_EQ(layers_again(8, 1, 1, {.kind = full, .together = 3}), 8);
  EXPECT_EQ(layers_again(8, 1, 1, {.kind = full, .first = 3}), 3);
  EXPECT_EQ(layers_again(8, 1, 1, {.kind = full, .every = 3}), 2);  // the third and the sixth
  // Counted in each virtual stage: 4 layers a rank in two chunks of 2, of which the first is recomputed.
  EXPECT_EQ(layers_again(8, 2, 2, {.kind = full, .first = 1}), 2);
  EXPECT_EQ(layers_again(8, 2, 1, {.kind = full, .first = 9}), 4);
}

std::int64_t peak_activations(std::int64_t layers, Recompute recompute) {
  const TinyPlan p{.name = "peak", .recompute = recompute};
  const program::CheckedProgram program(lower(make_scenario(shape_of(layers), p)));
  const program::RankProgramId id(0);
  const auto lifetimes =
      program::derive_lifetimes(program.program(), program.program().rank_programs[id], program.resolution(id));
  return lifetimes.class_peak[static_cast<std::size_t>(MemoryClass::kActivations)];
}

// bf16, per token: a layer keeps 8h + 2h(1 + 2g/a) + 2h + 6f + 4a + 8 bytes, its input 2h. Uniform keeps one input for
// four layers; block keeps whole layers behind the first ones; mlp drops gate and up (4f) and their product (2f).
TEST(Recompute, KeepsTheClosedForms) {
  const TinyShape shape = shape_of(4);
  const std::int64_t h = shape.hidden, f = shape.ffn, a = shape.heads, g = shape.kv_heads, s = shape.sequence;
  const std::int64_t whole = 8 * h + 2 * h + 4 * h * g / a + 2 * h + 6 * f + 4 * a + 8;
  const Recompute uniform{.kind = RecomputeKind::kFull, .together = 4};
  EXPECT_EQ(peak_activations(12, uniform) - peak_activations(8, uniform), 2 * h * s);
  const Recompute block{.kind = RecomputeKind::kFull, .first = 2};
  EXPECT_EQ(peak_activations(6, block) - peak_activations(5, block), whole * s);
  const Recompute mlp{.kind = RecomputeKind::kSelective, .mlp = true};
  EXPECT_EQ(peak_activations(6, mlp) - peak_activations(5, mlp), (whole - 6 * f) * s);
  // Half of the layers keep their inputs only.
  const Recompute every{.kind = RecomputeKind::kFull, .every = 2};
  EXPECT_EQ(peak_activations(8, every) - peak_activations(6, every), (whole + 2 * h) * s);
}

// Logits in bf16 and a copy in fp32, 6 bytes for each, instead of 2: with 2^14 rows nothing else of the head matters
// but what its backward pass adds beside the logits, less than 8h a token.
TEST(HeadLoss, UnfusedKeepsLogitsInFp32) {
  const auto peak = [](HeadLoss loss) {
    TinyShape shape = shape_of(1);
    shape.vocab = 1 << 14;
    const TinyPlan p{.name = "loss", .head_loss = loss};
    const program::CheckedProgram program(lower(make_scenario(shape, p)));
    const program::RankProgramId id(0);
    const auto lifetimes =
        program::derive_lifetimes(program.program(), program.program().rank_programs[id], program.resolution(id));
    return lifetimes.class_peak[static_cast<std::size_t>(MemoryClass::kActivations)];
  };
  const TinyShape shape = shape_of(1);
  const std::int64_t more = peak(HeadLoss::kUnfused) - peak(HeadLoss::kFused);
  EXPECT_LE(more, (std::int64_t{4} << 14) * shape.sequence);
  EXPECT_GE(more, ((std::int64_t{4} << 14) - 8 * shape.hidden) * shape.sequence);
}

}  // namespace
}  // namespace stepcast::plan
