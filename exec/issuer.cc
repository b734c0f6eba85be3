// The host thread of a rank (rank_run.h). Memory is allocated and freed here, in issue order, whatever the streams do.
#include <utility>

#include "exec/op_arguments.h"
#include "exec/rank_run.h"

namespace stepcast::exec {
void issue_all(RankRun& run, StepContext& context) {
  const program::Program& p = context.checked.program();
  const std::stop_token stop = context.job.stop_token();
  run.placement.place_this_thread(run.rank);
  for (std::uint32_t op = 0; op < run.resolution.op_count(); ++op) {
    if (stop.stop_requested()) throw Stopped{};
    run.status.set_host(HostPhase::kIssuing, op);
    const program::Op& what = program::op_at(p, run.rank_program, run.resolution, op);
    OpStream& stream = run.stream(what.stream);
    IssuedOp issued{op, run.allocator.issue(op, run.progress)};
    place_parts(p, run.rank, what, issued.memory.operands);
    run.recorder.issued(op, context.job.now(), run.allocator.allocated());
    stream.push(std::move(issued));
    if (what.kind == program::OpKind::kHostRead) {
      run.status.set_host(HostPhase::kBlocked, op);
      stream.wait_completed(run.loaded.position[op] + 1, context.job);
    }
  }
  for (const program::Stream s : run.loaded.streams) run.stream(s).close();
  run.status.set_host(HostPhase::kFinished, 0);
}

}  // namespace stepcast::exec
