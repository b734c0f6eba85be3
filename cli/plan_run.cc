// See plan_run.h.
#include "cli/plan_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/error.h"
#include "trace/pack.h"

namespace stepcast::cli {
namespace {

// Numbers of a step as bytes: time, whether there is a loss, the loss.
std::string packed(const exec::StepResult& result) {
  const double numbers[] = {static_cast<double>(result.time.ps), result.loss ? 1.0 : 0.0, result.loss.value_or(0)};
  return {reinterpret_cast<const char*>(numbers), sizeof numbers};
}

exec::StepResult unpacked(const std::string& bytes) {
  double numbers[3] = {};
  CHECK(bytes.size() == sizeof numbers, bytes.size());
  std::memcpy(numbers, bytes.data(), sizeof numbers);
  exec::StepResult result;
  result.time = Duration(static_cast<std::int64_t>(numbers[0]));
  if (numbers[1] != 0) result.loss = numbers[2];
  return result;
}

std::string packed(const report::Gradients& gradients) {
  std::string bytes;
  for (const auto& [name, values] : gradients) {
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  }
  return bytes;
}

// Takes from another rank's what no rank before it holds.
void fill_gaps(report::Gradients& gradients, const std::string& bytes) {
  const char* at = bytes.data();
  for (auto& [name, values] : gradients) {
    CHECK(static_cast<std::size_t>(bytes.data() + bytes.size() - at) >= values.size() * sizeof(float), name);
    for (float& value : values) {
      if (std::isnan(value)) std::memcpy(&value, at, sizeof value);
      at += sizeof value;
    }
  }
}

void require_one_process_each(const program::Program& p, const exec::World& world) {
  if (static_cast<std::size_t>(world.size()) == p.ranks.size()) return;
  throw Error(ErrorKind::kUsage,
              "the plan has " + std::to_string(p.ranks.size()) + " ranks, the launcher started " +
                  std::to_string(world.size()) + " processes",
              {}, {"mpirun -n " + std::to_string(p.ranks.size()) + ", or --gpus " + std::to_string(world.size())});
}

void require_one_plan(const program::CheckedProgram& p, exec::World& world) {
  const std::vector<std::string> plans = world.gather(std::to_string(p.fingerprint()));
  for (std::size_t rank = 1; rank < plans.size(); ++rank) {
    if (plans[rank] == plans[0]) continue;
    throw Error(ErrorKind::kExecution, "rank " + std::to_string(rank) + " has read another plan than rank 0", {},
                {"the same scenario, arguments and stepcast on every host"});
  }
}

}  // namespace

report::Gradients gradients_of(const program::Program& p, const exec::Executor& executor) {
  report::Gradients gradients;
  for (std::size_t i = 0; i < p.parameters.size(); ++i) {
    const program::ParameterId id(i);
    gradients[p.parameters[id].name] = executor.gather_parameter(id, program::ShardKind::kGradient);
  }
  return gradients;
}

PlanRun::PlanRun(const program::CheckedProgram& p, exec::ExecOptions options, exec::World* world)
    : program_(p), world_(world) {
  if (world_ != nullptr) {
    require_one_process_each(p.program(), *world_);
    require_one_plan(p, *world_);
    options.ranks = {program::RankId(static_cast<std::size_t>(world_->rank()))};
    options.communicators = world_->communicators(p.program());
    options.cores.place = world_->place();
  }
  executor_ = std::make_unique<exec::Executor>(p, options);
}

exec::StepResult PlanRun::step() {
  exec::StepResult result = executor_->run_step();
  if (world_ == nullptr) return result;
  for (const std::string& bytes : world_->gather(packed(result))) {
    const exec::StepResult other = unpacked(bytes);
    result.time = std::max(result.time, other.time);
    if (!result.loss) result.loss = other.loss;
  }
  return result;
}

report::Gradients PlanRun::gradients() const {
  report::Gradients gradients = gradients_of(program_.program(), *executor_);
  if (world_ == nullptr) return gradients;
  for (const std::string& bytes : world_->gather(packed(gradients))) fill_gaps(gradients, bytes);
  return gradients;
}

trace::Trace PlanRun::trace() const {
  trace::Trace trace = executor_->last_trace();
  if (world_ == nullptr) return trace;
  CHECK(trace.tracks.size() == 1, trace.tracks.size());
  const std::vector<std::string> tracks = world_->gather(trace::pack(trace.tracks[0]));
  trace.tracks.clear();
  SimTime last(0);
  for (const std::string& bytes : tracks) {
    trace.tracks.push_back(trace::unpack(bytes));
    for (const trace::Event& event : trace.tracks.back().events) last = std::max(last, event.end);
  }
  trace.step = last - SimTime(0);
  return trace;
}

}  // namespace stepcast::cli
