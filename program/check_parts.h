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

// Whether the calls of the rank programs are many enough to share them out among threads.
bool is_large(const Program& p);

// Indices in range, sizes that can be computed, views inside buffers, argument types, groups and memberships that
// agree. Everything else relies on these.
void find_structure_problems(const Program& p, ProblemList& problems);

// Operands that fit their ops and names that are unique within each segment. Matching relies on it.
void find_operand_problems(const Program& p, ProblemList& problems);

// All groups of one role whose members run these programs. What is asked of groups is a function of those programs, so
// that groups alike are judged once.
struct GroupClass {
  RoleId role;
  std::vector<RankProgramId> members;
  std::vector<std::uint32_t> distinct;  // the first member of each program, ascending
  std::vector<GroupId> groups;
};
std::vector<GroupClass> classify_groups(const Program& p);

// Sizes of the groups of each role that ranks of a rank program are in: by RankProgramId, then by RoleId; each size
// once, ascending. One size in most Programs.
using GroupSizes = std::vector<std::vector<std::vector<std::int64_t>>>;
GroupSizes group_sizes(const Program& p, const std::vector<GroupClass>& classes);

// Roles that a rank's ops or shards name and of which the rank is in no group.
void find_missing_memberships(const Program& p, ProblemList& problems);

// Reads of temps that nothing wrote, segment by segment.
void find_unwritten_temps(const Program& p, ProblemList& problems);

// Tensors of whose rows some ops use one member's part and others bytes that do not go with it.
void find_mixed_row_parts(const Program& p, ProblemList& problems);

// Ops with an index role whose number of parts is not the number of members. Relies on operands that fit.
void find_part_problems(const Program& p, const GroupSizes& sizes, ProblemList& problems);

// The rest looks at one rank program alone.

// Unique paths, one stream per channel and peer.
void find_form_problems(const Program& p, RankProgramId r, const Resolution& res, const GroupSizes& sizes,
                        ProblemList& problems);

// Shards that leave their parameter, their flat buffer or their buffer.
void find_shard_problems(const Program& p, RankProgramId r, const GroupSizes& sizes, ProblemList& problems);

// Reads of non-persistent buffers that nothing wrote.
void find_unwritten_reads(const Program& p, RankProgramId r, ProblemList& problems);

// Written operands that share bytes with another operand of the same op.
void find_aliased_operands(const Program& p, RankProgramId r, ProblemList& problems);

// "rank program stage0, F.c0.m1.attn.qkv".
std::string describe_op(const Program& p, RankProgramId r, const Resolution& res, std::uint32_t op);
std::string path_of(const Program& p, RankProgramId r, const Resolution& res, std::uint32_t op);

}  // namespace stepcast::program
