// plan.overlap.tp_comm: the chunks in their order, the bytes they move against those of the collectives they replace,
// and the rules.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plan/lowering.h"
#include "program/check.h"
#include "program/ops/rules.h"
#include "tests/plan/scenario_text.h"
#include "tests/plan/tiny_scenario.h"

namespace stepcast::plan {
namespace {

using program::Op;
using program::OpKind;
using program::Stream;
using testing::TinyPlan;

program::Program lowered(bool chunks, std::int32_t tp = 4, bool ring_scatter = false) {
  TinyPlan plan{.name = "tp", .tp = tp, .sequence_parallel = true, .tp_comm = chunks};
  plan.tp_ring_scatter = ring_scatter;
  return lower(testing::make_scenario({}, plan));
}

const program::Segment& segment_with(const program::Program& p, program::Pass pass, const std::string& op) {
  const program::RankProgram& r = p.rank_programs[program::RankProgramId(0)];
  for (const program::Call& call : r.calls) {
    const std::vector<Op>& ops = p.segments[call.segment].ops;
    const auto named = [&](const Op& o) { return o.name == op; };
    if (call.tag.pass == pass && std::any_of(ops.begin(), ops.end(), named)) return p.segments[call.segment];
  }
  throw std::runtime_error("no segment has op " + op);
}

// "tp gather1 0 g1": stream, name, operands; a number is the part of the member so many places before, w is whole.
std::vector<std::string> lines_of(const program::Segment& s) {
  std::vector<std::string> lines;
  for (const Op& op : s.ops) {
    std::string line = std::string(to_string(op.stream)) + " " + op.name;
    for (const program::Operand& o : op.operands) {
      line += " " + (o.temp ? s.temps[o.index].name : s.slots[o.index].name);
      if (o.is_part()) line += std::to_string(o.before);
    }
    lines.push_back(line);
  }
  return lines;
}

// The chunk of step s is multiplied while it is sent on and that of step s + 1 arrives.
TEST(TensorOverlap, GathersRoundTheRingBesideTheMatmul) {
  EXPECT_EQ(lines_of(segment_with(lowered(true), program::Pass::kForward, "gate_up0")),
            (std::vector<std::string>{"compute own_chunk n gathered0", "tp gather1 gathered0 gathered1",
                                      "compute gate_up0 gathered0 w y0", "tp gather2 gathered1 gathered2",
                                      "compute gate_up1 gathered1 w y1", "tp gather3 gathered2 gathered3",
                                      "compute gate_up2 gathered2 w y2", "compute gate_up3 gathered3 w y3"}));
}

// Block n of the weight's rows makes block n of the product's columns, of four: 4 - n before the first.
TEST(TensorOverlap, ScattersBlocksOfTheProductAsAPipeline) {
  EXPECT_EQ(lines_of(segment_with(lowered(true), program::Pass::kForward, "down0")),
            (std::vector<std::string>{
                "compute down0 a w0 product0", "tp scatter0 product0 sum", "compute down1 a w3 product1",
                "tp scatter1 product1 sum", "compute down2 a w2 product2", "tp scatter2 product2 sum",
                "compute down3 a w1 product3", "tp scatter3 product3 sum", "compute residual x sum y"}));
}

// The product of the member 1 place on (3 before) is computed first and sent 1 place on; the own one comes last.
TEST(TensorOverlap, SendsEachChunkOfTheProductToItsOwner) {
  EXPECT_EQ(lines_of(segment_with(lowered(true, 4, true), program::Pass::kForward, "down0")),
            (std::vector<std::string>{
                "compute down1 a3 w product3", "tp scatter1 product3 arrived1", "compute down2 a2 w product2",
                "tp scatter2 product2 arrived2", "compute down3 a1 w product1", "tp scatter3 product1 arrived3",
                "compute down0 a0 w arrived0", "compute sum arrived sum", "compute residual x sum y"}));
}

// The weight gradient reads the gathered gradient.
TEST(TensorOverlap, GathersTheGradientOfARowParallelProjection) {
  EXPECT_EQ(lines_of(segment_with(lowered(true, 2), program::Pass::kInputGrad, "down0")),
            (std::vector<std::string>{"compute own_chunk dy gathered0", "tp gather1 gathered0 gathered1",
                                      "compute down0 gathered0 w da0", "compute down1 gathered1 w da1"}));
}

// As Megatron-Core does by default, the gather of a column-parallel projection's input runs beside its input gradient
// and the reduction beside the weight gradient, both whole: by user buffers, whose gather the own rows are copied for.
// The output layer is none of Transformer Engine's.
TEST(TensorOverlap, LeavesBulkOverlapAndTheHeadWhole) {
  const program::Program chunks = lowered(true);
  const program::Program whole = lowered(false);
  for (const char* op : {"gate_up", "qkv"}) {
    std::vector<std::string> expected = lines_of(segment_with(whole, program::Pass::kInputGrad, op));
    ASSERT_EQ(expected[0], "tp gather_input n gathered");
    expected[0] = "tp gather_input copied gathered";
    expected.insert(expected.begin(), "compute own_rows n copied");
    EXPECT_EQ(lines_of(segment_with(chunks, program::Pass::kInputGrad, op)), expected);
  }
  for (const program::Pass pass : {program::Pass::kForward, program::Pass::kInputGrad}) {
    EXPECT_EQ(lines_of(segment_with(chunks, pass, "logits")), lines_of(segment_with(whole, pass, "logits")));
  }
}

// Of `op` in the segment that has `matmul`.
std::int32_t multiprocessors(const program::Program& p, program::Pass pass, const std::string& matmul,
                             const std::string& op) {
  for (const Op& o : segment_with(p, pass, matmul).ops) {
    if (o.name == op) return o.attributes.multiprocessors;
  }
  return -2;
}

// Defaults of initialize_ub: copies hold none and leave all; pipelines and bulk communicate by 16, the last block of a
// pipeline by 32, and their matmuls leave 16 free.
TEST(TensorOverlap, RunsOnTheMultiprocessorsOfTransformerEngine) {
  using program::Pass;
  const program::Program p = lowered(true);
  const auto of = [&p](Pass pass, const char* matmul, const char* op) { return multiprocessors(p, pass, matmul, op); };
  EXPECT_EQ(of(Pass::kForward, "qkv0", "gather1"), 0);
  EXPECT_EQ(of(Pass::kForward, "qkv0", "qkv0"), -1);
  EXPECT_EQ(of(Pass::kForward, "down0", "down0"), 16);
  EXPECT_EQ(of(Pass::kForward, "down0", "scatter2"), 16);
  EXPECT_EQ(of(Pass::kForward, "down0", "scatter3"), 32);
  EXPECT_EQ(of(Pass::kInputGrad, "gate_up", "gather_input"), 16);
  EXPECT_EQ(of(Pass::kInputGrad, "gate_up", "gate_up"), 16);
  EXPECT_EQ(of(Pass::kInputGrad, "gate_up", "reduce"), 16);
  EXPECT_EQ(of(Pass::kWeightGrad, "gate_up", "gate_up"), 16);
  EXPECT_EQ(of(Pass::kWeightGrad, "down", "down"), -1);
  EXPECT_EQ(of(Pass::kInputGrad, "down0", "down0"), -1);
}

struct Totals {
  double flops = 0;
  std::int64_t tp_bytes = 0;  // sent by a rank
  std::int64_t messages = 0;
};

// Of a gather or a reduce-scatter a rank sends (tp - 1) / tp of the whole.
Totals totals_of(const program::Program& p, std::int64_t tp) {
  Totals t;
  for (const program::Call& call : p.rank_programs[program::RankProgramId(0)].calls) {
    const program::Segment& s = p.segments[call.segment];
    for (const Op& op : s.ops) {
      std::vector<program::TensorType> types;
      for (const program::Operand& o : op.operands) types.push_back(s.type_of(o));
      const program::Work work = program::work_of(op, types);
      t.flops += work.flops.count;
      if (op.stream != Stream::kTp || op.kind == OpKind::kAllReduce) continue;
      const bool message = op.kind == OpKind::kExchange;
      t.messages += message ? 1 : 0;
      t.tp_bytes += message ? work.message.count : work.message.count / tp * (tp - 1);
    }
  }
  return t;
}

// 4 layers, 8 microbatches, and per layer and microbatch two gathers forward and two backward of tp - 1 chunks each; by
// ring exchange two reduce-scatters too.
TEST(TensorOverlap, MovesAndComputesAsMuchAsTheCollectives) {
  for (const std::int32_t tp : {2, 4}) {
    const Totals whole = totals_of(lowered(false, tp), tp);
    EXPECT_EQ(whole.messages, 0);
    for (const bool ring_scatter : {false, true}) {
      const Totals chunks = totals_of(lowered(true, tp, ring_scatter), tp);
      EXPECT_EQ(chunks.flops, whole.flops);
      EXPECT_EQ(chunks.tp_bytes, whole.tp_bytes);
      EXPECT_EQ(chunks.messages, 4 * 8 * (ring_scatter ? 6 : 4) * (tp - 1));
    }
  }
}

TEST(TensorOverlapRules, NeedSequenceParallelism) {
  const auto problem = [](std::vector<std::string> settings) {
    settings.emplace_back("plan.overlap.tp_comm=true");
    const std::vector<Problem> problems = problems_of(kTiny, settings);
    return problems.size() == 1 ? problems[0] : Problem{ErrorKind::kExecution, std::to_string(problems.size()), {}, {}};
  };
  EXPECT_EQ(exit_code_of(kTiny, {"plan.overlap.tp_comm=true"}), 0);  // tp 2: sequence parallelism by default
  const Problem off = problem({"plan.sequence_parallel=false"});
  EXPECT_EQ(off.message, "plain: tp_comm needs sequence parallelism, which is off");
  EXPECT_EQ(off.where.field, "plan.overlap.tp_comm");
  EXPECT_EQ(off.kind, ErrorKind::kInput);
  EXPECT_EQ(problem({"plan.tp=1"}).message, "plain: tp_comm needs sequence parallelism, which needs tp > 1; tp is 1");
}

constexpr const char* kOn = "plan.overlap.tp_comm=true";

constexpr const char* kQuantised = R"(framework: megatron-core
model: {num_hidden_layers: 2, hidden_size: 1024, intermediate_size: 2048, num_attention_heads: 8,
        num_key_value_heads: 8, vocab_size: 1024}
cluster: hgx-b200
gpus: 2
training: {sequence_length: 512, global_batch_size: 1}
plan: {tp: 2, overlap: {tp_comm: true}}
)";

// What is gathered travels quantised, as without chunks: products, which are sums of both ranks' parts, in bf16.
TEST(TensorOverlap, CarriesWhatQuantisedMatmulsRead) {
  for (const char* const recipe : {"delayed", "tensorwise", "mxfp8", "nvfp4"}) {
    const std::string precision =
        recipe == std::string("nvfp4") ? "nvfp4" : "{compute: fp8, fp8_recipe: " + std::string(recipe) + "}";
    ReadScenario read = read_text(kQuantised, {"training.precision=" + precision});
    throw_if_violated(read);
    const program::CheckedProgram checked(lower(read.scenario));
    std::int64_t exchanges = 0;
    for (const program::Segment& s : checked.program().segments) {
      for (const Op& op : s.ops) {
        if (op.kind != OpKind::kExchange) continue;
        ++exchanges;
        EXPECT_TRUE(program::is_quantised(s.type_of(op.operands[0]).dtype)) << recipe << " " << s.label << op.name;
      }
    }
    EXPECT_EQ(exchanges, 4) << recipe;  // one chunk each of qkv, gate_up, out and down
  }
}

TEST(TensorOverlapRules, TakeTransformerEnginesSettingsByMatmul) {
  const ReadScenario read = read_tiny(
      {kOn,
       "plan.overlap.tp_comm_cfg={proj_fprop: {num_sm: 24, num_splits: 2}, fc1_wgrad: {set_sm_margin: false}, "
       "fc2_fprop: {method: ring_exchange}}"});
  const UserBuffers& buffers = read.scenario.plan.user_buffers;
  EXPECT_EQ(buffers.of(OverlappedMatmul::kProjForward), (UserBuffer{OverlapMethod::kPipeline, 24, true, 2}));
  EXPECT_EQ(buffers.of(OverlappedMatmul::kFc1WeightGrad), (UserBuffer{OverlapMethod::kBulk, 16, false, 4}));
  EXPECT_EQ(buffers.of(OverlappedMatmul::kFc2Forward), (UserBuffer{OverlapMethod::kRingExchange, 1, false, 4}));
  EXPECT_EQ(buffers.of(OverlappedMatmul::kQkvForward), default_user_buffer(OverlappedMatmul::kQkvForward));
  EXPECT_TRUE(read.warnings.empty());
}

TEST(TensorOverlapRules, WarnOfSettingsWithoutEffect) {
  EXPECT_EQ(read_tiny({"plan.overlap.tp_comm_cfg={fc1_wgrad: {num_sm: 2}}"}).warnings,
            (std::vector<std::string>{"plan.overlap.tp_comm_cfg has no effect without plan.overlap.tp_comm"}));
  EXPECT_EQ(read_tiny({kOn, "plan.overlap.tp_comm_cfg={fc1_wgrad: {num_splits: 2}}"}).warnings,
            (std::vector<std::string>{"plan.overlap.tp_comm_cfg.fc1_wgrad.num_splits has no effect with bulk"}));
}

// A gather cannot be a pipeline; kTiny's hidden size, 64, divides by 4 and not by 5.
TEST(TensorOverlapRules, RefuseWhatTransformerEngineCannotDo) {
  EXPECT_EQ(exit_code_of(kTiny, {kOn, "plan.overlap.tp_comm_cfg={qkv_fprop: {method: pipeline}}"}), 4);
  EXPECT_EQ(exit_code_of(kTiny, {kOn, "plan.overlap.tp_comm_cfg={qkv_fprop: {num_sm: 33}}"}), 3);
  const std::vector<Problem> problems =
      problems_of(kTiny, {kOn, "plan.overlap.tp_comm_cfg={fc2_fprop: {num_splits: 5}}"});
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems[0].message.find("fc2_fprop: num_splits 5 does not divide hidden_size"), std::string::npos)
      << problems[0].message;
}

TEST(TensorOverlapRules, AreThoseOfFrameworksThatSendChunks) {
  const std::vector<std::string> on = {"plan.overlap.tp_comm=true", "plan.sequence_parallel=true"};
  for (const char* framework : {"torchtitan", "nanotron", "deepspeed"}) {
    std::vector<std::string> settings = on;
    settings.push_back(std::string("framework=") + framework);
    EXPECT_EQ(exit_code_of(kTiny, settings), 4) << framework;
  }
  std::vector<std::string> megatron = on;
  megatron.emplace_back("framework=megatron-core");
  EXPECT_EQ(exit_code_of(kTiny, megatron), 0);
}

}  // namespace
}  // namespace stepcast::plan
