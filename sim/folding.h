// Exact folding: the coarsest equitable partition of ranks, groups and shared links, so that one representative per
// class is simulated and every other member of the class has the same times to the picosecond.
//
// Two ranks share a class when they have equal rank programs, device classes and timing indices, when for every role
// their groups share a class, and when for every message (role, offset) their peers share a class over equal paths and
// links of equal classes. Two groups share a class when they have one role, equal path classes and multisets of member
// classes, and pass links of equal classes. Two links share a class when they have equal capacities and are passed by
// equal multisets of groups and messages. Signatures are compared whole; a hash only sorts.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "program/check.h"
#include "sim/cost/cost.h"

namespace stepcast::sim {

inline constexpr std::uint32_t kNoClass = std::numeric_limits<std::uint32_t>::max();

// What all transfers of one class put on one link of a class, when all of them run: `weight` / kWeightUnit times what
// passes one member's NIC in one of them.
struct LinkLoad {
  std::uint32_t link_class = 0;
  std::int64_t weight = 0;
  bool operator==(const LinkLoad&) const = default;
};

// Messages of one class of senders to one relative member of a role.
struct MessageLane {
  std::uint32_t sender_class = 0;
  program::RoleId role;
  std::int64_t offset = 0;  // 0 <= offset < group size
  auto operator<=>(const MessageLane&) const = default;
};

struct Folding {
  std::vector<std::uint32_t> class_of_rank;     // by RankId; classes numbered by their first rank
  std::vector<program::RankId> representative;  // by class: its first rank
  std::vector<std::int64_t> ranks;              // by class

  std::vector<std::uint32_t> class_of_group;  // by GroupId; kNoClass where no collective uses the group
  std::vector<program::GroupId> group;        // by group class: its first group
  std::vector<PathClass> group_path;          // by group class
  std::vector<std::int64_t> groups;           // by group class

  std::vector<LinkId> link;                                    // by link class: its first link
  std::vector<std::int64_t> links;                             // by link class
  std::vector<std::vector<LinkLoad>> group_loads;              // by group class; ascending link classes
  std::map<MessageLane, std::vector<LinkLoad>> message_loads;  // lanes that pass shared links only
};

Folding fold(const program::CheckedProgram& p, const CostModel& costs);
// Every rank, every group in use and every link in use its own class.
Folding no_fold(const program::CheckedProgram& p, const CostModel& costs);

}  // namespace stepcast::sim
