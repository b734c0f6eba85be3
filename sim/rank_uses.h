// What the ops of one rank program communicate with.
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.h"

namespace stepcast::sim {

struct RankUses {
  std::vector<program::RoleId> collectives;
  std::vector<program::P2pPart> messages;  // distinct in role, offset and direction; operand and channel mean nothing
  std::vector<program::RoleId> timing_indices;
};

RankUses rank_uses(const program::Program& p, const program::RankProgram& r);

// The offset of a message's peer as 0 <= offset < size of the role's group.
inline std::int64_t forward_offset(std::int64_t offset, std::int64_t size) {
  const std::int64_t rest = offset % size;
  return rest < 0 ? rest + size : rest;
}

}  // namespace stepcast::sim
