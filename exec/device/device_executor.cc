// See device_executor.h. Host threads live for one step.
#include "exec/device/device_executor.h"

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/quantity.h"
#include "exec/device/comm_layout.h"
#include "exec/device/device_issuer.h"
#include "exec/device/device_rank.h"
#include "exec/shards.h"

namespace stepcast::exec {
namespace {

// Whom a device's communication waits for is not known to its host.
std::vector<program::RankId> unseen(const program::Op&, std::uint32_t) { return {}; }

std::string name_of(program::RankId rank) { return "rank " + std::to_string(rank.value); }

}  // namespace

struct DeviceExecutor::State {
  State(const program::CheckedProgram& c, const ExecOptions& o, const DeviceOptions& d);

  void open(program::RankId rank);
  void start_ranks();
  void run_job(Job& job, bool watched);
  void abort_all();
  std::string failure_text(const DeviceRank& rank, const std::string& what);
  std::string status_table();
  void collect_trace();
  ReadBuffer reader();
  DeviceRank& of(program::RankId rank) { return *ranks[rank.value]; }

  const program::CheckedProgram& checked;
  const program::Program& program;
  const ExecOptions options;
  const DeviceOptions devices;
  const CommLayout layout;
  std::vector<DevicePlan> plans;                   // by RankProgramId; empty where no rank here has it
  std::vector<program::RankId> local;              // ranks that are executed here
  std::vector<std::unique_ptr<DeviceRank>> ranks;  // by RankId; null where another process executes it
  trace::Trace trace;
  std::int64_t steps_begun = 0;
  bool failed = false;
};

DeviceExecutor::State::State(const program::CheckedProgram& c, const ExecOptions& o, const DeviceOptions& d)
    : checked(c),
      program(c.program()),
      options(o),
      devices(d),
      layout(program),
      plans(program.rank_programs.size()),
      local(o.ranks),
      ranks(program.ranks.size()) {
  CHECK(options.watchdog.ps > 0 && options.kernel_of != nullptr && devices.open, options.watchdog.ps);
  if (options.paced_link) throw Error(ErrorKind::kUnsupported, "a device's links are as fast as they are: not paced");
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (o.ranks.empty()) local.push_back(program::RankId(i));
    trace.class_of_rank.push_back(program.ranks[program::RankId(i)].program.value);
  }
  for (const program::RankId rank : local) open(rank);
  start_ranks();
  trace.source = "exec";
  trace.fingerprint = checked.fingerprint();
}

void DeviceExecutor::State::open(program::RankId rank) {
  const program::RankProgramId id = program.ranks[rank].program;
  const program::Resolution& resolution = checked.resolution(id);
  CHECK(resolution.op_count() < (1U << 28), "ops of a rank program fit a status word");
  DevicePlan& plan = plans[id.value];
  if (plan.waits.wait_begin.empty()) plan = plan_device(program, program.rank_programs[id], resolution);
  try {
    ranks[rank.value] = std::make_unique<DeviceRank>(checked, rank, plan, layout, options, devices.open(rank, layout));
  } catch (const Error& e) {
    throw Error(e.kind(), name_of(rank) + ": " + e.problems().front().message);
  }
}

// All at once, for they meet.
void DeviceExecutor::State::start_ranks() {
  Job job;
  for (const program::RankId id : local) {
    job.add_thread([&rank = of(id)] { rank.start(); },
                   [id](const std::string& what) { return name_of(id) + " cannot start: " + what; });
  }
  run_job(job, false);
}

// Ends communication as soon as the job has failed, so that no host thread is held by it. `watched`: events are to
// happen.
void DeviceExecutor::State::run_job(Job& job, bool watched) {
  job.start();
  const auto busy = [&] {
    if (job.stop_token().stop_requested()) abort_all();
    return !watched;
  };
  if (!job.wait(options.watchdog, busy)) {
    job.fail("no event has happened for " + format_duration(options.watchdog) + "\n" + status_table());
    abort_all();
    job.wait(options.watchdog, busy);
  }
  if (const std::optional<Job::Failure> failure = job.failure()) {
    abort_all();
    if (failure->internal) throw InternalError(failure->message);
    throw Error(ErrorKind::kExecution, failure->message);
  }
}

void DeviceExecutor::State::abort_all() {
  for (const program::RankId rank : local) of(rank).device->end_communication();
}

std::string DeviceExecutor::State::failure_text(const DeviceRank& rank, const std::string& what) {
  return name_of(rank.id) + " failed in " + path_of(checked, rank.id, rank.at) + ": " + what + "\n" + status_table();
}

std::string DeviceExecutor::State::status_table() {
  std::string table;
  for (const program::RankId rank : local) {
    table += (table.empty() ? "  " : "\n  ") + status_line(checked, rank, of(rank).status, unseen);
  }
  return table;
}

void DeviceExecutor::State::collect_trace() {
  trace.tracks.clear();
  SimTime last(0);
  for (const program::RankId rank : local) {
    trace.tracks.push_back(of(rank).recorder.track(rank, program.ranks[rank].program, of(rank).allocator));
    for (const trace::Event& event : trace.tracks.back().events) last = std::max(last, event.end);
  }
  trace.step = last - SimTime(0);  // the job starts all hosts at time 0
}

ReadBuffer DeviceExecutor::State::reader() {
  return [this](program::RankId rank, program::BufferId buffer) { return of(rank).read(buffer); };
}

DeviceExecutor::DeviceExecutor(const program::CheckedProgram& p, const ExecOptions& options,
                               const DeviceOptions& devices)
    : state_(std::make_unique<State>(p, options, devices)) {}

DeviceExecutor::~DeviceExecutor() = default;

StepResult DeviceExecutor::run_step() {
  State& state = *state_;
  if (state.failed) throw Error(ErrorKind::kExecution, "an earlier step failed, so the buffers hold no valid state");
  state.failed = true;  // until the step has succeeded
  const std::int64_t step = ++state.steps_begun;
  Job job;
  try {
    for (const program::RankId id : state.local) {
      DeviceRank& rank = state.of(id);
      rank.begin_step(step);
      job.add_thread([&rank, &job, step] { DeviceIssuer(rank, job, step).run(); },
                     [&state, &rank](const std::string& what) { return state.failure_text(rank, what); });
    }
  } catch (const std::system_error& e) {
    throw Error(ErrorKind::kExecution, std::string("cannot start a thread: ") + e.what());
  }
  if (state.devices.meet) state.devices.meet();
  for (const program::RankId id : state.local) state.of(id).status.set_host(HostPhase::kIdle, 0);
  state.run_job(job, true);
  state.collect_trace();
  state.failed = false;
  return StepResult{state.trace.step, read_loss(state.program, state.local, state.reader())};
}

std::vector<std::string> DeviceExecutor::status() const {
  std::vector<std::string> lines;
  for (const program::RankId rank : state_->local) {
    lines.push_back(status_line(state_->checked, rank, state_->of(rank).status, unseen));
  }
  return lines;
}

std::vector<std::int64_t> DeviceExecutor::physical_bytes() const {
  std::vector<std::int64_t> bytes;
  for (const program::RankId rank : state_->local) bytes.push_back(state_->of(rank).allocator.physical_bytes());
  return bytes;
}

const trace::Trace& DeviceExecutor::last_trace() const { return state_->trace; }

std::vector<float> DeviceExecutor::gather_parameter(program::ParameterId parameter, program::ShardKind kind) const {
  return gather_shards(state_->program, state_->local, parameter, kind, state_->reader());
}

}  // namespace stepcast::exec
