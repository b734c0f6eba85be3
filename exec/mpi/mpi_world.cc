// See mpi_world.h.
#include "exec/mpi/mpi_world.h"

#include <future>

#include "exec/mpi/mpi_communicator.h"

namespace stepcast::exec {
namespace {

// Below those of communicators.
constexpr int kGatherTag = 1;
constexpr int kBroadcastTag = 2;

// Blocks until the bytes are gone.
void send_text(Port& port, int peer, int tag, const std::string& bytes) {
  std::promise<void> sent;
  port.send(peer, tag, {.bytes = static_cast<std::int64_t>(bytes.size())}, bytes.data(), [&sent] { sent.set_value(); });
  sent.get_future().wait();
}

// Blocks until the bytes are here.
std::string receive_text(Port& port, int peer, int tag) {
  std::string text;
  std::promise<void> received;
  port.receive(peer, tag,
               {.accept = [&text](const Header& h) -> void* {
                  text.resize(static_cast<std::size_t>(h.bytes));
                  return text.data();
                },
                .done = [&received](const Header&) { received.set_value(); }});
  received.get_future().wait();
  return text;
}

}  // namespace

std::shared_ptr<Communicators> MpiWorld::communicators(const program::Program& p) {
  return mpi_communicators(p, port_);
}

std::vector<std::string> MpiWorld::gather(const std::string& bytes) {
  if (rank() != 0) {
    send_text(port_, 0, kGatherTag, bytes);
    return {};
  }
  std::vector<std::string> all(static_cast<std::size_t>(size()));
  all[0] = bytes;
  for (std::size_t peer = 1; peer < all.size(); ++peer) {
    all[peer] = receive_text(port_, static_cast<int>(peer), kGatherTag);
  }
  return all;
}

std::string MpiWorld::broadcast(const std::string& bytes) {
  if (rank() != 0) return receive_text(port_, 0, kBroadcastTag);
  for (int peer = 1; peer < size(); ++peer) send_text(port_, peer, kBroadcastTag, bytes);
  return bytes;
}

void MpiWorld::end_all(int code) { Port::end_all(code); }

}  // namespace stepcast::exec
