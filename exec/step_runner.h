// What runs the steps of a plan, on whatever machine: cores (executor.h) or accelerators (device/device_executor.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "program/program.h"
#include "trace/trace.h"

namespace stepcast::exec {

// One executed step.
struct StepResult {
  Duration time;
  std::optional<double> loss;  // the loss view of the first rank executed here that has one
};

// One program instance in memory: persistent buffers live between steps.
class StepRunner {
 public:
  StepRunner() = default;
  virtual ~StepRunner() = default;
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;

  // Runs one step on all ranks, those of other processes being told to by theirs. Throws Error (kExecution) when a rank
  // fails or hangs, InternalError when a CHECK fails in one of its threads; the message lists each rank's current call.
  // All threads have then ended, and no further step can be run.
  virtual StepResult run_step() = 0;

  // Each rank's current call, one line per rank: where its host is, and what each busy stream does or waits for. May be
  // called from any thread, also while a step runs.
  virtual std::vector<std::string> status() const = 0;

  // Per rank executed here, the bytes its allocator has taken from the system: rounded, and grown where a free block
  // still had a use pending. Timing has a say in it; the exact peaks are in the trace. Not while a step runs.
  virtual std::vector<std::int64_t> physical_bytes() const = 0;

  // Threads of one kernel.
  virtual int threads_per_rank() const = 0;

  // The trace of the last step: every op of every rank executed here, peaks counted by the allocator.
  virtual const trace::Trace& last_trace() const = 0;

  // A parameter's whole tensor [rows * cols], assembled from the shards of `kind` over the ranks executed here (f32);
  // elements that none of them holds are NaN. After run_step, gradients are those the optimizer used (summed, not
  // clipped).
  virtual std::vector<float> gather_parameter(program::ParameterId parameter, program::ShardKind kind) const = 0;
};

}  // namespace stepcast::exec
