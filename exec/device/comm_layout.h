// Which communicators of a library like NCCL a Program needs, and which of them each op uses.
//
// A collective's (group, channel) has one, its members in the group's order. So has a link, the messages from one rank
// to another on (group, channel): a direction of its own, as the two directions of a pair are on different streams.
// Links that one exchange joins share one instead: the library runs messages at once only in one communicator, and a
// ring whose messages wait for each other never ends. Ranks make their communicators in the order of their numbers, the
// same everywhere, so that no two wait for each other.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "program/program.h"

namespace stepcast::exec {

// Messages of one direction.
struct Link {
  program::GroupId group;
  program::RankId from;
  program::RankId to;
  program::Channel channel = program::Channel::kActivation;
  auto operator<=>(const Link&) const = default;
};

class CommLayout {
 public:
  explicit CommLayout(const program::Program& p);

  // By communicator: its members, whose positions are their ranks in it.
  const std::vector<std::vector<program::RankId>>& members() const { return members_; }
  std::uint32_t of_collective(program::GroupId group, program::Channel channel) const;
  std::uint32_t of_link(const Link& link) const;
  // All links, each with its communicator.
  const std::map<Link, std::uint32_t>& links() const { return links_; }
  // Position of a rank in a communicator that it is a member of.
  std::size_t position(std::uint32_t communicator, program::RankId rank) const;

 private:
  void add_op(const program::Program& p, program::RankId rank, const program::Op& op);
  void number_links();

  std::map<std::tuple<program::GroupId, program::Channel>, std::uint32_t> collectives_;
  std::map<Link, std::uint32_t> links_;
  std::vector<std::vector<Link>> joined_;  // by an exchange
  std::vector<std::vector<program::RankId>> members_;
};

// The link of one message of an op of `rank`.
Link link_of(const program::Program& p, program::RankId rank, const program::P2pPart& part);

}  // namespace stepcast::exec
