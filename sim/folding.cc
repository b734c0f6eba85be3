// Partition refinement: start from what a rank is by itself (rank program, device, timing indices, sizes and paths of
// its groups), then split classes by the classes of those it communicates with until nothing splits. Every split is
// forced, so the result is the coarsest equitable partition. A round is linear in group members but for the sorting of
// each group.
//
// Only what the rank's ops use counts: a role that is named by nothing but a data index splits no class.
#include "sim/folding.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "base/check.h"

namespace stepcast::sim {
namespace {

using program::RankId;
using program::RoleId;

// What the ops of one rank program use.
struct Uses {
  std::vector<RoleId> collectives;
  std::vector<program::P2pPart> messages;  // distinct in role, offset and direction
  std::vector<RoleId> timing_indices;
};

Uses uses_of(const program::Program& p, const program::RankProgram& r) {
  std::set<program::SegmentId> segments;
  for (const program::Call& call : r.calls) segments.insert(call.segment);
  std::set<RoleId> collectives;
  std::set<RoleId> timing;
  std::set<std::tuple<RoleId, std::int32_t, bool>> messages;
  for (const program::SegmentId s : segments) {
    for (const program::Op& op : p.segments[s].ops) {
      if (program::is_collective(op.kind)) collectives.insert(op.group.value());
      if (op.timing_index && op.index_role) timing.insert(*op.index_role);
      for (const program::P2pPart& part : op.parts) messages.emplace(part.role, part.offset, part.send);
    }
  }
  Uses uses{{collectives.begin(), collectives.end()}, {}, {timing.begin(), timing.end()}};
  for (const auto& [role, offset, send] : messages) {
    uses.messages.push_back(program::P2pPart{0, send, role, offset, program::Channel::kMain});
  }
  return uses;
}

// Rows of numbers of any length, one after the other.
struct Rows {
  std::vector<std::uint32_t> values;
  std::vector<std::size_t> begin{0};

  std::size_t count() const { return begin.size() - 1; }
  void close() { begin.push_back(values.size()); }
  bool equal(std::size_t a, std::size_t b) const {
    return std::equal(values.begin() + at(a), values.begin() + at(a + 1), values.begin() + at(b),
                      values.begin() + at(b + 1));
  }
  std::uint64_t hash(std::size_t row) const {
    std::uint64_t h = 14695981039346656037ULL;
    for (std::size_t i = begin[row]; i < begin[row + 1]; ++i) h = (h ^ values[i]) * 1099511628211ULL;
    return h;
  }

 private:
  std::ptrdiff_t at(std::size_t row) const { return static_cast<std::ptrdiff_t>(begin[row]); }
};

// Numbers the distinct rows by first occurrence. The hash only sorts; rows are compared whole.
std::vector<std::uint32_t> number_rows(const Rows& rows) {
  const std::size_t n = rows.count();
  std::vector<std::uint64_t> hash(n);
  for (std::size_t i = 0; i < n; ++i) hash[i] = rows.hash(i);
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return hash[a] != hash[b] ? hash[a] < hash[b] : a < b; });
  std::vector<std::size_t> first_equal(n);
  std::vector<std::size_t> distinct;  // first rows among those of the present hash
  for (std::size_t i = 0; i < n; ++i) {
    if (i == 0 || hash[order[i]] != hash[order[i - 1]]) distinct.clear();
    const auto same =
        std::find_if(distinct.begin(), distinct.end(), [&](std::size_t d) { return rows.equal(d, order[i]); });
    if (same == distinct.end()) {
      distinct.push_back(order[i]);
      first_equal[order[i]] = order[i];
    } else {
      first_equal[order[i]] = *same;
    }
  }
  std::vector<std::uint32_t> number(n);
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < n; ++i) number[i] = first_equal[i] == i ? next++ : number[first_equal[i]];
  return number;
}

class Refinement {
 public:
  Refinement(const program::Program& p, const CostModel& costs) : p_(p), costs_(costs) {
    for (const program::RankProgram& r : p.rank_programs) uses_.push_back(uses_of(p, r));
    for (std::uint32_t rank = 0; rank < p.ranks.size(); ++rank) add_rank(RankId(rank));
    class_ = number_rows(own_);
  }

  std::vector<std::uint32_t> run() {
    for (std::size_t before = 0; before != count();) {
      before = count();
      number_groups();
      class_ = number_rows(neighbours());
    }
    return std::move(class_);
  }

 private:
  std::size_t count() const {
    return class_.empty() ? 0 : std::size_t{1} + *std::max_element(class_.begin(), class_.end());
  }

