// See paced_link.h.
#include "exec/paced_link.h"

#include "base/check.h"

namespace stepcast::exec {

Bytes ring_bytes(program::OpKind kind, Bytes message, std::int64_t members) {
  CHECK(members >= 1, members);
  if (program::is_p2p(kind)) return message;
  if (members == 1) return Bytes(0);
  if (kind == program::OpKind::kBroadcast) return message;
  const std::int64_t passes = kind == program::OpKind::kAllReduce ? 2 : 1;
  const Bytes steps = message * (passes * (members - 1));
  return Bytes((steps.count + members - 1) / members);
}

Duration paced_time(const std::optional<PacedLink>& link, program::OpKind kind, Bytes message, std::int64_t members) {
  if (!link || (members == 1 && !program::is_p2p(kind))) return Duration(0);
  return link->latency + duration_of(ring_bytes(kind, message, members), link->bandwidth);
}

}  // namespace stepcast::exec
