// What the threads of one rank share during a step.
#pragma once

#include <array>
#include <memory>

#include "exec/allocator.h"
#include "exec/communicator.h"
#include "exec/executor.h"
#include "exec/op_stream.h"
#include "exec/rank_placement.h"
#include "exec/recorder.h"
#include "exec/status.h"
#include "program/check.h"

namespace stepcast::exec {

// The same for all ranks.
struct StepContext {
  const program::CheckedProgram& checked;
  const ExecOptions& options;
  Communicators& communicators;
  CommContext comm;
  Job& job;
  std::int64_t step = 1;  // 1-based
};

struct RankRun {
  program::RankId rank;
  const program::RankProgram& rank_program;
  const program::Resolution& resolution;
  const LoadedProgram& loaded;
  Allocator& allocator;
  StreamProgress& progress;
  StatusBoard& status;
  Recorder& recorder;
  const RankPlacement& placement;
  std::array<std::unique_ptr<OpStream>, program::kStreamCount> streams;  // those used
  std::array<kernels::StreamState*, program::kStreamCount> states;       // by stream; may be null

  OpStream& stream(program::Stream s) { return *streams[static_cast<std::size_t>(s)]; }
};

// Body of a rank's host thread: issues every op in order, running ahead without bound except at a host_read.
void issue_all(RankRun& run, StepContext& context);

// Body of the worker of stream `s`: runs its ops in order, each after its cross-stream predecessors.
void run_stream(RankRun& run, program::Stream s, StepContext& context);

}  // namespace stepcast::exec
