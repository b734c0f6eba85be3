// The processes that torchrun or srun has started, over plain sockets: rank 0 in the middle, one connection to each
// other. It carries what ranks tell each other around a run: the plan's fingerprint, NCCL's ids, losses, traces.
// Tensors do not pass here.
#pragma once

#include <optional>
#include <vector>

#include "exec/tcp_meeting.h"
#include "exec/world.h"

namespace stepcast::exec {

class TcpWorld : public World {
 public:
  // Meets the others: tcp_meeting.h says what may fail.
  explicit TcpWorld(const Meeting& meeting);
  // The same with a listener that is there already: rank 0 alone.
  TcpWorld(const Meeting& meeting, const Socket& listener);

  int rank() const override { return self_.rank; }
  int size() const override { return self_.size; }
  // Ranks on GPUs share no cores' time worth planning.
  HostPlace place() const override { return {}; }
  const LaunchedRank& self() const { return self_; }
  // Throws Error (kUnsupported): tensors go through NCCL or MPI.
  std::shared_ptr<Communicators> communicators(const program::Program& p) override;
  // All three throw Error (kExecution) naming the rank that has ended, or that has ended all.
  std::vector<std::string> gather(const std::string& bytes) override;
  std::string broadcast(const std::string& bytes) override;
  // Returns when all have called it.
  void barrier();
  // Tells the others, who learn it at their next call, and ends this process.
  void end_all(int code) override;

 private:
  std::vector<std::string> gather_here(const std::string& bytes);
  const Socket& first() const { return peers_[0]; }
  [[noreturn]] void fail(int peer, const std::optional<Frame>& frame);

  LaunchedRank self_;
  std::vector<Socket> peers_;  // of rank 0 by rank; of another one, rank 0 alone
};

}  // namespace stepcast::exec
