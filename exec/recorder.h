// Writes down what one rank did in a step: an event per op, memory at each issue, peaks.
//
// Each op's event is written by its issuer (issue) and then by its stream's worker (the rest); the threads are joined
// before the track is read, so no lock is needed.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/allocator.h"
#include "exec/completion.h"
#include "program/program.h"
#include "program/resolve.h"
#include "trace/trace.h"

namespace stepcast::exec {

class Recorder {
 public:
  Recorder(const program::Program& p, const program::RankProgram& r, const program::Resolution& res);

  // By the issuer, in issue order, before the worker can see the op. `allocated` is what lives during the issue.
  void issued(std::uint32_t op, SimTime time, const ClassBytes& allocated);
  // By the stream's worker.
  void ran(std::uint32_t op, SimTime begin, const Transfer& moved);

  // The track of a finished step.
  trace::Track track(program::RankId rank, program::RankProgramId rank_program, const Allocator& allocator) const;

 private:
  std::string name_;
  std::vector<trace::Event> events_;         // by flat op
  std::vector<trace::MemorySample> memory_;  // by flat op
};

}  // namespace stepcast::exec
