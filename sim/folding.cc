// Partition refinement: start from what a rank is by itself (rank program, device, timing indices, sizes and paths of
// its groups), then split classes by the classes of what they touch until nothing splits. Every split is forced, so the
// result is the coarsest equitable partition. A round is linear in group members and link users but for the sorting of
// each group whose members differ.
//
// Only what the rank's ops use counts: a role that is named by nothing but a data index splits no class. A message's
// path and links are looked at from the sender: a receiver's partner class implies them.
#include "sim/folding.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "sim/rank_uses.h"
#include "sim/row_numbers.h"

namespace stepcast::sim {
namespace {

using program::GroupId;
using program::RankId;
using program::RoleId;
using Row = std::vector<std::uint32_t>;

// Lists of numbers, one after the other.
template <class T>
struct Lists {
  std::vector<T> items;
  std::vector<std::uint32_t> begin{0};

  void close() { begin.push_back(static_cast<std::uint32_t>(items.size())); }
  std::span<const T> operator[](std::size_t i) const {
    return std::span(items).subspan(begin[i], begin[i + 1] - begin[i]);
  }
};

// Who passes a link: a group's collectives, or the `use`-th message of a rank.
struct LinkUser {
  LinkId link = 0;
  bool group = false;
  std::uint32_t who = 0;  // position among the groups in use, or rank
  std::uint32_t use = 0;
  std::int64_t weight = 0;
};

void append(Row& row, std::int64_t value) {
  row.push_back(static_cast<std::uint32_t>(value));
  row.push_back(static_cast<std::uint32_t>(static_cast<std::uint64_t>(value) >> 32));
}

// Members' classes with how often each occurs, ascending.
void append_multiset(Row& row, std::span<const RankId> members, const std::vector<std::uint32_t>& class_of,
                     Row& scratch) {
  scratch.clear();
  const std::uint32_t first = class_of[members.front().value];
  bool mixed = false;
  for (const RankId member : members) {
    scratch.push_back(class_of[member.value]);
    mixed = mixed || scratch.back() != first;
  }
  if (mixed) std::sort(scratch.begin(), scratch.end());
  for (std::size_t i = 0; i < scratch.size();) {
    std::size_t end = i + 1;
    while (end < scratch.size() && scratch[end] == scratch[i]) ++end;
    row.push_back(scratch[i]);
    row.push_back(static_cast<std::uint32_t>(end - i));
    i = end;
  }
}

class Refinement {
 public:
  Refinement(const program::Program& p, const CostModel& costs) : p_(p), costs_(costs), links_(costs.shared_links()) {
    for (const program::RankProgram& r : p.rank_programs) uses_.push_back(rank_uses(p, r));
    group_number_.assign(p.groups.size(), kNoClass);
    class_.reserve(p.ranks.size());
    for (std::uint32_t rank = 0; rank < p.ranks.size(); ++rank) add_rank(RankId(rank));
    group_class_.assign(groups_.size(), 0);
    sort_link_users();
    start_links();
  }

  void refine() {
    for (std::size_t before = 0; before != classes();) {
      before = classes();
      number_groups();
      number_ranks();
      number_links();
    }
  }

  // Every rank, group and link for itself.
  void separate() {
    std::iota(class_.begin(), class_.end(), 0U);
    std::iota(group_class_.begin(), group_class_.end(), 0U);
    std::uint32_t next = 0;
    for (std::uint32_t& c : link_class_) c = c == kNoClass ? kNoClass : next++;
  }

  Folding folding() const {
    Folding f;
    f.class_of_rank = class_;
    for (std::uint32_t rank = 0; rank < class_.size(); ++rank) {
      first_of(class_[rank], RankId(rank), f.representative, f.ranks);
    }
    f.class_of_group.assign(p_.groups.size(), kNoClass);
    for (std::uint32_t g = 0; g < groups_.size(); ++g) {
      f.class_of_group[groups_[g].value] = group_class_[g];
      if (group_class_[g] == f.group.size()) f.group_path.push_back(group_path_[g]);
      first_of(group_class_[g], groups_[g], f.group, f.groups);
    }
    f.group_loads.resize(f.group.size());
    for (LinkId link = 0; link < link_class_.size(); ++link) {
      if (link_class_[link] == kNoClass) continue;
      const bool is_new = link_class_[link] == f.link.size();
      first_of(link_class_[link], link, f.link, f.links);
      if (is_new) add_loads(link, f);
    }
    return f;
  }

 private:
  std::size_t classes() const { return class_count_ + group_class_count_ + link_class_count_; }

  template <class IdType>
  static void first_of(std::uint32_t number, IdType id, std::vector<IdType>& first, std::vector<std::int64_t>& count) {
    CHECK(number <= first.size(), number, first.size());
    if (number == first.size()) {
      first.push_back(id);
      count.push_back(0);
    }
    ++count[number];
  }

