// What a rank on a device keeps between steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "exec/allocator.h"
#include "exec/device/comm_layout.h"
#include "exec/device/device.h"
#include "exec/device/event_pool.h"
#include "exec/device/wait_plan.h"
#include "exec/executor.h"
#include "exec/load.h"
#include "exec/recorder.h"
#include "exec/status.h"
#include "program/check.h"

namespace stepcast::exec {

// What is worked out once per rank program.
struct DevicePlan {
  LoadedProgram loaded;
  WaitPlan waits;
};

DevicePlan plan_device(const program::Program& p, const program::RankProgram& r, const program::Resolution& res);

struct DeviceRank {
  // Allocates the persistent buffers. The references must outlive it. Throws Error (kExecution) where they do not fit.
  DeviceRank(const program::CheckedProgram& checked, program::RankId rank, const DevicePlan& plan,
             const CommLayout& layout, const ExecOptions& options, std::unique_ptr<Device> device);

  // Meets the other ranks, and fills the weights, masters and moments. By a thread of its own.
  void start();
  // Of step `step` (1-based).
  void begin_step(std::int64_t step);
  // A persistent buffer in host memory, until the next call.
  const std::byte* read(program::BufferId buffer);

  const program::CheckedProgram& checked;
  program::RankId id;
  const program::RankProgram& rank_program;
  const program::Resolution& resolution;
  const DevicePlan& plan;
  const CommLayout& layout;
  const ExecOptions& options;
  std::unique_ptr<Device> device;
  LimitedMemory limited;
  Allocator allocator;  // before the device goes, its blocks do
  Recorder recorder;
  StreamProgress progress;
  StatusBoard own_status;
  StatusBoard& status;  // of the page, where there is one
  EventPool events;
  std::uint32_t at = 0;  // the op that its host is about: for messages

 private:
  MemorySpaces spaces();

  std::optional<program::BufferId> copied_;  // in copy_, of this step
  std::vector<std::byte> copy_;
};

}  // namespace stepcast::exec
