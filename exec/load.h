// What the executor works out once per rank program: each op's place on its stream, and how often each block is
// accessed.
//
// Counts come straight from the calls' operands, so the executor's memory accounting shares no code with
// program/lifetimes: that both give the same bytes is a test, not a definition.
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.h"
#include "program/resolve.h"

namespace stepcast::exec {

// How one step uses a block (a buffer, or a temp of a call).
struct BlockUse {
  std::uint32_t accesses = 0;                        // operands that name it
  program::Stream home = program::Stream::kCompute;  // stream of the first access
  // Every access is ordered after the first one: all are on one stream, or the first writes every byte, so that the
  // others have an edge (or a chain of edges) from it. Such a block may take memory whose last use its home stream
  // still has to run.
  bool anchored = false;
};

struct LoadedProgram {
  std::vector<std::uint32_t> position;       // per flat op: its place in its stream, from 0
  std::vector<program::Stream> streams;      // those used, ascending
  std::vector<BlockUse> buffers;             // by BufferId
  std::vector<std::vector<BlockUse>> temps;  // by SegmentId, then temp; empty for segments not called
};

LoadedProgram load(const program::Program& p, const program::RankProgram& r, const program::Resolution& res);

}  // namespace stepcast::exec
