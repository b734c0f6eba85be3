// Dependences of a rank program, derived from operands: two ops whose views overlap in bytes, at least one writing, are
// ordered as issued (RAW, WAR, WAW). Ops of one stream are ordered by the stream; only cross-stream edges are listed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "program/program.h"

namespace stepcast::program {

// Ops are numbered in issue order over all calls of the rank program: op `first_op[call] + i` is op i of that call's
// segment.
struct Resolution {
  std::vector<std::uint32_t> first_op;    // per call, plus one past the end
  std::vector<std::uint32_t> call_of;     // per op
  std::vector<std::uint32_t> edge_begin;  // per op, plus one past the end
  std::vector<std::uint32_t> edges;  // predecessors on other streams: at most one, the latest, per stream; ascending
  // join ops: predecessor edges to the tail of the joined stream are among the edges.

  std::uint32_t op_count() const { return static_cast<std::uint32_t>(call_of.size()); }
  std::span<const std::uint32_t> predecessors(std::uint32_t op) const {
    return std::span(edges).subspan(edge_begin[op], edge_begin[op + 1] - edge_begin[op]);
  }
};

// Per byte range of a buffer the last writer and the last reader per stream are kept, so that the time is linear in the
// number of operands times the ranges each of them touches.
Resolution resolve(const Program& p, const RankProgram& r);

// The op a flat number stands for.
inline const Op& op_at(const Program& p, const RankProgram& r, const Resolution& res, std::uint32_t op) {
  const std::uint32_t call = res.call_of[op];
  return p.segments[r.calls[call].segment].ops[op - res.first_op[call]];
}

}  // namespace stepcast::program
