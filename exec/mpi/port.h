// Messages between the processes of a job. One thread of each process makes all MPI calls: it posts what other threads
// ask for, tests what is under way, and sleeps when nothing moves. Processes of one host wake each other when they have
// sent something; what comes from other hosts, and what MPI moves by itself, is found by looking again after a nap.
//
// A message is a header and its bytes: together where these are few, else the bytes follow. Messages of one lane (peer
// and tag) match in the order in which they were posted; the receiver sees the header before it says where bytes go.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "exec/mpi/bell.h"
#include "exec/world.h"

namespace stepcast::exec {

// What a sender says of a message.
struct Header {
  std::uint64_t form = 0;     // of a collective: what all members must agree on
  std::uint32_t op = 0;       // flat op number of the sender
  std::int64_t bytes = 0;     // that follow
  std::int64_t begin_ps = 0;  // when the sender's op began, after the start of the step
};

class Port {
 public:
  // Starts MPI, once in a process; nobody else calls it. Throws Error (kEnvironment) where this MPI takes calls of the
  // main thread only.
  Port();
  // Waits for what is under way and ends MPI.
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  HostPlace place() const { return place_; }
  // Tags are 0 to tag_bound().
  int tag_bound() const { return tag_bound_; }
  // Ends all processes. Any thread: nothing of MPI is of use afterwards.
  [[noreturn]] static void end_all(int code);

  // Calls `what` on the port's thread, where sends and receives take no other thread's time. Any thread.
  void perform(std::function<void()> what);

  // `data` stays as it is until `done` is called, by the port's thread. Any thread.
  void send(int peer, int tag, const Header& header, const void* data, std::function<void()> done);

  struct Receive {
    // Where the bytes go, once their number is known; null refuses the message, whose bytes are then left alone, and
    // with them the lane.
    std::function<void*(const Header&)> accept;
    std::function<void(const Header&)> done;
  };
  // Both functions are called by the port's thread. Any thread.
  void receive(int peer, int tag, Receive receive);

 private:
  struct Impl;
  using Lane = std::pair<int, int>;  // peer, tag
  struct LaneState {
    std::deque<Receive> waiting;      // the first one is under way
    std::vector<std::byte> envelope;  // the header, and the bytes that come with it
  };

  void run();
  bool take_posts();
  void start_send(int peer, int tag, const Header& header, const void* data, const std::function<void()>& done);
  void start_receive(const Lane& lane);
  void open_envelope(const Lane& lane);
  void receive_bytes(const Lane& lane, const Header& header, void* data);
  void end_receive(const Lane& lane, const Header& header);

  int rank_ = 0;
  int size_ = 1;
  int tag_bound_ = 0;
  HostPlace place_;
  std::map<Lane, LaneState> lanes_;  // the port's thread only
  std::unique_ptr<Impl> impl_;       // MPI's requests: the port's thread only
  std::mutex mutex_;
  std::vector<std::function<void()>> posts_;
  std::atomic<bool> ending_{false};
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace stepcast::exec
