// See executor.h. Threads live for one step: one issuer per rank, one worker per rank and stream used.
#include "exec/executor.h"

#include <algorithm>
#include <array>
#include <limits>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/quantity.h"
#include "exec/rank_placement.h"
#include "exec/rank_run.h"
#include "exec/shards.h"
#include "exec/status_page.h"
#include "exec/thread_communicator.h"

namespace stepcast::exec {
namespace {

// What a rank keeps between steps.
struct RankState {
  RankState(const program::Program& p, const program::RankProgram& r, const program::Resolution& res,
            const LoadedProgram& loaded, const ExecOptions& options, int threads, program::RankId rank)
      : limited(memory, options.memory_limit.value_or(Bytes(std::numeric_limits<std::int64_t>::max()))),
        allocator(p, r, res, loaded, spaces(options), options.poison),
        recorder(p, r, res),
        status(options.page ? options.page->rank(rank.value).board : own_status) {
    if (options.stream_state == nullptr) return;
    for (const program::Stream s : loaded.streams) states[static_cast<std::size_t>(s)] = options.stream_state(threads);
  }

  MemorySpaces spaces(const ExecOptions& options) {
    PhysicalMemory& used = options.memory_limit ? static_cast<PhysicalMemory&>(limited) : memory;
    return {used, used};
  }

  HostMemory memory;
  LimitedMemory limited;
  Allocator allocator;
  Recorder recorder;
  StreamProgress progress;
  StatusBoard own_status;
  StatusBoard& status;                                                              // of the page, where there is one
  std::array<std::unique_ptr<kernels::StreamState>, program::kStreamCount> states;  // of the backend; may be empty
};

}  // namespace

struct Executor::State {
  State(const program::CheckedProgram& c, const ExecOptions& o);

  void fill_shards(program::RankId rank);
  RankRun begin_rank(program::RankId rank);
  void add_threads(Job& job, RankRun& run, StepContext& context);
  std::string failure_text(program::RankId rank, const std::string& what) const;
  std::string status_table() const;
  bool kernel_runs() const;
  void collect_trace();
  ReadBuffer reader() const;

