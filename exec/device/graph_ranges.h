// Which ranges of a rank program's ops can be launched as one graph: those that it marks (RankProgram::graphs) whose
// ops all run on the device. A host_read holds the host in between, and a graph has no place for that.
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.h"
#include "program/resolve.h"

namespace stepcast::exec {

struct GraphRange {
  std::uint32_t number = 0;  // in RankProgram::graphs
  std::uint32_t begin = 0;   // flat ops [begin, end), not empty
  std::uint32_t end = 0;
  std::vector<program::Stream> streams;  // those used, ascending
  std::vector<std::uint32_t> waits;      // outer ops to wait for before it begins; the wait plan fills it
};

std::vector<GraphRange> graph_ranges(const program::Program& p, const program::RankProgram& r,
                                     const program::Resolution& res);

}  // namespace stepcast::exec
