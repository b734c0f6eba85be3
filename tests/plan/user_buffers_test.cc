// plan.overlap.tp_comm: the settings of Transformer Engine's user buffers, what they hold, how they are priced, and the
// rules.
#include "plan/user_buffers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plan/lowering.h"
#include "plan/user_buffer_memory.h"
#include "sim/cost/analytic.h"
#include "sim/prediction.h"
#include "tests/plan/scenario_text.h"
#include "tests/sim/shipped_calibration.h"

namespace stepcast::plan {
namespace {

constexpr const char* kOn = "plan.overlap.tp_comm=true";

// 70B with tp 4 and cp 2: 4,096 tokens of 8,192 in bf16 are 64 MiB; ten of them, and with both reduce-scatters behind
// matmuls by ring exchange two of 64 x 7/4 = 112. Six gathers in fp8 have 32.
TEST(UserBufferMemory, IsABufferForEachMatmul) {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  Scenario s;
  s.model.hidden = 8192;
  s.training.sequence_length = 8192;
  s.plan.tp = 4;
  s.plan.cp = 2;
  EXPECT_EQ(user_buffer_bytes(s), 0);
  s.plan.overlap_tp_comm = true;
  EXPECT_EQ(user_buffer_bytes(s), 640 * kMiB);
  s.training.recipe = MatmulRecipe::kDelayed;
  EXPECT_EQ(user_buffer_bytes(s), (4 * 64 + 6 * 32) * kMiB);
  s.training.recipe = MatmulRecipe::kNone;
  for (const OverlappedMatmul matmul : {OverlappedMatmul::kProjForward, OverlappedMatmul::kFc2Forward}) {
    s.plan.user_buffers.of(matmul).method = OverlapMethod::kRingExchange;
  }
  EXPECT_EQ(user_buffer_bytes(s), (8 * 64 + 2 * 112) * kMiB);
  s.plan.micro_batch_size = 2;
  EXPECT_EQ(user_buffer_bytes(s), 2 * (8 * 64 + 2 * 112) * kMiB);
}

// Two layers of 8B with tp 4 on 8 H100, four microbatches of 4,096 tokens.
std::vector<sim::CommunicationUse> tensor_communication() {
  config::ScenarioSource source;
  for (const char* setting : {"model=llama-3.1-8b", "model.num_hidden_layers=2", "cluster=hgx-h100", "gpus=8",
                              "training.sequence_length=4096", "training.global_batch_size=8", "plan.tp=4", kOn}) {
    source.settings.push_back(config::parse_setting(setting));
  }
  const Scenario s = read_scenario(source).scenario;
  const program::CheckedProgram p(lower(s));
  const sim::AnalyticCostModel costs(s.cluster, stepcast::testing::shipped_calibration("h100-default"), {});
  std::vector<sim::CommunicationUse> uses = sim::simulate(p, costs, {}).communication;
  std::erase_if(uses, [&p](const sim::CommunicationUse& u) { return p.program().roles[u.role].name != "tp"; });
  return uses;
}

// By the h100-default calibration: a message within a domain takes 5 us and 0.8 of 450 GB/s, a reduction in the switch
// 0.7 of that, a kernel 3 us. A chunk, 1,024 rows of 4,096 in bf16, is 8 MiB; so is a block of a pipeline, 4,096 rows
// of 1,024; what is gathered or reduced in bulk is 32 MiB.
TEST(UserBufferPrices, AreThoseOfCopyEnginesAndOfKernelsOnMappedBuffers) {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  const std::vector<sim::CommunicationUse> uses = tensor_communication();
  const auto use_of = [&uses](program::OpKind kind, std::int64_t bytes, sim::Algorithm algorithm) {
    const auto it = std::find_if(uses.begin(), uses.end(), [&](const sim::CommunicationUse& u) {
      return u.kind == kind && u.message.count == bytes && u.cost.algorithm == algorithm;
    });
    return it == uses.end() ? sim::CommunicationUse{} : *it;
  };
  using enum program::OpKind;
  const sim::CommunicationUse chunk = use_of(kSend, 8 * kMiB, sim::Algorithm::kCopyEngines);
  EXPECT_EQ(chunk.transfers, 8 * 2 * 4 * 4 * 3);  // ranks, layers, microbatches, matmuls, chunks
  EXPECT_NEAR(chunk.cost.time.seconds(), 5e-6 + 8.0 * kMiB / (0.8 * 450e9), 1e-9);
  EXPECT_EQ(chunk.cost.multiprocessors, 0);
  const sim::CommunicationUse gather = use_of(kAllGather, 32 * kMiB, sim::Algorithm::kUserBuffers);
  EXPECT_EQ(gather.transfers, 2 * 2 * 4 * 2);  // groups, layers, microbatches, qkv and gate_up
  EXPECT_NEAR(gather.cost.time.seconds(), 5e-6 + 3e-6 + 32.0 * kMiB / (0.7 * 450e9), 1e-9);
  const sim::CommunicationUse block = use_of(kReduceScatter, 8 * kMiB, sim::Algorithm::kUserBuffers);
  EXPECT_EQ(block.transfers, 2 * 2 * 4 * 2 * 4);  // groups, layers, microbatches, out and down, blocks
  const sim::CommunicationUse bulk = use_of(kReduceScatter, 32 * kMiB, sim::Algorithm::kUserBuffers);
  EXPECT_EQ(bulk.transfers, 2 * 2 * 4 * 2);  // as the gathers
  const bool other_messages = std::any_of(uses.begin(), uses.end(), [](const sim::CommunicationUse& u) {
    return u.kind == kSend && u.cost.algorithm != sim::Algorithm::kCopyEngines;
  });
  EXPECT_FALSE(other_messages);
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

// An entry updates the defaults of the matmul's default method key by key (ub_cfg.update in initialize_ub): a pipeline
// that becomes a ring exchange keeps 16 multiprocessors and the margin.
TEST(TensorOverlapRules, TakeTransformerEnginesSettingsByMatmul) {
  const ReadScenario read = read_tiny(
      {kOn,
       "plan.overlap.tp_comm_cfg={proj_fprop: {num_sm: 24, num_splits: 2}, fc1_wgrad: {set_sm_margin: false}, "
       "fc2_fprop: {method: ring_exchange}}"});
  const UserBuffers& buffers = read.scenario.plan.user_buffers;
  EXPECT_EQ(buffers.of(OverlappedMatmul::kProjForward), (UserBuffer{OverlapMethod::kPipeline, 24, true, 2}));
  EXPECT_EQ(buffers.of(OverlappedMatmul::kFc1WeightGrad), (UserBuffer{OverlapMethod::kBulk, 16, false, 4}));
  EXPECT_EQ(buffers.of(OverlappedMatmul::kFc2Forward), (UserBuffer{OverlapMethod::kRingExchange, 16, true, 4}));
  EXPECT_EQ(buffers.of(OverlappedMatmul::kQkvForward), default_user_buffer(OverlappedMatmul::kQkvForward));
  EXPECT_TRUE(read.warnings.empty());
}

TEST(TensorOverlapRules, WarnOfSettingsWithoutEffect) {
  EXPECT_EQ(read_tiny({"plan.overlap.tp_comm_cfg={fc1_wgrad: {num_sm: 2}}"}).warnings,
            (std::vector<std::string>{"plan.overlap.tp_comm_cfg has no effect without plan.overlap.tp_comm"}));
  EXPECT_EQ(read_tiny({kOn, "plan.overlap.tp_comm_cfg={fc1_wgrad: {num_splits: 2}}"}).warnings,
            (std::vector<std::string>{"plan.overlap.tp_comm_cfg.fc1_wgrad.num_splits has no effect with bulk"}));
}

// Multiprocessors of copy engines, and of a pipeline whose one block is its last; not the default that NeMo writes out.
TEST(TensorOverlapRules, WarnOfMultiprocessorsThatNothingUses) {
  const auto warnings = [](const std::string& config) {
    return read_tiny({kOn, "plan.overlap.tp_comm_cfg={" + config + "}"}).warnings;
  };
  EXPECT_EQ(warnings("qkv_fprop: {num_sm: 4}"),
            (std::vector<std::string>{
                "plan.overlap.tp_comm_cfg.qkv_fprop.num_sm has no effect with ring_exchange without set_sm_margin"}));
  EXPECT_EQ(warnings("fc2_fprop: {num_sm: 4, num_splits: 1, set_sm_margin: false}"),
            (std::vector<std::string>{
                "plan.overlap.tp_comm_cfg.fc2_fprop.num_sm has no effect with num_splits 1 without set_sm_margin"}));
  for (const char* config :
       {"qkv_fprop: {num_sm: 1}", "qkv_fprop: {num_sm: 4, set_sm_margin: true}", "qkv_wgrad: {num_sm: 4}",
        "fc2_fprop: {num_sm: 4, set_sm_margin: false}", "fc2_fprop: {method: ring_exchange, num_sm: 4}"}) {
    EXPECT_TRUE(warnings(config).empty()) << config;
  }
}

// As NeMo writes them out (userbuffers_bf16_h100_h8192_tp4_mbs1_seqlen8192): all at what the method has by default, but
// for num_sm and set_sm_margin.
TEST(TensorOverlapRules, AcceptEntriesOfNemo) {
  const ReadScenario read = read_tiny(
      {kOn,
       "plan.overlap.tp_comm_cfg={qkv_dgrad: {num_sm: 4, cga_size: 2, set_sm_margin: false, method: bulk}, qkv_fprop: "
       "{aggregate: false, method: ring_exchange, num_sm: 1, cga_size: 1, set_sm_margin: false, fp8_buf: false, "
       "atomic_gemm: false}, proj_fprop: {num_sm: 24, cga_size: 2, num_splits: 4, set_sm_margin: true, fp8_buf: true, "
       "atomic_gemm: false, method: pipeline}}"});
  EXPECT_TRUE(read.warnings.empty()) << read.warnings.front();
  EXPECT_EQ(read.scenario.plan.user_buffers.of(OverlappedMatmul::kProjForward),
            (UserBuffer{OverlapMethod::kPipeline, 24, true, 4}));
  EXPECT_EQ(read.scenario.plan.user_buffers.of(OverlappedMatmul::kQkvForward),
            default_user_buffer(OverlappedMatmul::kQkvForward));
}

TEST(TensorOverlapRules, NameTheKeysThatNothingPrices) {
  const ReadScenario read = read_tiny(
      {kOn,
       "plan.overlap.tp_comm_cfg={qkv_fprop: {cga_size: 2, use_ce: true}, fc1_wgrad: {cga_size: 4, comm_priority: -5, "
       "gemm_priority: 0, is_reduce_scatter: true}}"});
  EXPECT_EQ(read.warnings, (std::vector<std::string>{"plan.overlap.tp_comm_cfg: nothing that is priced depends on "
                                                     "cga_size, comm_priority, gemm_priority"}));
}

// Known at their defaults alone; sums are quantised only where matmuls are.
TEST(TensorOverlapRules, RefuseKeysThatWouldBePriced) {
  const auto exit_code = [](const std::string& config) {
    return exit_code_of(kTiny, {kOn, "plan.overlap.tp_comm_cfg={" + config + "}"});
  };
  EXPECT_EQ(exit_code("qkv_fprop: {aggregate: true}"), 4);
  EXPECT_EQ(exit_code("qkv_fprop: {use_ce: false}"), 4);
  EXPECT_EQ(exit_code("qkv_fprop: {atomic_gemm: true}"), 4);
  EXPECT_EQ(exit_code("proj_fprop: {pipeline_rs_overlap_first_gemm: true}"), 4);
  EXPECT_EQ(exit_code("proj_fprop: {pipeline_rs_overlap_first_gemm: false}"), 0);
  EXPECT_EQ(exit_code("qkv_fprop: {is_reduce_scatter: true}"), 3);
  EXPECT_EQ(exit_code("proj_fprop: {fp8_buf: true}"), 0);
  const auto quantised = [](const char* matmul) {
    return exit_code_of(kQuantisedOverlap, {"training.precision=fp8",
                                            std::string("plan.overlap.tp_comm_cfg={") + matmul + ": {fp8_buf: true}}"});
  };
  EXPECT_EQ(quantised("proj_fprop"), 4);
  EXPECT_EQ(quantised("qkv_wgrad"), 0);
}

std::vector<Problem> problems_with(const std::string& config) {
  return problems_of(kTiny, {kOn, "plan.overlap.tp_comm_cfg={" + config + "}"});
}

// Only a reduce-scatter has two methods ("`pipeline` overlap method is not supported for AllGather").
TEST(TensorOverlapRules, RefuseMethodsThatAMatmulDoesNotHave) {
  const std::vector<Problem> gather = problems_with("qkv_fprop: {method: pipeline}");
  ASSERT_EQ(gather.size(), 1U);
  EXPECT_EQ(gather[0].message, "qkv_fprop by pipeline: Transformer Engine has ring_exchange for it");
  EXPECT_EQ(gather[0].kind, ErrorKind::kInput);
  const std::vector<Problem> scatter = problems_with("proj_fprop: {method: bulk}");
  ASSERT_EQ(scatter.size(), 1U);
  EXPECT_EQ(scatter[0].message, "proj_fprop by bulk: Transformer Engine has pipeline and ring_exchange for it");
  const std::vector<Problem> moved = problems_with("qkv_dgrad: {method: pipeline}");
  ASSERT_EQ(moved.size(), 1U);
  EXPECT_EQ(moved[0].message,
            "qkv_dgrad by pipeline: Transformer Engine then reduce-scatters the input gradient, which is not lowered "
            "yet");
  EXPECT_EQ(moved[0].kind, ErrorKind::kUnsupported);
}

// kTiny's hidden size, 64, divides by 4 and not by 5, and by the most blocks there are.
TEST(TensorOverlapRules, BoundBlocksAndMultiprocessors) {
  EXPECT_EQ(exit_code_of(kTiny, {kOn, "plan.overlap.tp_comm_cfg={qkv_fprop: {num_sm: 33}}"}), 3);
  const std::vector<Problem> problems = problems_with("fc2_fprop: {num_splits: 5}");
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems[0].message.find("fc2_fprop: num_splits 5 does not divide hidden_size"), std::string::npos)
      << problems[0].message;
  EXPECT_EQ(problems[0].where.field, "plan.overlap.tp_comm_cfg.fc2_fprop.num_splits");
  const auto splits = [](std::int64_t n) { return "fc2_fprop: {num_splits: " + std::to_string(n) + "}"; };
  EXPECT_TRUE(problems_with(splits(kMostUserBufferSplits)).empty());
  EXPECT_EQ(problems_with(splits(kMostUserBufferSplits + 1)).size(), 1U);  // by the schema
}

TEST(TensorOverlapRules, AreThoseOfFrameworksWithUserBuffers) {
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