  // The part of a rank's signature that never changes, and whom it talks to.
  void add_rank(RankId rank) {
    const program::Rank& r = p_.ranks[rank];
    const RankUses& uses = uses_[r.program.value];
    row_.assign({r.program.value, costs_.device_class(r.device)});
    for (const RoleId role : uses.timing_indices) row_.push_back(program::membership(p_, rank, role).index);
    for (const RoleId role : uses.collectives) {
      const std::uint32_t group = used_group(program::membership(p_, rank, role).group);
      row_.push_back(group_path_[group]);
      groups_of_.items.push_back(group);
    }
    for (std::uint32_t use = 0; use < uses.messages.size(); ++use) {
      const program::P2pPart& part = uses.messages[use];
      const std::size_t size = p_.groups[program::membership(p_, rank, part.role).group].members.size();
      const RankId peer = program::peer_of(p_, rank, part);
      row_.push_back(static_cast<std::uint32_t>(size));
      peers_of_.items.push_back(peer.value);
      if (!part.send) continue;
      const std::array<std::int32_t, 2> pair{r.device, p_.ranks[peer].device};
      row_.push_back(costs_.path_class(pair));
      // In a group of two, next and previous are one rank: one lane, whose load counts once.
      const auto same_peer = [&](const program::P2pPart& before) {
        return before.send && before.role == part.role &&
               program::member_position(before.offset, static_cast<std::int64_t>(size)) ==
                   program::member_position(part.offset, static_cast<std::int64_t>(size));
      };
      const bool counted = std::any_of(uses.messages.begin(), uses.messages.begin() + use, same_peer);
      if (!links_.empty() && !counted) add_link_users(pair, Pattern::kMessage, {0, false, rank.value, use, 0});
    }
    groups_of_.close();
    peers_of_.close();
    class_.push_back(numbers_.number(row_));
    class_count_ = numbers_.count();
  }

  // A role whose members exchange parts all to all does nothing else over distance.
  Pattern pattern_of(RoleId role) const {
    const bool all_to_all = std::any_of(uses_.begin(), uses_.end(), [&](const RankUses& uses) {
      return std::find(uses.all_to_alls.begin(), uses.all_to_alls.end(), role) != uses.all_to_alls.end();
    });
    return all_to_all ? Pattern::kAllToAll : Pattern::kRing;
  }

  std::uint32_t used_group(GroupId id) {
    std::uint32_t& number = group_number_[id.value];
    if (number == kNoClass) {
      number = static_cast<std::uint32_t>(groups_.size());
      devices_.clear();
      for (const RankId member : p_.groups[id].members) devices_.push_back(p_.ranks[member].device);
      groups_.push_back(id);
      group_path_.push_back(costs_.path_class(devices_));
      if (!links_.empty()) add_link_users(devices_, pattern_of(p_.groups[id].role), {0, true, number, 0, 0});
    }
    return number;
  }

  void add_link_users(std::span<const std::int32_t> devices, Pattern pattern, LinkUser user) {
    crossings_.clear();
    costs_.append_crossings(devices, pattern, crossings_);
    for (const Crossing& crossing : crossings_) {
      CHECK(crossing.link < links_.size(), crossing.link, links_.size());
      user.link = crossing.link;
      user.weight = crossing.weight;
      link_users_.push_back(user);
    }
  }

