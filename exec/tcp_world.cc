// See tcp_world.h.
#include "exec/tcp_world.h"

#include <poll.h>
#include <unistd.h>

#include "base/error.h"

namespace stepcast::exec {
namespace {

std::vector<Socket> meet(const Meeting& meeting) {
  if (meeting.self.rank == 0) return meet_as_first(meeting, listen_at(meeting.self.port));
  std::vector<Socket> peers;
  peers.push_back(meet_as_other(meeting));
  return peers;
}

}  // namespace

TcpWorld::TcpWorld(const Meeting& meeting) : self_(meeting.self), peers_(meet(meeting)) {}

TcpWorld::TcpWorld(const Meeting& meeting, const Socket& listener)
    : self_(meeting.self), peers_(meet_as_first(meeting, listener)) {}

std::shared_ptr<Communicators> TcpWorld::communicators(const program::Program&) {
  throw Error(ErrorKind::kUnsupported, "ranks that " + self_.launcher + " starts exchange tensors through NCCL alone",
              {}, {"--backend cuda", "mpirun, for --backend cpu"});
}

void TcpWorld::fail(int peer, const std::optional<Frame>& frame) {
  const std::string name = "rank " + std::to_string(peer);
  if (!frame) {
    throw Error(ErrorKind::kExecution, name + " has ended, or its host is not reached any more", {},
                {"what it said last"});
  }
  if (frame->kind == FrameKind::kEnd) {
    throw Error(ErrorKind::kExecution, frame->bytes.substr(0, 100) + " has ended the job", {}, {"what it said last"});
  }
  throw Error(ErrorKind::kExecution, name + " is at another call than rank " + std::to_string(self_.rank), {},
              {"the same stepcast and arguments on every host"});
}

// Of whoever comes first: a rank that has ended is noticed while others are waited for.
std::vector<std::string> TcpWorld::gather_here(const std::string& bytes) {
  std::vector<std::string> all(peers_.size());
  all[0] = bytes;
  std::vector<pollfd> wanted;
  std::vector<std::size_t> ranks;
  for (std::size_t rank = 1; rank < peers_.size(); ++rank) {
    wanted.push_back({peers_[rank].fd(), POLLIN, 0});
    ranks.push_back(rank);
  }
  while (!wanted.empty()) {
    ::poll(wanted.data(), wanted.size(), -1);
    for (std::size_t i = wanted.size(); i-- > 0;) {
      if (wanted[i].revents == 0) continue;
      std::optional<Frame> frame = receive_frame(peers_[ranks[i]]);
      if (!frame || frame->kind != FrameKind::kGather) fail(static_cast<int>(ranks[i]), frame);
      all[ranks[i]] = std::move(frame->bytes);
      wanted.erase(wanted.begin() + static_cast<std::ptrdiff_t>(i));
      ranks.erase(ranks.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return all;
}

std::vector<std::string> TcpWorld::gather(const std::string& bytes) {
  if (rank() == 0) return gather_here(bytes);
  if (!send_frame(first(), FrameKind::kGather, bytes)) {
    // What rank 0 said before it went may still be there.
    fail(0, receive_frame(first()));
  }
  return {};
}

std::string TcpWorld::broadcast(const std::string& bytes) {
  if (rank() != 0) {
    std::optional<Frame> frame = receive_frame(first());
    if (!frame || frame->kind != FrameKind::kBroadcast) fail(0, frame);
    return std::move(frame->bytes);
  }
  for (std::size_t peer = 1; peer < peers_.size(); ++peer) {
    if (!send_frame(peers_[peer], FrameKind::kBroadcast, bytes)) {
      fail(static_cast<int>(peer), receive_frame(peers_[peer]));
    }
  }
  return bytes;
}

void TcpWorld::barrier() {
  gather("");
  broadcast("");
}

void TcpWorld::end_all(int code) {
  for (const Socket& peer : peers_) {
    if (peer.is_open()) send_frame(peer, FrameKind::kEnd, "rank " + std::to_string(rank()));
  }
  ::_exit(code);
}

}  // namespace stepcast::exec
