// Messages between the processes of a job. One thread of each process makes all MPI calls: it posts what other threads
// ask for, tests what is under way, and sleeps when nothing moves.
//
// A message is a header and, where it has bytes, the bytes after it. Messages of one lane (peer and tag) match in the
// order in which they were posted; the receiver sees the header before a byte is written.
#pragma once

#include <condition_variable>
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
  // Tags are 0 to tag_bound().
  int tag_bound() const { return tag_bound_; }
  // Ends all processes. Any thread: nothing of MPI is of use afterwards.
  [[noreturn]] static void end_all(int code);

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
    std::deque<Receive> waiting;  // the first one is under way
    Header header;
  };

  void post(std::function<void()> what);
  void run();
  bool take_posts();
  void start_send(int peer, int tag, const Header& header, const void* data, const std::function<void()>& done);
  void start_receive(const Lane& lane);
  void receive_bytes(const Lane& lane);
  void end_receive(const Lane& lane);

  int rank_ = 0;
  int size_ = 1;
  int tag_bound_ = 0;
  std::map<Lane, LaneState> lanes_;  // the port's thread only
  std::unique_ptr<Impl> impl_;       // MPI's requests: the port's thread only
  std::mutex mutex_;
  std::condition_variable posted_;
  std::vector<std::function<void()>> posts_;
  bool ending_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace stepcast::exec
