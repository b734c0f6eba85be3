// The parts of program/check, in the order they run. Each adds every problem it finds; a part may rely on the earlier
// ones having found none where its comment says so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "program/program.h"
#include "program/resolve.h"

namespace stepcast::program {

// Indices in range, sizes that can be computed, views inside buffers, argument types, groups and memberships that
// agree. Everything else relies on these.
void find_structure_problems(const Program& p, ProblemList& problems);

// Operands that fit their ops and names that are unique within each segment. Matching relies on it.
void find_operand_problems(const Program& p, ProblemList& problems);

// Sizes of the groups of each role that ranks of a rank program are in: by RankProgramId, then by RoleId; each size
// once, ascending. One size in most Programs.
using GroupSizes = std::vector<std::vector<std::vector<std::int64_t>>>;
GroupSizes group_sizes(const Program& p);

// Unique paths, one stream per channel and peer.
void find_form_problems(const Program& p, const std::vector<Resolution>& resolutions, const GroupSizes& sizes,
                        ProblemList& problems);

// Roles that a rank's ops or shards name and of which the rank is in no group.
void find_missing_memberships(const Program& p, ProblemList& problems);

// Ops with an index role whose number of parts is not the number of members. Relies on operands that fit.
void find_part_problems(const Program& p, const GroupSizes& sizes, ProblemList& problems);

// Shards that leave their parameter, their flat buffer or their buffer.
void find_shard_problems(const Program& p, const GroupSizes& sizes, ProblemList& problems);

// Reads of non-persistent buffers and temps that nothing wrote.
void find_unwritten_reads(const Program& p, ProblemList& problems);

// Written operands that share bytes with another operand of the same op.
void find_aliased_operands(const Program& p, ProblemList& problems);

// "rank program stage0, F.c0.m1.attn.qkv".
std::string describe_op(const Program& p, RankProgramId r, const Resolution& res, std::uint32_t op);
std::string path_of(const Program& p, RankProgramId r, const Resolution& res, std::uint32_t op);

}  // namespace stepcast::program
