// See mpi_world.h.
#include "exec/mpi/mpi_world.h"

#include <future>

#include "exec/mpi/mpi_communicator.h"

namespace stepcast::exec {
namespace {

constexpr int kGatherTag = 1;  // below those of communicators

}  // namespace

std::shared_ptr<Communicators> MpiWorld::communicators(const program::Program& p) {
  return mpi_communicators(p, port_);
}

std::vector<std::string> MpiWorld::gather(const std::string& bytes) {
  if (rank() != 0) {
    std::promise<void> sent;
    port_.send(0, kGatherTag, {.bytes = static_cast<std::int64_t>(bytes.size())}, bytes.data(),
               [&sent] { sent.set_value(); });
    sent.get_future().wait();
    return {};
  }
  std::vector<std::string> all(static_cast<std::size_t>(size()));
  all[0] = bytes;
  for (std::size_t peer = 1; peer < all.size(); ++peer) {
    std::promise<void> received;
    port_.receive(static_cast<int>(peer), kGatherTag,
                  {.accept = [&text = all[peer]](const Header& h) -> void* {
                     text.resize(static_cast<std::size_t>(h.bytes));
                     return text.data();
                   },
                   .done = [&received](const Header&) { received.set_value(); }});
    received.get_future().wait();
  }
  return all;
}

void MpiWorld::end_all(int code) { Port::end_all(code); }

}  // namespace stepcast::exec
