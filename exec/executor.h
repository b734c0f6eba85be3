// Runs a checked Program for real: ranks as threads, streams as worker threads, in-process communicators.
//
// Knows no model and no strategy: it issues each rank's calls in list order, waits for exactly the edges of
// program/resolve, allocates and frees in issue order, and records what happened.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "exec/world.h"
#include "kernels/kernel.h"
#include "program/check.h"
#include "trace/trace.h"

namespace stepcast::exec {

class Communicators;

// Slows communication to latency + ring bytes / bandwidth by sleeping: makes a slow network out of a fast memory.
struct PacedLink {
  Duration latency;
  BytesPerSecond bandwidth;
};

// The cores of a rank's threads. A core is one that this process may use.
struct RankCores {
  // Threads of one kernel, of the backends whose kernels have several. By default every rank has its share of the
  // cores, at least one.
  std::optional<int> threads = std::nullopt;
  // Each rank's threads stay on as many cores as its kernels have threads: rank 0 on the first, and so on; ranks beyond
  // the cores share them in turn. Off, the system places them.
  bool bind = false;
  // Of the one rank that this process executes, among those that share its cores; by default all ranks do, by number.
  std::optional<HostPlace> place = std::nullopt;
};

struct ExecOptions {
  std::optional<PacedLink> paced_link = std::nullopt;
  // A job in which no op completes and no kernel runs for so long is ended (60 s).
  Duration watchdog{60'000'000'000'000};
  // The kernels to run: a backend's table, or a test's.
  kernels::Kernel (*kernel_of)(program::OpKind) = &kernels::reference_kernel;
  // Makes what the backend keeps for one stream of one rank, for so many threads of a kernel; null: it keeps nothing.
  std::unique_ptr<kernels::StreamState> (*stream_state)(int threads) = nullptr;
  RankCores cores = {};
  // The ranks to execute here, in threads; the others are executed by other processes that `communicators` reaches. By
  // default all are.
  std::vector<program::RankId> ranks = {};
  std::shared_ptr<Communicators> communicators = nullptr;
  // Fills every block with NaN bytes before its first use, so that a read of memory nobody wrote shows.
  bool poison = false;
};

// One executed step.
struct StepResult {
  Duration time;
  std::optional<double> loss;  // the loss view of the first rank executed here that has one
};

// One program instance in memory: persistent buffers live between steps.
class Executor {
 public:
  // Allocates persistent buffers and fills every weight, master and moment shard from (seed, name, global index).
  // `p` must outlive the executor.
  Executor(const program::CheckedProgram& p, const ExecOptions& options);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Runs one step on all ranks, those of other processes being told to by theirs. Throws Error (kExecution) when a rank
  // fails or hangs, InternalError when a CHECK fails in one of its threads; the message lists each rank's current call.
  // All threads have then ended (a kernel under way is waited for), and no further step can be run.
  StepResult run_step();

  // Each rank's current call, one line per rank: where its host is, and what each busy stream does or waits for. May be
  // called from any thread, also while a step runs.
  std::vector<std::string> status() const;

  // Per rank executed here, the bytes its allocator has taken from the system: rounded, and grown where a free block
  // still had a use pending. Timing has a say in it; the exact peaks are in the trace. Not while a step runs.
  std::vector<std::int64_t> physical_bytes() const;

  // Threads of one kernel: ExecOptions::cores, or its default.
  int threads_per_rank() const;

  // The trace of the last step: every op of every rank executed here, peaks counted by the allocator.
  const trace::Trace& last_trace() const;

  // A parameter's whole tensor [rows * cols], assembled from the shards of `kind` over the ranks executed here (f32);
  // elements that none of them holds are NaN. After run_step, gradients are those the optimizer used (summed, not
  // clipped).
  std::vector<float> gather_parameter(program::ParameterId parameter, program::ShardKind kind) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stepcast::exec
