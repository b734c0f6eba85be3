// See recorder.h.
#include "exec/recorder.h"

#include "base/check.h"

namespace stepcast::exec {

static_assert(program::kMemoryClassCount == 5, "trace/ holds five classes");

Recorder::Recorder(const program::Program& p, const program::RankProgram& r, const program::Resolution& res)
    : name_(r.name), events_(res.op_count()), memory_(res.op_count()) {
  for (std::uint32_t op = 0; op < res.op_count(); ++op) {
    const std::uint32_t call = res.call_of[op];
    events_[op].id = trace::OpId{call, op - res.first_op[call]};
    events_[op].stream = static_cast<std::uint8_t>(program::op_at(p, r, res, op).stream);
  }
}

void Recorder::issued(std::uint32_t op, SimTime time, const ClassBytes& allocated) {
  events_[op].issue = time;
  memory_[op] = trace::MemorySample{time, allocated};
}

void Recorder::ran(std::uint32_t op, SimTime begin, const Transfer& moved) {
  CHECK(begin <= moved.transfer && moved.transfer <= moved.end, op, begin.ps, moved.transfer.ps, moved.end.ps);
  events_[op].begin = begin;
  events_[op].transfer = moved.transfer;
  events_[op].end = moved.end;
}

trace::Track Recorder::track(program::RankId rank, program::RankProgramId rank_program,
                             const Allocator& allocator) const {
  trace::Track track;
  track.rank = rank.value;
  track.class_id = rank_program.value;
  track.name = name_;
  track.events = events_;
  track.memory = memory_;
  track.class_peak = allocator.class_peak();
  track.peak = allocator.peak();
  return track;
}

}  // namespace stepcast::exec
