// See waiting.h. Nothing is kept: these questions are asked when a job has stopped moving.
#include "exec/waiting.h"

#include <algorithm>
#include <deque>
#include <set>

namespace stepcast::exec {

using program::RankId;

// The n-th (from 0) of its kind between its partners; of a message also its two ends.
struct Waiting::Meeting {
  program::GroupId group;
  program::Channel channel = program::Channel::kActivation;
  bool collective = true;
  RankId from;
  RankId to;
  std::size_t number = 0;
  std::vector<RankId> partners;

  bool same_place(const Meeting& o) const {
    return group == o.group && channel == o.channel && collective == o.collective && from == o.from && to == o.to;
  }
};

namespace {

struct Flat {
  const program::Program& p;
  const program::RankProgram& r;
  const program::Resolution& res;
  RankId rank;

  Flat(const program::CheckedProgram& checked, RankId id)
      : p(checked.program()),
        r(p.rank_programs[p.ranks[id].program]),
        res(checked.resolution(p.ranks[id].program)),
        rank(id) {}
  const program::Op& op(std::uint32_t at) const { return program::op_at(p, r, res, at); }
};

StreamPhase phase_of(const StatusWord::Value& at) { return static_cast<StreamPhase>(at.phase); }

// Calls found(stream, word) for the streams that are at something.
template <class Found>
void for_each_busy(const StatusBoard& board, Found found) {
  for (int s = 0; s < program::kStreamCount; ++s) {
    const StatusWord::Value at = board.stream(static_cast<program::Stream>(s));
    if (phase_of(at) != StreamPhase::kIdle) found(static_cast<program::Stream>(s), at);
  }
}

}  // namespace

// Of one op, not yet numbered.
std::vector<Waiting::Meeting> Waiting::meetings_of(RankId rank, std::uint32_t op) const {
  const Flat flat(checked_, rank);
  const program::Op& what = flat.op(op);
  std::vector<Meeting> meetings;
  if (program::is_collective(what.kind)) {
    Meeting m;
    m.group = program::membership(flat.p, rank, *what.group).group;
    m.channel = what.channel;
    for (const RankId member : flat.p.groups[m.group].members) {
      if (member != rank) m.partners.push_back(member);
    }
    meetings.push_back(std::move(m));
  }
  for (const program::P2pPart& part : what.parts) {
    const RankId peer = program::peer_of(flat.p, rank, part);
    meetings.push_back({.group = program::membership(flat.p, rank, part.role).group,
                        .channel = part.channel,
                        .collective = false,
                        .from = part.send ? rank : peer,
                        .to = part.send ? peer : rank,
                        .partners = {peer}});
  }
  return meetings;
}

// Whether `member` has come to its own op of the meeting in step `step`.
bool Waiting::arrived(RankId member, const Meeting& meeting, std::uint64_t step) const {
  const StatusBoard* board = board_(member);
  if (board == nullptr || board->step() != step) return board != nullptr && board->step() > step;
  const Flat flat(checked_, member);
  std::size_t seen = 0;
  for (std::uint32_t op = 0; op < flat.res.op_count(); ++op) {
    if (!program::is_communication(flat.op(op).kind)) continue;
    for (const Meeting& own : meetings_of(member, op)) {
      if (!own.same_place(meeting) || seen++ != meeting.number) continue;
      const StatusWord::Value at = board->stream(flat.op(op).stream);
      if (at.op != op) return at.op > op;
      // The word of a stream that has not begun is that of its first op, done.
      if (phase_of(at) == StreamPhase::kIdle) return board->completed() > 0;
      return phase_of(at) != StreamPhase::kWaitingEdge;
    }
  }
  return true;
}

std::vector<RankId> Waiting::awaited(RankId rank, std::uint32_t op) const {
  const StatusBoard* board = board_(rank);
  if (board == nullptr) return {};
  const Flat flat(checked_, rank);
  std::vector<RankId> ranks;
  for (Meeting& meeting : meetings_of(rank, op)) {
    for (std::uint32_t before = 0; before < op; ++before) {
      if (!program::is_communication(flat.op(before).kind)) continue;
      for (const Meeting& earlier : meetings_of(rank, before)) meeting.number += earlier.same_place(meeting) ? 1 : 0;
    }
    for (const RankId partner : meeting.partners) {
      const bool new_one = std::find(ranks.begin(), ranks.end(), partner) == ranks.end();
      if (new_one && !arrived(partner, meeting, board->step())) ranks.push_back(partner);
    }
  }
  return ranks;
}

std::vector<RankId> Waiting::awaited(RankId rank) const {
  const StatusBoard* board = board_(rank);
  if (board == nullptr) return {};
  std::vector<RankId> ranks;
  if (static_cast<HostPhase>(board->host().phase) == HostPhase::kMeeting) {
    for (std::size_t i = 0; i < checked_.program().ranks.size(); ++i) {
      const StatusBoard* other = board_(RankId(i));
      if (other == nullptr || other->step() < board->step()) ranks.push_back(RankId(i));
    }
    return ranks;
  }
  for_each_busy(*board, [&](program::Stream, const StatusWord::Value& at) {
    if (phase_of(at) != StreamPhase::kWaitingPeers) return;
    for (const RankId other : awaited(rank, at.op)) {
      if (std::find(ranks.begin(), ranks.end(), other) == ranks.end()) ranks.push_back(other);
    }
  });
  return ranks;
}

bool Waiting::runs_kernel(RankId rank) const {
  const StatusBoard* board = board_(rank);
  bool runs = false;
  if (board == nullptr) return runs;
  for_each_busy(*board, [&](program::Stream, const StatusWord::Value& at) {
    runs = runs || phase_of(at) == StreamPhase::kRunning;
  });
  return runs;
}

std::optional<RankId> Waiting::holder(RankId waiter, const std::function<bool(RankId)>& stuck) const {
  std::set<RankId> seen = {waiter};
  std::deque<RankId> queue = {waiter};
  while (!queue.empty()) {
    const RankId rank = queue.front();
    queue.pop_front();
    const std::vector<RankId> others = awaited(rank);
    const bool holds = rank != waiter && (others.empty() || runs_kernel(rank));
    if (holds && stuck(rank)) return rank;
    for (const RankId other : others) {
      if (seen.insert(other).second) queue.push_back(other);
    }
  }
  return std::nullopt;
}

std::string Waiting::line(RankId rank) const {
  return status_line(checked_, rank, *board_(rank),
                     [this, rank](const program::Op&, std::uint32_t op) { return awaited(rank, op); });
}

std::string Waiting::current_call(RankId rank) const {
  const StatusBoard* board = board_(rank);
  if (board == nullptr || board->step() == 0) return "";
  std::optional<std::uint32_t> call;
  StreamPhase best = StreamPhase::kIdle;
  for_each_busy(*board, [&](program::Stream, const StatusWord::Value& at) {
    const bool first = !call || (phase_of(at) == StreamPhase::kRunning && best != StreamPhase::kRunning) ||
                       (best == StreamPhase::kWaitingEdge && phase_of(at) != StreamPhase::kWaitingEdge);
    if (!first) return;
    call = at.op;
    best = phase_of(at);
  });
  const auto host = static_cast<HostPhase>(board->host().phase);
  if (!call && (host == HostPhase::kIssuing || host == HostPhase::kBlocked)) call = board->host().op;
  return call ? path_of(checked_, rank, *call) : "";
}

}  // namespace stepcast::exec
