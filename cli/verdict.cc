// See verdict.h.
#include "cli/verdict.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace stepcast::cli {
namespace {

std::uint64_t packed(const exec::StatusWord::Value& word) {
  return std::uint64_t{word.phase} << 56 | std::uint64_t{word.op} << 28 | word.other;
}

// The rank with the least positive `when`.
template <class When>
std::optional<std::size_t> earliest(const std::vector<RankSight>& ranks, When when) {
  std::optional<std::size_t> found;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::int64_t at = when(ranks[i]);
    if (at <= 0 || at >= least) continue;
    least = at;
    found = i;
  }
  return found;
}

}  // namespace

std::optional<Cause> cause_seen(const std::vector<RankSight>& ranks, double patience_s) {
  const auto died = std::find_if(ranks.begin(), ranks.end(), [](const RankSight& r) {
    return r.started && r.process == ProcessState::kGone && !r.ended_well && r.failed_at == 0 && r.terminated_at == 0;
  });
  if (died != ranks.end()) return Cause{static_cast<std::size_t>(died - ranks.begin()), CauseKind::kDied, {}};
  if (const auto rank = earliest(ranks, [](const RankSight& r) { return r.failed_at; })) {
    return Cause{*rank, CauseKind::kFailed, {}};
  }
  if (const auto rank = earliest(ranks, [](const RankSight& r) { return r.terminated_at; })) {
    return Cause{*rank, CauseKind::kTerminated, {}};
  }
  const auto stopped = std::find_if(ranks.begin(), ranks.end(), [patience_s](const RankSight& r) {
    return r.process == ProcessState::kStopped && r.stopped_s >= patience_s;
  });
  if (stopped != ranks.end()) return Cause{static_cast<std::size_t>(stopped - ranks.begin()), CauseKind::kStopped, {}};
  return std::nullopt;
}

StallWatch::StallWatch(const program::CheckedProgram& program, std::vector<const exec::RankSlot*> slots,
                       double timeout_s)
    : slots_(std::move(slots)),
      all_seen_(std::find(slots_.begin(), slots_.end(), nullptr) == slots_.end()),
      timeout_s_(timeout_s),
      times_(slots_.size()),
      waiting_(program, [this](program::RankId rank) { return board(rank); }) {}

const exec::StatusBoard* StallWatch::board(program::RankId rank) const {
  return slots_[rank.value] == nullptr ? nullptr : &slots_[rank.value]->board;
}

void StallWatch::Since::see(std::uint64_t new_step, std::uint64_t new_value, double now_s) {
  if (new_step == step && new_value == value) return;
  *this = {new_step, new_value, now_s};
}

// Of ranks that can be seen, one that never came.
std::optional<Cause> StallWatch::missing(double now_s) const {
  if (now_s < start_timeout_s()) return std::nullopt;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i] != nullptr && slots_[i]->pid.load() == 0) return Cause{i, CauseKind::kNotStarted, {}};
  }
  return std::nullopt;
}

bool StallWatch::waits_too_long(std::size_t rank, double now_s) {
  const exec::StatusBoard& board = slots_[rank]->board;
  RankTimes& times = times_[rank];
  const std::uint64_t step = board.step();
  times.progress.see(step, board.completed(), now_s);
  times.host.see(step, packed(board.host()), now_s);
  const bool meets = static_cast<exec::HostPhase>(board.host().phase) == exec::HostPhase::kMeeting;
  bool too_long = all_seen_ && meets && now_s - times.host.seconds >= timeout_s_;
  for (std::size_t s = 0; s < times.streams.size(); ++s) {
    const exec::StatusWord::Value word = board.stream(static_cast<program::Stream>(s));
    times.streams[s].see(step, packed(word), now_s);
    const bool waits = static_cast<exec::StreamPhase>(word.phase) == exec::StreamPhase::kWaitingPeers;
    too_long = too_long || (waits && now_s - times.streams[s].seconds >= timeout_s_);
  }
  return too_long;
}

// A rank that cannot be seen is judged by the one that waits for it.
bool StallWatch::stuck(program::RankId rank, double now_s) const {
  const exec::RankSlot* slot = slots_[rank.value];
  if (slot == nullptr) return true;
  return !slot->aside.load() && !slot->ended_well.load() && now_s - times_[rank.value].progress.seconds >= timeout_s_;
}

std::optional<Cause> StallWatch::look(double now_s) {
  std::vector<std::size_t> waiters;
  for (std::size_t rank = 0; rank < slots_.size(); ++rank) {
    if (slots_[rank] != nullptr && waits_too_long(rank, now_s)) waiters.push_back(rank);
  }
  for (const std::size_t rank : waiters) {
    const program::RankId waiter(rank);
    // Where others cannot be seen, they may well move: a rank that itself moves is not held up for good.
    if (!all_seen_ && !stuck(waiter, now_s)) continue;
    const auto culprit = waiting_.holder(waiter, [&](program::RankId r) { return stuck(r, now_s); });
    if (culprit) return Cause{culprit->value, CauseKind::kHolds, rank};
  }
  return missing(now_s);
}

}  // namespace stepcast::cli
