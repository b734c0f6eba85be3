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

program::Program lowered(bool chunks, std::int32_t tp = 4) {
  const TinyPlan plan{.name = "tp", .tp = tp, .sequence_parallel = true, .tp_comm = chunks};
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
  EXPECT_EQ(
      lines_of(segment_with(lowered(true), program::Pass::kForward, "gate_up0")),
      (std::vector<std::string>{"tp gather1 n gathered1", "compute gate_up0 n w y0", "tp gather2 gathered1 gathered2",
                                "compute gate_up1 gathered1 w y1", "tp gather3 gathered2 gathered3",
                                "compute gate_up2 gathered2 w y2", "compute gate_up3 gathered3 w y3"}));
}

// The product of the member 1 place on (3 before) is computed first and sent 1 place on; the own one comes last.
TEST(TensorOverlap, SendsEachChunkOfTheProductToItsOwner) {
  EXPECT_EQ(lines_of(segment_with(lowered(true), program::Pass::kForward, "down0")),
            (std::vector<std::string>{
                "compute down1 a3 w product3", "tp scatter1 product3 arrived1", "compute down2 a2 w product2",
                "tp scatter2 product2 arrived2", "compute down3 a1 w product1", "tp scatter3 product1 arrived3",
                "compute down0 a0 w arrived0", "compute sum arrived sum", "compute residual x sum y"}));
}

// The weight gradient reads the gathered gradient, hence the copy of the own rows.
TEST(TensorOverlap, GathersTheGradientOfARowParallelProjection) {
  EXPECT_EQ(lines_of(segment_with(lowered(true, 2), program::Pass::kInputGrad, "down0")),
            (std::vector<std::string>{"compute own dy gathered0", "tp gather1 dy gathered1", "compute down0 dy w da0",
                                      "compute down1 gathered1 w da1"}));
}

// As Megatron-Core does by default, the gather of a column-parallel projection's input runs beside its input gradient
// and the reduction beside the weight gradient, both whole; so does all of the output layer.
TEST(TensorOverlap, LeavesBulkOverlapAndTheHeadWhole) {
  const program::Program chunks = lowered(true);
  const program::Program whole = lowered(false);
  for (const char* op : {"gate_up", "qkv", "logits"}) {
    EXPECT_EQ(lines_of(segment_with(chunks, program::Pass::kInputGrad, op)),
              lines_of(segment_with(whole, program::Pass::kInputGrad, op)));
  }
  EXPECT_EQ(lines_of(segment_with(chunks, program::Pass::kForward, "logits")),
            lines_of(segment_with(whole, program::Pass::kForward, "logits")));
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

// 4 layers, 8 microbatches, and per layer and microbatch two gathers forward and two backward, two reduce-scatters, of
// tp - 1 chunks each.
TEST(TensorOverlap, MovesAndComputesAsMuchAsTheCollectives) {
  for (const std::int32_t tp : {2, 4}) {
    const Totals chunks = totals_of(lowered(true, tp), tp);
    const Totals whole = totals_of(lowered(false, tp), tp);
    EXPECT_EQ(chunks.flops, whole.flops);
    EXPECT_EQ(chunks.tp_bytes, whole.tp_bytes);
    EXPECT_EQ(chunks.messages, 4 * 8 * 6 * (tp - 1));
    EXPECT_EQ(whole.messages, 0);
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

TEST(TensorOverlapRules, NoteWhatDiffersFromTransformerEngine) {
  const auto notes = [](const char* setting) { return read_tiny({setting}).notes; };
  ASSERT_EQ(notes("plan.overlap.tp_comm=true").size(), 1U);
  EXPECT_NE(notes("plan.overlap.tp_comm=true")[0].find("default for them is pipeline"), std::string::npos);
  EXPECT_TRUE(notes("plan.overlap.tp_comm=false").empty());
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