  const program::CheckedProgram& checked;
  const program::Program& program;
  const ExecOptions options;
  const RankPlacement placement;
  std::vector<LoadedProgram> loaded;              // by RankProgramId
  std::vector<program::RankId> local;             // ranks that are executed here
  std::vector<std::unique_ptr<RankState>> ranks;  // by RankId; null where another process executes it
  std::shared_ptr<Communicators> communicators;
  trace::Trace trace;
  std::int64_t steps_begun = 0;
  bool failed = false;
};

Executor::State::State(const program::CheckedProgram& c, const ExecOptions& o)
    : checked(c),
      program(c.program()),
      options(o),
      placement(o.cores, static_cast<int>(c.program().ranks.size())),
      local(o.ranks),
      ranks(c.program().ranks.size()),
      communicators(o.communicators) {
  for (std::size_t i = 0; o.ranks.empty() && i < ranks.size(); ++i) local.push_back(program::RankId(i));
  CHECK(communicators || local.size() == ranks.size(), "ranks elsewhere need communicators", local.size());
  if (!communicators) communicators = std::make_shared<ThreadCommunicators>(program);
  CHECK(options.watchdog.ps > 0 && options.kernel_of != nullptr, options.watchdog.ps);
  CHECK(!options.paced_link || options.paced_link->bandwidth.value >= 1, "bytes per second of the paced link");
  for (std::size_t i = 0; i < program.rank_programs.size(); ++i) {
    const program::RankProgramId id(i);
    CHECK(checked.resolution(id).op_count() < (1U << 28), "ops of a rank program fit a status word");
    loaded.push_back(load(program, program.rank_programs[id], checked.resolution(id)));
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    trace.class_of_rank.push_back(program.ranks[program::RankId(i)].program.value);
  }
  for (const program::RankId rank : local) {
    const program::RankProgramId id = program.ranks[rank].program;
    try {
      ranks[rank.value] = std::make_unique<RankState>(program, program.rank_programs[id], checked.resolution(id),
                                                      loaded[id.value], options, placement.threads(), rank);
    } catch (const Error& e) {
      throw Error(e.kind(), "rank " + std::to_string(rank.value) + ": " + e.problems().front().message);
    }
    fill_shards(rank);
  }
  trace.source = "exec";
  trace.fingerprint = checked.fingerprint();
}

void Executor::State::fill_shards(program::RankId rank) {
  const program::RankProgram& r = program.rank_programs[program.ranks[rank].program];
  for (const program::ParameterShard& shard : r.shards) {
    std::byte* data = ranks[rank.value]->allocator.persistent_data(shard.buffer);
    fill_shard(program, shard, program.ranks[rank], data, r.buffers[shard.buffer].bytes);
  }
}

RankRun Executor::State::begin_rank(program::RankId rank) {
  const program::RankProgramId id = program.ranks[rank].program;
  RankState& state = *ranks[rank.value];
  state.allocator.begin_step();
  state.status.begin_step(static_cast<std::uint64_t>(steps_begun));
  state.status.set_host(HostPhase::kMeeting, 0);
  RankRun run{.rank = rank,
              .rank_program = program.rank_programs[id],
              .resolution = checked.resolution(id),
              .loaded = loaded[id.value],
              .allocator = state.allocator,
              .progress = state.progress,
              .status = state.status,
              .recorder = state.recorder,
              .placement = placement,
              .streams = {},
              .states = {}};
  for (const program::Stream s : run.loaded.streams) {
    std::atomic<std::uint32_t>& completed = state.progress.completed[static_cast<std::size_t>(s)];
    completed.store(0);
    state.status.set_stream(s, StreamPhase::kIdle, 0);
    run.streams[static_cast<std::size_t>(s)] = std::make_unique<OpStream>(completed);
    run.states[static_cast<std::size_t>(s)] = state.states[static_cast<std::size_t>(s)].get();
  }
  return run;
}

void Executor::State::add_threads(Job& job, RankRun& run, StepContext& context) {
  const program::RankId rank = run.rank;
  for (const program::Stream s : run.loaded.streams) {
    job.add_thread([&run, &context, s] { run_stream(run, s, context); },
                   [this, &run, rank, s](const std::string& what) {
                     return failure_text(rank, path_of(checked, rank, run.status.stream(s).op) + ": " + what);
                   });
  }
  job.add_thread([&run, &context] { issue_all(run, context); },
                 [this, &run, rank](const std::string& what) {
                   return failure_text(rank, path_of(checked, rank, run.status.host().op) + ": " + what);
                 });
}

std::string Executor::State::failure_text(program::RankId rank, const std::string& what) const {
  return "rank " + std::to_string(rank.value) + " failed in " + what + "\n" + status_table();
}

std::string Executor::State::status_table() const {
  std::string table;
  for (const program::RankId rank : local) {
    table += (table.empty() ? "  " : "\n  ") + status_line(checked, rank, ranks[rank.value]->status, *communicators);
  }
  return table;
}

// Whether some stream is in a kernel, which may take as long as it likes.
bool Executor::State::kernel_runs() const {
  for (const program::RankId rank : local) {
    const program::RankProgramId id = program.ranks[rank].program;
    for (const program::Stream s : loaded[id.value].streams) {
      if (static_cast<StreamPhase>(ranks[rank.value]->status.stream(s).phase) == StreamPhase::kRunning) return true;
    }
  }
  return false;
}

void Executor::State::collect_trace() {
  trace.tracks.clear();
  SimTime last(0);
  for (const program::RankId rank : local) {
    const RankState& state = *ranks[rank.value];
    trace.tracks.push_back(state.recorder.track(rank, program.ranks[rank].program, state.allocator));
    for (const trace::Event& event : trace.tracks.back().events) last = std::max(last, event.end);
  }
  trace.step = last - SimTime(0);  // the job starts all hosts at time 0
}

ReadBuffer Executor::State::reader() const {
  return [this](program::RankId rank, program::BufferId buffer) {
    return ranks[rank.value]->allocator.persistent_data(buffer);
  };
}

Executor::Executor(const program::CheckedProgram& p, const ExecOptions& options)
    : state_(std::make_unique<State>(p, options)) {}

Executor::~Executor() = default;

StepResult Executor::run_step() {
  State& state = *state_;
  if (state.failed) throw Error(ErrorKind::kExecution, "an earlier step failed, so the buffers hold no valid state");
  state.failed = true;  // until the step has succeeded
  std::vector<RankRun> runs;
  runs.reserve(state.ranks.size());
  Job job;  // joins its threads before the runs go
  const auto op_name = [&state](program::RankId rank, std::uint32_t op) {
    return "rank " + std::to_string(rank.value) + " " + path_of(state.checked, rank, op);
  };
  StepContext context{.checked = state.checked,
                      .options = state.options,
                      .communicators = *state.communicators,
                      .comm = {job, state.options.paced_link, op_name},
                      .job = job,
                      .step = ++state.steps_begun};
  for (const program::RankId rank : state.local) runs.push_back(state.begin_rank(rank));
  try {
    for (RankRun& run : runs) state.add_threads(job, run, context);
  } catch (const std::system_error& e) {
    throw Error(ErrorKind::kExecution, std::string("cannot start a thread: ") + e.what());
  }
  state.communicators->meet();
  for (RankRun& run : runs) run.status.set_host(HostPhase::kIdle, 0);
  job.start();
  const auto busy = [&state] { return state.kernel_runs(); };
  if (!job.wait(state.options.watchdog, busy)) {
    job.fail("no op has completed for " + format_duration(state.options.watchdog) + "\n" + state.status_table());
    job.wait(state.options.watchdog, busy);
  }
  if (const std::optional<Job::Failure> failure = job.failure()) {
    if (failure->internal) throw InternalError(failure->message);
    throw Error(ErrorKind::kExecution, failure->message);
  }
  state.collect_trace();
  state.failed = false;
  return StepResult{state.trace.step, read_loss(state.program, state.local, state.reader())};
}

int Executor::threads_per_rank() const { return state_->placement.threads(); }

const trace::Trace& Executor::last_trace() const { return state_->trace; }

std::vector<std::string> Executor::status() const {
  std::vector<std::string> lines;
  for (const program::RankId rank : state_->local) {
    lines.push_back(status_line(state_->checked, rank, state_->ranks[rank.value]->status, *state_->communicators));
  }
  return lines;
}

std::vector<std::int64_t> Executor::physical_bytes() const {
  std::vector<std::int64_t> bytes;
  for (const program::RankId rank : state_->local) {
    bytes.push_back(state_->ranks[rank.value]->allocator.physical_bytes());
  }
  return bytes;
}

std::vector<float> Executor::gather_parameter(program::ParameterId parameter, program::ShardKind kind) const {
  return gather_shards(state_->program, state_->local, parameter, kind, state_->reader());
}

}  // namespace stepcast::exec
