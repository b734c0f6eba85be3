// Sums over classes in 128-bit integers, so that no figure depends on the order of ranks.
#include "report/simulation_report.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "models/architecture.h"
#include "models/utilisation.h"
#include "plan/lowering.h"
#include "program/ops/rules.h"
#include "report/simulation_parts.h"
#include "topology/mesh.h"

namespace stepcast::report {
namespace {

__extension__ using Wide = __int128;

// Picoseconds per kind, summed over ranks.
struct TimeSum {
  Wide compute = 0;
  Wide optimizer = 0;
  Wide host = 0;
  Wide bubble = 0;
  Wide slowed = 0;
  std::array<Wide, sim::kExposedCount> exposed{};
  std::int64_t ranks = 0;

  void add(const sim::TimeParts& t, std::int64_t n) {
    compute += Wide{t.compute.ps} * n;
    optimizer += Wide{t.optimizer.ps} * n;
    host += Wide{t.host.ps} * n;
    bubble += Wide{t.bubble.ps} * n;
    slowed += Wide{t.slowed.ps} * n;
    for (std::size_t k = 0; k < exposed.size(); ++k) exposed[k] += Wide{t.exposed[k].ps} * n;
    ranks += n;
  }

  TimeShares mean() const {
    const auto seconds = [this](Wide sum) { return static_cast<double>(sum) / static_cast<double>(ranks) * 1e-12; };
    TimeShares shares{seconds(compute), seconds(optimizer), seconds(host), seconds(bubble), {}, seconds(slowed)};
    for (std::size_t k = 0; k < exposed.size(); ++k) shares.exposed_s[k] = seconds(exposed[k]);
    return shares;
  }
};

const program::RankProgram& program_of(const program::Program& p, program::RankId rank) {
  return p.rank_programs[p.ranks[rank].program];
}

void fill_throughput(SimulationReport& r, const SimulationInputs& in) {
  const plan::Scenario& s = in.scenario;
  const auto gpus = static_cast<double>(s.gpus);
  r.step_time_s = in.prediction.step.seconds();
  CHECK(r.step_time_s > 0, in.prediction.step.ps);
  r.tokens = s.training.global_batch_size * s.training.sequence_length;
  r.tokens_per_s = static_cast<double>(r.tokens) / r.step_time_s;
  r.tokens_per_s_per_gpu = r.tokens_per_s / gpus;
  const models::FlopsPerToken flops = models::training_flops_per_token(s.model, s.training.sequence_length);
  r.flops_per_token = {flops.full, flops.causal};
  r.peak_tflops = peak_of(s).value * 1e-12;
  r.model_tflops_per_gpu = {flops.full * r.tokens_per_s_per_gpu * 1e-12, flops.causal * r.tokens_per_s_per_gpu * 1e-12};
  r.mfu = {models::utilisation(r.model_tflops_per_gpu.full, 1, r.peak_tflops),
           models::utilisation(r.model_tflops_per_gpu.causal, 1, r.peak_tflops)};
  double executed = 0;
  for (const sim::ClassResult& c : in.prediction.classes) {
    const program::Program& p = in.program.program();
    executed += hardware_flops(p, program_of(p, c.representative)) * static_cast<double>(c.ranks);
  }
  r.hardware_tflops_per_gpu = executed / r.step_time_s / gpus * 1e-12;
  r.hfu = r.hardware_tflops_per_gpu / r.peak_tflops;
}

std::int64_t layers_of_stage(const plan::Plan& plan, std::int32_t stage) {
  std::int64_t layers = 0;
  for (std::size_t i = 0; i < plan.layout.size(); ++i) {
    if (static_cast<std::int32_t>(i) % plan.pp == stage) layers += plan.layout[i].layers;
  }
  return layers;
}

void fill_stages(SimulationReport& r, const SimulationInputs& in) {
  TimeSum all;
  std::vector<TimeSum> by_stage(static_cast<std::size_t>(in.scenario.plan.pp));
  r.stages.resize(by_stage.size());
  const topology::DeviceMesh mesh = plan::mesh_of(in.scenario);
  for (const sim::ClassResult& c : in.prediction.classes) {
    const auto stage = static_cast<std::size_t>(mesh.coordinate(c.representative.value, "pp"));
    all.add(c.time, c.ranks);
    const double compute = c.time.compute.seconds();
    StageReport& report = r.stages.at(stage);
    report.compute_min_s = by_stage[stage].ranks == 0 ? compute : std::min(report.compute_min_s, compute);
    report.compute_max_s = std::max(report.compute_max_s, compute);
    by_stage[stage].add(c.time, c.ranks);
    if (c.lifetimes.peak >= r.stages[stage].allocated_bytes) {
      r.stages[stage].allocated_bytes = c.lifetimes.peak;
      r.stages[stage].at_peak = c.lifetimes.at_peak;
    }
  }
  r.time = all.mean();
  r.ranks = all.ranks;
  r.bubble_fraction = r.time.bubble_s / r.step_time_s;
  for (std::size_t i = 0; i < by_stage.size(); ++i) {
    CHECK(by_stage[i].ranks > 0, i);
    r.stages[i].stage = static_cast<std::int32_t>(i);
    r.stages[i].layers = layers_of_stage(in.scenario.plan, r.stages[i].stage);
    r.stages[i].ranks = by_stage[i].ranks;
    r.stages[i].time = by_stage[i].mean();
  }
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFits:
      return "fits";
    case Verdict::kTight:
      return "tight";
    case Verdict::kOom:
      return "oom";
  }
  CHECK(false, static_cast<int>(verdict));
}

std::string_view to_string(sim::Exposed kind) {
  constexpr std::array<std::string_view, sim::kExposedCount> kNames = {"tp", "cp", "ep", "pp", "dp", "gather", "copy"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string_view to_string(sim::Free kind) {
  constexpr std::array<std::string_view, sim::kFreeCount> kNames = {
      "nothing", "tp", "cp", "ep", "pp", "dp", "gather", "copy", "host", "optimizer", "slowdown"};
  return kNames.at(static_cast<std::size_t>(kind));
}

FlopsPerSecond peak_of(const plan::Scenario& scenario) {
  const topology::DeviceSpec& device = scenario.cluster.node.device;
  if (scenario.training.recipe == plan::MatmulRecipe::kNvfp4) return device.peak_fp4;
  if (scenario.training.recipe != plan::MatmulRecipe::kNone) return device.peak_fp8;
  return scenario.training.compute == program::DType::kF32 ? device.peak_fp32 : device.peak_bf16;
}

std::string precision_of(const plan::Scenario& scenario) {
  if (scenario.training.recipe == plan::MatmulRecipe::kNvfp4) return "fp4";
  if (scenario.training.recipe != plan::MatmulRecipe::kNone) return "fp8";
  return std::string(program::to_string(scenario.training.compute));
}

double hardware_flops(const program::Program& p, const program::RankProgram& r) {
  std::vector<double> by_segment;
  for (const program::Segment& segment : p.segments) {
    double flops = 0;
    for (const program::Op& op : segment.ops) {
      const program::OpCategory category = program::category_of(op.kind);
      if (category != program::OpCategory::kMatmul && category != program::OpCategory::kAttention) continue;
      std::vector<program::TensorType> operands;
      for (const program::Operand& o : op.operands) operands.push_back(segment.type_of(o));
      flops += program::work_of(op, operands).flops.count;
    }
    by_segment.push_back(flops);
  }
  double sum = 0;
  for (const program::Call& call : r.calls) sum += by_segment.at(call.segment.value);
  return sum;
}

std::int32_t stage_of(const plan::Scenario& scenario, std::uint32_t rank) {
  return plan::mesh_of(scenario).coordinate(rank, "pp");
}

SimulationReport make_simulation_report(const SimulationInputs& in) {
  SimulationReport r;
  r.scenario = in.scenario;
  r.parameters = models::count_parameters(in.scenario.model).total;
  r.microbatches = in.scenario.microbatches();
  r.calibration = in.calibration;
  r.rank_classes = static_cast<std::int64_t>(in.prediction.classes.size());
  r.link_classes = static_cast<std::int64_t>(in.prediction.link_classes);
  r.events = in.prediction.events;
  r.fingerprint = in.program.fingerprint();
  fill_throughput(r, in);
  fill_stages(r, in);
  fill_memory(r, in);
  fill_network(r, in);
  fill_what_ifs(r, in);
  if (r.scenario.job) r.job = job_report(r.scenario, r.step_time_s);
  fill_notes(r, in);
  return r;
}

}  // namespace stepcast::report
