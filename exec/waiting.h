// Who waits for whom, read off the boards of all ranks from outside. The n-th op of a group and channel is one
// collective, the n-th send from a to b matches the n-th receive (communicator.h), so that a member has arrived when
// its stream has come as far as that op.
//
// Boards change while they are read: what is said of ranks that do not move is true, the rest is a guess of a moment.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "exec/status.h"

namespace stepcast::exec {

class Waiting {
 public:
  // `board` gives null for a rank that cannot be seen from here; it counts as not arrived.
  Waiting(const program::CheckedProgram& checked, std::function<const StatusBoard*(program::RankId)> board)
      : checked_(checked), board_(std::move(board)) {}

  // The ranks without which communication op `op` of `rank`, which is under way, cannot end.
  std::vector<program::RankId> awaited(program::RankId rank, std::uint32_t op) const;
  // Of everything that the rank waits for now: its streams, and its host before a step. Each one once.
  std::vector<program::RankId> awaited(program::RankId rank) const;

  // The rank that `waiter` waits for in the end: the nearest one, over any number of others that wait themselves, that
  // runs a kernel or waits for nobody. Of those only one that `stuck` says yes to. None where all wait for each other,
  // or where all that hold others still move.
  std::optional<program::RankId> holder(program::RankId waiter,
                                        const std::function<bool(program::RankId)>& stuck) const;

  // status_line() of a rank that can be seen.
  std::string line(program::RankId rank) const;
  // What the rank is at, in a word: its kernel, else what it waits in or holds, else what its host issues;
  // "F.m0.tp.up".
  std::string current_call(program::RankId rank) const;

 private:
  struct Meeting;  // what both sides of an op agree on

  std::vector<Meeting> meetings_of(program::RankId rank, std::uint32_t op) const;
  bool arrived(program::RankId member, const Meeting& meeting, std::uint64_t step) const;
  bool runs_kernel(program::RankId rank) const;

  const program::CheckedProgram& checked_;
  std::function<const StatusBoard*(program::RankId)> board_;
};

}  // namespace stepcast::exec
