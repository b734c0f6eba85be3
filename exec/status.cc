// See status.h.
#include "exec/status.h"

#include <vector>

namespace stepcast::exec {
namespace {

std::string ranks_text(const std::vector<program::RankId>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(ranks[i].value);
  return text;
}

// Ranks that a communication op waits for: those that a collective misses; all partners of messages.
std::vector<program::RankId> awaited(const program::Program& p, program::RankId rank, const program::Op& op,
                                     Communicators& communicators) {
  if (program::is_collective(op.kind)) {
    return communicators.collective(program::membership(p, rank, *op.group).group, op.channel).missing();
  }
  std::vector<program::RankId> peers;
  for (const program::P2pPart& part : op.parts) {
    const program::RankId peer = peer_of(p, rank, part);
    if (peers.empty() || peers.back() != peer) peers.push_back(peer);
  }
  return peers;
}

std::string host_text(const program::CheckedProgram& checked, program::RankId rank, const StatusWord::Value& host) {
  switch (static_cast<HostPhase>(host.phase)) {
    case HostPhase::kIdle:
      return "host idle";
    case HostPhase::kIssuing:
      return "host issues " + path_of(checked, rank, host.op);
    case HostPhase::kBlocked:
      return "host blocked in " + path_of(checked, rank, host.op);
    case HostPhase::kFinished:
      return "host finished";
    case HostPhase::kMeeting:
      return "host waits for all ranks to begin the step";
  }
  return "";
}

std::string stream_text(const program::CheckedProgram& checked, program::RankId rank, const StatusWord::Value& at,
                        const AwaitedRanks& awaited_by) {
  const program::Program& p = checked.program();
  const program::RankProgramId id = p.ranks[rank].program;
  const std::string path = path_of(checked, rank, at.op);
  switch (static_cast<StreamPhase>(at.phase)) {
    case StreamPhase::kIdle:
      return "";
    case StreamPhase::kWaitingEdge:
      return "holds " + path + " until " + path_of(checked, rank, at.other);
    case StreamPhase::kRunning:
      return "runs " + path;
    case StreamPhase::kTransferring:
      return "transfers in " + path;
    case StreamPhase::kWaitingPeers: {
      const program::Op& op = program::op_at(p, p.rank_programs[id], checked.resolution(id), at.op);
      const std::vector<program::RankId> ranks = awaited_by(op, at.op);
      return "in " + path + (ranks.empty() ? " communicates" : " waits for " + ranks_text(ranks));
    }
  }
  return "";
}

}  // namespace

std::string path_of(const program::CheckedProgram& checked, program::RankId rank, std::uint32_t op) {
  const program::Program& p = checked.program();
  const program::RankProgramId id = p.ranks[rank].program;
  const program::Resolution& res = checked.resolution(id);
  if (op >= res.op_count()) return "the start";
  return program::op_path(p, p.rank_programs[id], res.call_of[op], op - res.first_op[res.call_of[op]]);
}

std::string status_line(const program::CheckedProgram& checked, program::RankId rank, const StatusBoard& board,
                        const AwaitedRanks& awaited_by) {
  std::string line = "rank " + std::to_string(rank.value) + ": " + host_text(checked, rank, board.host());
  for (int s = 0; s < program::kStreamCount; ++s) {
    const auto stream = static_cast<program::Stream>(s);
    const std::string text = stream_text(checked, rank, board.stream(stream), awaited_by);
    if (!text.empty()) line += "; " + std::string(program::to_string(stream)) + " " + text;
  }
  return line;
}

std::string status_line(const program::CheckedProgram& checked, program::RankId rank, const StatusBoard& board,
                        Communicators& communicators) {
  return status_line(checked, rank, board, [&](const program::Op& op, std::uint32_t) {
    return awaited(checked.program(), rank, op, communicators);
  });
}

}  // namespace stepcast::exec
