// A Program of one matmul and a prediction made up for it, small enough to work out every figure by hand.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "program/builder.h"
#include "report/simulation_report.h"

namespace stepcast::report {

// c[2,4] = a[2,3] b[4,3]^T: 2 * 2 * 4 * 3 = 48 FLOPs. Stage 0 calls it twice, stage 1 once; two ranks each.
inline program::CheckedProgram matmul_program() {
  program::ProgramBuilder b("matmul");
  program::SegmentBuilder segment("mlp");
  const program::Ref a = segment.slot("a", program::DType::kF32, {2, 3});
  const program::Ref w = segment.slot("b", program::DType::kF32, {4, 3});
  const program::Ref c = segment.slot("c", program::DType::kF32, {2, 4});
  segment.op(program::OpKind::kMatmul, program::Stream::kCompute, "up", {in(a), in(w), out(c)});
  const program::SegmentId id = b.segment(segment.take());
  b.role("dp");     // kDpRole
  b.role("pp");     // kPpRole
  b.role("world");  // kWorldRole
  for (int stage = 0; stage < 2; ++stage) {
    program::RankProgramBuilder r("stage" + std::to_string(stage));
    const auto va = r.tensor("x", program::DType::kF32, {2, 3}, program::MemoryClass::kActivations, true);
    const auto vb = r.tensor("w", program::DType::kF32, {4, 3}, program::MemoryClass::kWeights, true);
    for (std::uint32_t m = 0; m < (stage == 0 ? 2U : 1U); ++m) {
      const auto vc = r.tensor("m" + std::to_string(m) + ".y", program::DType::kF32, {2, 4},
                               program::MemoryClass::kActivations, true);
      r.call(id, {va, vb, vc}, {.pass = program::Pass::kForward, .chunk = 0, .microbatch = m, .layer = 5});
    }
    const program::RankProgramId program_id = b.rank_program(r.take());
    b.rank(program_id, 2 * stage);
    b.rank(program_id, 2 * stage + 1);
  }
  return program::CheckedProgram(b.take());
}

inline plan::Scenario scenario() {
  plan::Scenario s;
  s.name = "by-hand";
  s.model = {.name = "m",
             .layers = 2,
             .hidden = 8,
             .ffn = 16,
             .heads = 2,
             .kv_heads = 2,
             .head_dim = 4,
             .vocab = 32,
             .padded_vocab = 32,
             .max_positions = 64};
  s.cluster.node.name = "box";
  s.cluster.node.devices = 4;
  s.cluster.node.device.name = "chip";
  s.cluster.node.device.kind = topology::DeviceKind::kCpu;  // holds nothing beside tensors
  s.cluster.node.device.peak_bf16 = FlopsPerSecond(1e9);
  s.cluster.node.device.peak_fp32 = FlopsPerSecond(5e8);
  s.cluster.node.device.memory = Bytes(std::int64_t{10} << 30);
  s.gpus = 4;
  s.training.sequence_length = 16;
  s.training.global_batch_size = 8;
  s.plan.pp = 2;
  s.plan.dp = 2;
  s.plan.layout = {{.embedding = true, .first_layer = 0, .layers = 1, .loss = false},
                   {.embedding = false, .first_layer = 1, .layers = 1, .loss = true}};
  return s;
}

// Two classes of two ranks; the step takes 1 ms. Stage 0: compute 0.6 ms, dp 0.3 ms, bubble 0.1 ms; stage 1: compute
// 0.4 ms, optimizer 0.2 ms, host 0.1 ms, bubble 0.3 ms.
inline sim::Prediction prediction(const program::CheckedProgram& p) {
  using literals::operator""_ms;
  using literals::operator""_us;
  sim::Prediction result;
  result.step = 1_ms;
  result.class_of_rank = {0, 0, 1, 1};
  result.events = 3;
  for (std::uint32_t c = 0; c < 2; ++c) {
    sim::ClassResult r;
    r.class_id = c;
    r.representative = program::RankId(2 * c);
    r.ranks = 2;
    const auto id = p.program().ranks[r.representative].program;
    r.lifetimes = program::derive_lifetimes(p.program(), p.program().rank_programs[id], p.resolution(id));
    result.classes.push_back(r);
  }
  result.classes[0].time.compute = 600_us;
  result.classes[0].time.exposed[static_cast<std::size_t>(sim::Exposed::kDp)] = 300_us;
  result.classes[0].time.bubble = 100_us;
  result.classes[1].time.compute = 400_us;
  result.classes[1].time.optimizer = 200_us;
  result.classes[1].time.host = 100_us;
  result.classes[1].time.bubble = 300_us;
  return result;
}

inline constexpr program::RoleId kDpRole{0};
inline constexpr program::RoleId kPpRole{1};
inline constexpr program::RoleId kWorldRole{2};

// All-reduces of 32 bytes over dp: 6 of 2 members, in which all 4 ranks take part; a rank's move for 0.4 ms, of which
// 0.15 ms is exposed (mean over ranks). Messages of 64 bytes: 10 between pipeline ranks, for 0.2 ms, all hidden. Out of
// each rank: 2 GB over its port, 1.5 GB of them dp's and 4 bytes the world's; and through a core 0.5 GB. Stage 0
// computes 0.06 ms longer than alone.
inline void add_traffic(sim::Prediction& prediction) {
  using literals::operator""_us;
  sim::CommunicationUse reduce;
  reduce.role = kDpRole;
  reduce.kind = program::OpKind::kAllReduce;
  reduce.exposed_as = sim::Exposed::kDp;
  reduce.message = Bytes(32);
  reduce.members = 2;
  reduce.ranks = 4;
  reduce.transfers = 6;
  reduce.cost.time = 100_us;
  reduce.cost.multiprocessors = sim::kWhole / 8;
  reduce.cost.algorithm = sim::Algorithm::kRing;
  reduce.cost.protocol = sim::Protocol::kSimple;
  reduce.cost.bus_bandwidth = 370e9;
  reduce.moving = 400_us;
  reduce.exposed = 150_us;
  sim::CommunicationUse message;
  message.role = kPpRole;
  message.kind = program::OpKind::kSend;
  message.exposed_as = sim::Exposed::kPp;
  message.message = Bytes(64);
  message.members = 2;
  message.ranks = 4;
  message.transfers = 10;
  message.cost.time = 40_us;
  message.moving = 200_us;
  prediction.communication = {reduce, message};
  prediction.tiers = {{"scale_up", 4, 2e9, 0.25, 0.9, {{kDpRole, 1.5e9}, {kPpRole, 0.5e9}, {kWorldRole, 4}}},
                      {"core", 2, 0.5e9, 0.03, 1, {{kPpRole, 0.5e9}}}};
  prediction.link_classes = 1;
  prediction.classes[0].time.slowed = 60_us;
}

inline SimulationReport report_with(const plan::Scenario& s, std::vector<PublishedRun> published = {}) {
  const program::CheckedProgram p = matmul_program();
  const sim::Prediction predicted = prediction(p);
  return make_simulation_report({.scenario = s,
                                 .program = p,
                                 .prediction = predicted,
                                 .calibration = {"none", 0, "no kernels"},
                                 .warnings = {},
                                 .published = std::move(published)});
}

// With traffic, and what-ifs as given.
struct WhatIfs {
  bool contention = true;
  std::vector<std::pair<sim::Free, Duration>> if_free = {};
  std::vector<Duration> jittered_steps = {};
};

inline SimulationReport report_of_traffic(const plan::Scenario& s, const WhatIfs& what_ifs = {}) {
  const program::CheckedProgram p = matmul_program();
  sim::Prediction predicted = prediction(p);
  add_traffic(predicted);
  const CalibrationSummary calibration{"none", 0, "no kernels"};
  const SimulationInputs inputs{.scenario = s,
                                .program = p,
                                .prediction = predicted,
                                .calibration = calibration,
                                .warnings = {},
                                .published = {},
                                .contention = what_ifs.contention,
                                .if_free = what_ifs.if_free,
                                .jittered_steps = what_ifs.jittered_steps};
  return make_simulation_report(inputs);
}

}  // namespace stepcast::report