  // By link; and by user, for the users' own signatures.
  void sort_link_users() {
    link_class_.assign(links_.size(), kNoClass);
    if (link_users_.empty()) return;
    std::stable_sort(link_users_.begin(), link_users_.end(),
                     [](const LinkUser& a, const LinkUser& b) { return a.link < b.link; });
    for (std::uint32_t i = 0; i < link_users_.size(); ++i) by_user_.push_back(i);
    const auto key = [&](std::uint32_t i) {
      const LinkUser& u = link_users_[i];
      return std::tuple(u.group, u.who, u.use, i);
    };
    std::sort(by_user_.begin(), by_user_.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    next_user_ = 0;
  }

  // Links start in one class per capacity: what passes them splits them later.
  void start_links() {
    std::map<Share, std::uint32_t> by_capacity;
    for (const LinkUser& user : link_users_) {
      const auto next = static_cast<std::uint32_t>(by_capacity.size());
      link_class_[user.link] = by_capacity.try_emplace(links_[user.link].capacity, next).first->second;
    }
  }

  // The links of one user, as (class, weight) in ascending order. Users are visited in the order of by_user_.
  void append_links(Row& row, bool group, std::uint32_t who) {
    while (next_user_ < by_user_.size()) {
      const LinkUser& user = link_users_[by_user_[next_user_]];
      if (user.group != group || user.who != who) return;
      const std::size_t first = next_user_;
      link_rows_.clear();
      while (next_user_ < by_user_.size()) {
        const LinkUser& same = link_users_[by_user_[next_user_]];
        if (same.group != group || same.who != who || same.use != link_users_[by_user_[first]].use) break;
        link_rows_.emplace_back(link_class_[same.link], same.weight);
        ++next_user_;
      }
      std::sort(link_rows_.begin(), link_rows_.end());
      row.push_back(static_cast<std::uint32_t>(link_rows_.size()));
      for (const auto& [link_class, weight] : link_rows_) {
        row.push_back(link_class);
        append(row, weight);
      }
    }
  }

  void number_groups() {
    numbers_.clear();
    // Messages come first in by_user_, groups after them.
    next_user_ = static_cast<std::size_t>(
        std::partition_point(by_user_.begin(), by_user_.end(), [&](std::uint32_t i) { return !link_users_[i].group; }) -
        by_user_.begin());
    for (std::uint32_t g = 0; g < groups_.size(); ++g) {
      row_.assign({p_.groups[groups_[g]].role.value, group_path_[g]});
      append_multiset(row_, p_.groups[groups_[g]].members, class_, scratch_);
      append_links(row_, true, g);
      group_class_[g] = numbers_.number(row_);
    }
    group_class_count_ = numbers_.count();
  }

  void number_ranks() {
    numbers_.clear();
    next_user_ = 0;
    next_class_.resize(class_.size());
    for (std::uint32_t rank = 0; rank < class_.size(); ++rank) {
      row_.assign(1, class_[rank]);
      for (const std::uint32_t group : groups_of_[rank]) row_.push_back(group_class_[group]);
      for (const std::uint32_t peer : peers_of_[rank]) row_.push_back(class_[peer]);
      append_links(row_, false, rank);
      next_class_[rank] = numbers_.number(row_);
    }
    class_.swap(next_class_);
    class_count_ = numbers_.count();
  }

  void number_links() {
    numbers_.clear();
    for (std::size_t i = 0; i < link_users_.size();) {
      const LinkId link = link_users_[i].link;
      users_.clear();
      for (; i < link_users_.size() && link_users_[i].link == link; ++i) {
        const LinkUser& u = link_users_[i];
        users_.emplace_back(u.group, u.group ? group_class_[u.who] : class_[u.who], u.use, u.weight);
      }
      std::sort(users_.begin(), users_.end());
      row_.clear();
      append(row_, links_[link].capacity);
      for (const auto& [group, who, use, weight] : users_) {
        row_.push_back((group ? 1U : 0U) + 2 * use);
        row_.push_back(who);
        append(row_, weight);
      }
      link_class_[link] = numbers_.number(row_);
    }
    link_class_count_ = numbers_.count();
  }

  // What passes `link`, the first of its class, added up by class of user.
  void add_loads(LinkId link, Folding& f) const {
    const std::uint32_t link_class = link_class_[link];
    const auto add = [&](std::vector<LinkLoad>& loads, std::int64_t weight) {
      if (loads.empty() || loads.back().link_class != link_class) loads.push_back({link_class, 0});
      loads.back().weight += weight;
    };
    const auto begin =
        std::partition_point(link_users_.begin(), link_users_.end(), [&](const LinkUser& u) { return u.link < link; });
    for (auto u = begin; u != link_users_.end() && u->link == link; ++u) {
      if (u->group) {
        add(f.group_loads[group_class_[u->who]], u->weight);
        continue;
      }
      const program::P2pPart& part = uses_[p_.ranks[RankId(u->who)].program.value].messages[u->use];
      const auto size =
          static_cast<std::int64_t>(p_.groups[program::membership(p_, RankId(u->who), part.role).group].members.size());
      add(f.message_loads[MessageLane{class_[u->who], part.role, program::member_position(part.offset, size)}],
          u->weight);
    }
  }

  const program::Program& p_;
  const CostModel& costs_;
  std::span<const SharedLink> links_;
  std::vector<RankUses> uses_;      // by rank program
  Lists<std::uint32_t> groups_of_;  // by rank: groups of its collectives, one per role, as positions in groups_
  Lists<std::uint32_t> peers_of_;   // by rank: peers, one per use
  std::vector<std::uint32_t> group_number_;  // by GroupId: position in groups_
  std::vector<GroupId> groups_;              // in use, by first user
  std::vector<PathClass> group_path_;        // as groups_, like the next
  std::vector<std::uint32_t> group_class_;
  std::vector<std::uint32_t> class_;  // by rank
  std::vector<std::uint32_t> next_class_;
  std::vector<std::uint32_t> link_class_;  // by LinkId; kNoClass: not in use
  std::vector<LinkUser> link_users_;       // by link
  std::vector<std::uint32_t> by_user_;     // positions in link_users_: by rank and use, then by group
  std::size_t class_count_ = 0;
  std::size_t group_class_count_ = 0;
  std::size_t link_class_count_ = 0;

  // Scratch.
  RowNumbers numbers_;
  Row row_;
  Row scratch_;
  std::vector<std::int32_t> devices_;
  std::vector<Crossing> crossings_;
  std::vector<std::pair<std::uint32_t, std::int64_t>> link_rows_;
  std::vector<std::tuple<bool, std::uint32_t, std::uint32_t, std::int64_t>> users_;
  std::size_t next_user_ = 0;
};

}  // namespace

Folding fold(const program::CheckedProgram& p, const CostModel& costs) {
  Refinement refinement(p.program(), costs);
  refinement.refine();
  return refinement.folding();
}

Folding no_fold(const program::CheckedProgram& p, const CostModel& costs) {
  Refinement refinement(p.program(), costs);
  refinement.separate();
  return refinement.folding();
}

}  // namespace stepcast::sim
