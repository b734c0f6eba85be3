// Two timelines of one Program side by side: a join on op ids, rank by rank.
//
// A simulated trace has one track per class of ranks, a measured one a track per rank; a rank without a track of its
// own is represented by its class's. Traces of different Programs (fingerprints) are never joined.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trace/trace.h"

namespace stepcast::trace {

// One op of one rank in both traces.
struct JoinedOp {
  std::uint32_t rank = 0;
  Event left;
  Event right;
};

// An op of one rank that only one of the traces has.
struct UnmatchedOp {
  std::uint32_t rank = 0;
  OpId id;
  bool operator==(const UnmatchedOp&) const = default;
};

struct Join {
  std::vector<JoinedOp> ops;           // by rank, then by op id
  std::vector<UnmatchedOp> only_left;  // likewise
  std::vector<UnmatchedOp> only_right;

  bool complete() const { return only_left.empty() && only_right.empty(); }
};

// Position in `trace.tracks` of the track that stands for `rank`: its own, else its class's; empty when there is none.
std::optional<std::size_t> track_of_rank(const Trace& trace, std::uint32_t rank);

// Joins every rank that either trace maps to a class. Throws Error (kInput) when the fingerprints or the numbers of
// ranks differ; an op id that occurs twice in a track is a broken invariant (CHECK).
Join join(const Trace& left, const Trace& right);

}  // namespace stepcast::trace
