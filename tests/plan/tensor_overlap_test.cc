// plan.overlap.tp_comm: the chunks and blocks in their order, and what they move and compute against the collectives
// they replace. Settings and rules: user_buffers_test.cc.
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

program::Program lowered(bool tp_comm, std::int32_t tp = 4, bool ring_scatter = false) {
  TinyPlan plan{.name = "tp", .tp = tp, .sequence_parallel = true, .tp_comm = tp_comm};
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

// Two layers and one microbatch over two ranks. H100 multiplies along the last extent alone, so that it transposes.
program::Program lowered_by(const std::string& recipe, const std::string& cluster, bool tp_comm) {
  const std::string precision = recipe == "nvfp4" ? recipe : "{compute: fp8, fp8_recipe: " + recipe + "}";
  ReadScenario read =
      read_text(kQuantisedOverlap, {"training.precision=" + precision, "cluster=" + cluster,
                                    std::string("plan.overlap.tp_comm=") + (tp_comm ? "true" : "false")});
  throw_if_violated(read);
  return program::CheckedProgram(lower(read.scenario)).program();
}

struct RecipeCase {
  const char* recipe;
  const char* cluster;
};

constexpr RecipeCase kRecipeCases[] = {
    {"delayed", "hgx-b200"},   {"delayed", "hgx-h100"},   {"tensorwise", "hgx-b200"}, {"tensorwise", "hgx-h100"},
    {"blockwise", "hgx-b200"}, {"blockwise", "hgx-h100"}, {"mxfp8", "hgx-b200"},      {"nvfp4", "hgx-b200"}};

// What is gathered travels quantised, as without chunks: products, which are sums of both ranks' parts, in bf16.
TEST(TensorOverlap, CarriesWhatQuantisedMatmulsRead) {
  for (const RecipeCase& c : kRecipeCases) {
    const std::string name = std::string(c.recipe) + " " + c.cluster;
    const program::Program p = lowered_by(c.recipe, c.cluster, true);
    std::int64_t exchanges = 0;
    for (const program::Segment& s : p.segments) {
      for (const Op& op : s.ops) {
        if (op.kind != OpKind::kExchange) continue;
        ++exchanges;
        EXPECT_TRUE(program::is_quantised(s.type_of(op.operands[0]).dtype)) << name << " " << s.label << op.name;
      }
    }
    EXPECT_EQ(exchanges, 4) << name;  // one chunk each of qkv, gate_up, out and down
    const Totals whole = totals_of(lowered_by(c.recipe, c.cluster, false), 2);
    const Totals chunks = totals_of(p, 2);
    EXPECT_EQ(chunks.flops, whole.flops) << name;
    EXPECT_EQ(chunks.tp_bytes, whole.tp_bytes) << name;
    EXPECT_EQ(chunks.messages, 2 * 4) << name;
  }
}

// A recipe that quantises by direction makes both copies before the ring; the one that the weight gradient reads is
// gathered whole behind the ring's chunks, beside the last matmuls and what follows.
TEST(TensorOverlap, GathersTheOtherDirectionBehindTheRing) {
  const program::Program p = lowered_by("mxfp8", "hgx-b200", true);
  EXPECT_EQ(lines_of(segment_with(p, program::Pass::kForward, "gate_up0")),
            (std::vector<std::string>{"compute quantise_gate_up n rows kept", "compute own_chunk rows gathered0",
                                      "tp gather1 gathered0 gathered1", "compute gate_up0 gathered0 w y0",
                                      "compute gate_up1 gathered1 w y1"}));
  EXPECT_EQ(lines_of(segment_with(p, program::Pass::kInputGrad, "down0")),
            (std::vector<std::string>{"compute quantise_down dy own own_other", "compute own_chunk own rows0",
                                      "tp gather1 rows0 rows1", "compute down0 rows0 w da0",
                                      "compute down1 rows1 w da1", "tp gather_other own_other gathered"}));
  EXPECT_EQ(multiprocessors(p, program::Pass::kInputGrad, "down0", "gather_other"), -1);  // NCCL's
}

}  // namespace
}  // namespace stepcast::plan
