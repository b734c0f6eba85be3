// Runs a checked Program for real: ranks as threads, streams as worker threads, in-process communicators.
//
// Knows no model and no strategy: it issues each rank's calls in list order, waits for exactly the edges of
// program/resolve, allocates and frees in issue order, and records what happened.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "exec/step_runner.h"
#include "exec/world.h"
#include "kernels/kernel.h"
#include "program/check.h"

namespace stepcast::exec {

class Communicators;
class StatusPage;

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
  // Where the ranks' boards lie, so that another process can read them (status_page.h); null: in private memory.
  std::shared_ptr<StatusPage> page = nullptr;
  // Called before each kernel by the thread that runs it, in step `step` (1-based); empty: nothing is.
  std::function<void(program::RankId, std::int64_t step)> before_kernel = {};
  // Fills every block with NaN bytes before its first use, so that a read of memory nobody wrote shows.
  bool poison = false;
  // Bytes that a rank's blocks may take in all; by default as many as there are.
  std::optional<Bytes> memory_limit = std::nullopt;
};

// One program instance in memory: persistent buffers live between steps.
class Executor : public StepRunner {
 public:
  // Allocates persistent buffers and fills every weight, master and moment shard from (seed, name, global index).
  // `p` must outlive the executor. Throws Error (kExecution) where they do not fit.
  Executor(const program::CheckedProgram& p, const ExecOptions& options);
  ~Executor() override;

  // A kernel under way is waited for when a step fails: a thread cannot be killed.
  StepResult run_step() override;
  std::vector<std::string> status() const override;
  std::vector<std::int64_t> physical_bytes() const override;
  // ExecOptions::cores, or its default.
  int threads_per_rank() const override;
  const trace::Trace& last_trace() const override;
  std::vector<float> gather_parameter(program::ParameterId parameter, program::ShardKind kind) const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stepcast::exec
