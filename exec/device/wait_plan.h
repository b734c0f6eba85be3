// Which event each op of a rank program waits for: the cross-stream edges of program/resolve, without those that an
// earlier wait on the same stream, or a chain of waits, has covered already.
//
// Per stream a vector clock counts how many ops of each stream precede its next op (Fidge, Mattern 1988); a wait takes
// over what the awaited op knew. The streams of a graph meet at its begin and its end, and a graph waits for outer ops
// at its begin alone. So it is a graph only if its first op waits for all of them anyway: else it would wait longer
// than its ops have to, or even for what comes after it. Worked out once: it is the same in every step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/block_pool.h"
#include "exec/device/graph_ranges.h"
#include "exec/load.h"
#include "program/program.h"
#include "program/resolve.h"

namespace stepcast::exec {

struct WaitPlan {
  std::vector<std::uint32_t> wait_begin;  // per op, plus one past the end
  std::vector<std::uint32_t> waits;       // ops on other streams
  std::vector<StreamCounts> covered;      // per op: the first ops of each stream, over before it starts
  std::vector<GraphRange> graphs;         // of the possible ones, ascending

  std::span<const std::uint32_t> waits_of(std::uint32_t op) const {
    return std::span(waits).subspan(wait_begin[op], wait_begin[op + 1] - wait_begin[op]);
  }
};

WaitPlan plan_waits(const program::Program& p, const program::RankProgram& r, const program::Resolution& res,
                    const LoadedProgram& loaded, std::span<const GraphRange> possible_graphs);

}  // namespace stepcast::exec
