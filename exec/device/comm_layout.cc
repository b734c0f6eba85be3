// See comm_layout.h.
#include "exec/device/comm_layout.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/check.h"

namespace stepcast::exec {
namespace {

// Sets of links, joined pair by pair; a set is named by its smallest member.
class LinkSets {
 public:
  explicit LinkSets(std::size_t links) : parent_(links) { std::iota(parent_.begin(), parent_.end(), std::size_t{0}); }

  std::size_t find(std::size_t link) const {
    while (parent_[link] != link) link = parent_[link];
    return link;
  }
  void join(std::size_t a, std::size_t b) {
    a = find(a);
    b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> parent_;
};

}  // namespace

Link link_of(const program::Program& p, program::RankId rank, const program::P2pPart& part) {
  const program::RankId peer = peer_of(p, rank, part);
  const program::GroupId group = program::membership(p, rank, part.role).group;
  return part.send ? Link{group, rank, peer, part.channel} : Link{group, peer, rank, part.channel};
}

CommLayout::CommLayout(const program::Program& p) {
  for (std::size_t i = 0; i < p.ranks.size(); ++i) {
    const program::RankId rank(i);
    const program::RankProgram& r = p.rank_programs[p.ranks[rank].program];
    std::set<program::SegmentId> seen;
    for (const program::Call& call : r.calls) {
      if (!seen.insert(call.segment).second) continue;
      for (const program::Op& op : p.segments[call.segment].ops) add_op(p, rank, op);
    }
  }
  for (auto& [key, number] : collectives_) {
    number = static_cast<std::uint32_t>(members_.size());
    members_.push_back(p.groups[std::get<program::GroupId>(key)].members);
  }
  number_links();
}

void CommLayout::add_op(const program::Program& p, program::RankId rank, const program::Op& op) {
  if (program::is_collective(op.kind)) {
    collectives_[{program::membership(p, rank, *op.group).group, op.channel}] = 0;
  }
  std::vector<Link> together;
  for (const program::P2pPart& part : op.parts) {
    together.push_back(link_of(p, rank, part));
    links_[together.back()] = 0;
  }
  if (together.size() > 1) joined_.push_back(std::move(together));
}

void CommLayout::number_links() {
  std::vector<Link> all;
  for (const auto& [link, number] : links_) all.push_back(link);
  const auto index = [&](const Link& link) {
    return static_cast<std::size_t>(std::lower_bound(all.begin(), all.end(), link) - all.begin());
  };
  LinkSets sets(all.size());
  for (const std::vector<Link>& together : joined_) {
    for (const Link& link : together) sets.join(index(together.front()), index(link));
  }
  std::map<std::size_t, std::uint32_t> number_of;  // by set
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto next = static_cast<std::uint32_t>(members_.size());
    const auto [at, fresh] = number_of.emplace(sets.find(i), next);
    if (fresh) members_.emplace_back();
    links_[all[i]] = at->second;
    std::vector<program::RankId>& members = members_[at->second];
    members.push_back(all[i].from);
    members.push_back(all[i].to);
  }
  for (const auto& [set, number] : number_of) {
    std::vector<program::RankId>& members = members_[number];
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
  }
}

std::uint32_t CommLayout::of_collective(program::GroupId group, program::Channel channel) const {
  const auto at = collectives_.find({group, channel});
  CHECK(at != collectives_.end(), group.value, static_cast<int>(channel));
  return at->second;
}

std::uint32_t CommLayout::of_link(const Link& link) const {
  const auto at = links_.find(link);
  CHECK(at != links_.end(), link.group.value, link.from.value, link.to.value);
  return at->second;
}

std::size_t CommLayout::position(std::uint32_t communicator, program::RankId rank) const {
  const std::vector<program::RankId>& members = members_[communicator];
  const auto at = std::find(members.begin(), members.end(), rank);
  CHECK(at != members.end(), communicator, rank.value);
  return static_cast<std::size_t>(at - members.begin());
}

}  // namespace stepcast::exec