  // The part of a rank's signature that never changes, and whom it talks to.
  void add_rank(RankId rank) {
    const program::Rank& r = p_.ranks[rank];
    const Uses& uses = uses_[r.program.value];
    own_.values.insert(own_.values.end(), {r.program.value, costs_.device_class(r.device)});
    for (const RoleId role : uses.timing_indices) own_.values.push_back(program::membership(p_, rank, role).index);
    for (const RoleId role : uses.collectives) {
      const std::size_t group = used_group(program::membership(p_, rank, role).group);
      own_.values.push_back(group_path_[group]);
      groups_.values.push_back(static_cast<std::uint32_t>(group));
    }
    for (const program::P2pPart& part : uses.messages) {
      const std::size_t size = p_.groups[program::membership(p_, rank, part.role).group].members.size();
      const RankId peer = program::peer_of(p_, rank, part);
      std::array<std::int32_t, 2> pair{r.device, p_.ranks[peer].device};
      if (!part.send) std::swap(pair[0], pair[1]);
      own_.values.insert(own_.values.end(), {static_cast<std::uint32_t>(size), costs_.path_class(pair)});
      peers_.values.push_back(peer.value);
    }
    own_.close();
    groups_.close();
    peers_.close();
  }

  std::size_t used_group(program::GroupId id) {
    if (group_number_.empty()) group_number_.resize(p_.groups.size());
    std::optional<std::size_t>& number = group_number_[id.value];
    if (!number) {
      number = group_path_.size();
      std::vector<std::int32_t> devices;
      for (const RankId member : p_.groups[id].members) devices.push_back(p_.ranks[member].device);
      group_path_.push_back(costs_.path_class(devices));
      used_groups_.push_back(id);
    }
    return *number;
  }

  // Groups with equal multisets of member classes get equal numbers.
  void number_groups() {
    Rows rows;
    for (const program::GroupId id : used_groups_) {
      const auto begin = static_cast<std::ptrdiff_t>(rows.values.size());
      for (const RankId member : p_.groups[id].members) rows.values.push_back(class_[member.value]);
      std::sort(rows.values.begin() + begin, rows.values.end());
      rows.close();
    }
    group_class_ = number_rows(rows);
  }

  Rows neighbours() const {
    Rows rows;
    for (std::size_t rank = 0; rank < class_.size(); ++rank) {
      rows.values.push_back(class_[rank]);
      for (std::size_t i = groups_.begin[rank]; i < groups_.begin[rank + 1]; ++i) {
        rows.values.push_back(group_class_[groups_.values[i]]);
      }
      for (std::size_t i = peers_.begin[rank]; i < peers_.begin[rank + 1]; ++i) {
        rows.values.push_back(class_[peers_.values[i]]);
      }
      rows.close();
    }
    return rows;
  }

  const program::Program& p_;
  const CostModel& costs_;
  std::vector<Uses> uses_;                                // by rank program
  Rows own_;                                              // by rank: its signature by itself
  Rows groups_;                                           // by rank: used groups of its collectives, one per role
  Rows peers_;                                            // by rank: peers, one per use
  std::vector<std::optional<std::size_t>> group_number_;  // by GroupId: position among the used groups
  std::vector<program::GroupId> used_groups_;
  std::vector<PathClass> group_path_;       // by used group
  std::vector<std::uint32_t> group_class_;  // by used group, of the present round
  std::vector<std::uint32_t> class_;        // by rank
};

Folding folding_of(std::vector<std::uint32_t> class_of_rank) {
  Folding folding{std::move(class_of_rank), {}, {}};
  for (std::size_t rank = 0; rank < folding.class_of_rank.size(); ++rank) {
    const std::uint32_t c = folding.class_of_rank[rank];
    CHECK(c <= folding.ranks.size(), c, folding.ranks.size());
    if (c == folding.ranks.size()) {
      folding.representative.push_back(RankId(rank));
      folding.ranks.push_back(0);
    }
    ++folding.ranks[c];
  }
  return folding;
}

}  // namespace

Folding fold(const program::CheckedProgram& p, const CostModel& costs) {
  return folding_of(Refinement(p.program(), costs).run());
}

Folding no_fold(const program::CheckedProgram& p) {
  std::vector<std::uint32_t> own_class(p.program().ranks.size());
  std::iota(own_class.begin(), own_class.end(), 0U);
  return folding_of(std::move(own_class));
}

}  // namespace stepcast::sim
