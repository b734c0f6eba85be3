// Looks at each segment once, however often it is called.
#include "sim/rank_uses.h"

#include <set>
#include <tuple>

namespace stepcast::sim {

RankUses rank_uses(const program::Program& p, const program::RankProgram& r) {
  using program::RoleId;
  std::vector<bool> called(p.segments.size());
  for (const program::Call& call : r.calls) called[call.segment.value] = true;
  std::set<RoleId> collectives;
  std::set<RoleId> timing;
  std::set<RoleId> all_to_alls;
  std::set<std::tuple<RoleId, std::int32_t, bool>> messages;
  for (std::uint32_t s = 0; s < called.size(); ++s) {
    if (!called[s]) continue;
    for (const program::Op& op : p.segments[program::SegmentId(s)].ops) {
      if (program::is_collective(op.kind)) collectives.insert(op.group.value());
      if (op.kind == program::OpKind::kAllToAll) all_to_alls.insert(op.group.value());
      if (op.timing_index && op.index_role) timing.insert(*op.index_role);
      for (const program::P2pPart& part : op.parts) messages.emplace(part.role, part.offset, part.send);
    }
  }
  RankUses uses{{collectives.begin(), collectives.end()},
                {},
                {timing.begin(), timing.end()},
                {all_to_alls.begin(), all_to_alls.end()}};
  for (const auto& [role, offset, send] : messages) {
    uses.messages.push_back(program::P2pPart{0, send, role, offset, program::Channel::kMain});
  }
  return uses;
}

}  // namespace stepcast::sim
