// How long a transfer takes on a paced link: latency + ring bytes / bandwidth.
//
// Ring bytes are what a ring algorithm sends per member: all-reduce 2(n-1)/n of the buffer, all-gather and
// reduce-scatter (n-1)/n of the whole, broadcast and point to point all of it (the bus-bandwidth factors of nccl-tests,
// doc/PERFORMANCE.md). A single member sends nothing.
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"
#include "exec/executor.h"
#include "program/ops/op.h"

namespace stepcast::exec {

// Bytes each of `members` sends; `message` is the whole buffer. Rounded up. Zero for one member of a collective.
Bytes ring_bytes(program::OpKind kind, Bytes message, std::int64_t members);

// Zero without a link and for one member of a collective.
Duration paced_time(const std::optional<PacedLink>& link, program::OpKind kind, Bytes message, std::int64_t members);

}  // namespace stepcast::exec
