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
  std::vector<program::RoleId> all_to_alls;  // roles of which a collective is one
};

RankUses rank_uses(const program::Program& p, const program::RankProgram& r);

}  // namespace stepcast::sim
