// Runs a checked Program on accelerators: each rank executed here has a device (device.h) and one host thread that
// gives the device everything in issue order.
//
// It has the same Program, edges, memory and trace as exec/executor.h, and differs in who waits: streams are the
// device's own and wait for events, times come from events, and the host knows what is over only when it asks. The
// start of a transfer is its op's own start: a rank does not see when its partners came.
#pragma once

#include <functional>
#include <memory>

#include "exec/device/device.h"
#include "exec/executor.h"
#include "exec/step_runner.h"

namespace stepcast::exec {

class CommLayout;

struct DeviceOptions {
  // Makes the device of a rank; `layout` outlives it.
  std::function<std::unique_ptr<Device>(program::RankId rank, const CommLayout& layout)> open;
  // Before each step: returns when the ranks of all processes have come so far. Not needed where all are here.
  std::function<void()> meet = {};
};

class DeviceExecutor : public StepRunner {
 public:
  // Opens and connects the devices, allocates persistent buffers and fills them as Executor does. Of `options`, a paced
  // link is Error (kUnsupported); stream_state, cores and communicators are the devices' business. `p` must outlive the
  // executor. Throws Error (kExecution) where memory does not suffice or a device fails.
  DeviceExecutor(const program::CheckedProgram& p, const ExecOptions& options, const DeviceOptions& devices);
  ~DeviceExecutor() override;

  // The watchdog ends a job in which no event happens for so long, also while a kernel runs; communication under way is
  // then aborted.
  StepResult run_step() override;
  std::vector<std::string> status() const override;
  std::vector<std::int64_t> physical_bytes() const override;
  int threads_per_rank() const override { return 1; }
  const trace::Trace& last_trace() const override;
  std::vector<float> gather_parameter(program::ParameterId parameter, program::ShardKind kind) const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stepcast::exec
