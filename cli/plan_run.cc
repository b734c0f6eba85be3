// See plan_run.h.
#include "cli/plan_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/check.h"
#include "base/error.h"
#include "base/random.h"
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

std::uint64_t hash_of_this_program() {
  std::stringstream bytes;
  bytes << std::ifstream("/proc/self/exe", std::ios::binary).rdbuf();
  return hash_text(bytes.str());
}

// One value a line, in the order of the facts.
std::string packed(const std::vector<CommonFact>& facts) {
  std::string text;
  for (const CommonFact& fact : facts) text += fact.value + "\n";
  return text;
}

// The complaint about the first fact in which `other` differs from `own`.
std::string difference(const std::vector<CommonFact>& facts, const std::string& own, const std::string& other) {
  std::istringstream mine(own);
  std::istringstream theirs(other);
  std::string a;
  std::string b;
  for (const CommonFact& fact : facts) {
    std::getline(mine, a);
    std::getline(theirs, b);
    if (a != b) return fact.complaint;
  }
  return "was started otherwise";
}

void require_in_common(const std::vector<CommonFact>& facts, exec::World& world) {
  const std::vector<std::string> told = world.gather(packed(facts));
  for (std::size_t rank = 1; rank < told.size(); ++rank) {
    if (told[rank] == told[0]) continue;
    throw Error(ErrorKind::kExecution,
                "rank " + std::to_string(rank) + " " + difference(facts, told[0], told[rank]) + " than rank 0", {},
                {"the same scenario, arguments and stepcast on every host"});
  }
}

}  // namespace

report::Gradients gradients_of(const program::Program& p, const exec::StepRunner& runner) {
  report::Gradients gradients;
  for (std::size_t i = 0; i < p.parameters.size(); ++i) {
    const program::ParameterId id(i);
    gradients[p.parameters[id].name] = runner.gather_parameter(id, program::ShardKind::kGradient);
  }
  return gradients;
}

PlanRun::PlanRun(const program::CheckedProgram& p, exec::ExecOptions options, exec::World* world,
                 std::vector<CommonFact> facts, MakeRunner make)
    : program_(p), world_(world) {
  if (world_ != nullptr) {
    require_one_process_each(p.program(), *world_);
    facts.push_back({"has read another plan", std::to_string(p.fingerprint())});
    facts.push_back({"is another build of stepcast", std::to_string(hash_of_this_program())});
    require_in_common(facts, *world_);
    options.ranks = {program::RankId(static_cast<std::size_t>(world_->rank()))};
    if (make == nullptr) options.communicators = world_->communicators(p.program());
    options.cores.place = world_->place();
  }
  runner_ = make != nullptr ? make(p, options, world) : std::make_unique<exec::Executor>(p, options);
}

exec::StepResult PlanRun::step() {
  exec::StepResult result = runner_->run_step();
  if (world_ == nullptr) return result;
  for (const std::string& bytes : world_->gather(packed(result))) {
    const exec::StepResult other = unpacked(bytes);
    result.time = std::max(result.time, other.time);
    if (!result.loss) result.loss = other.loss;
  }
  return result;
}

report::Gradients PlanRun::gradients() const {
  report::Gradients gradients = gradients_of(program_.program(), *runner_);
  if (world_ == nullptr) return gradients;
  for (const std::string& bytes : world_->gather(packed(gradients))) fill_gaps(gradients, bytes);
  return gradients;
}

trace::Trace PlanRun::trace() const {
  trace::Trace trace = runner_->last_trace();
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
