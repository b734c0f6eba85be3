// The in-order queue of one stream of one rank, between the issuer and the stream's worker, and the count of ops
// completed on it, which is what other streams and the host wait for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

#include "exec/allocator.h"
#include "exec/job.h"

namespace stepcast::exec {

struct IssuedOp {
  std::uint32_t op = 0;  // flat number
  OpMemory memory;
};

class OpStream {
 public:
  // `completed` is this stream's counter; it must outlive the stream.
  explicit OpStream(std::atomic<std::uint32_t>& completed) : completed_(completed) {}

  void push(IssuedOp op);
  // Nothing more will be pushed.
  void close();
  // The next op; empty when closed and drained. Throws Stopped.
  std::optional<IssuedOp> pop(const Job& job);

  // The op at the head is over.
  void complete();
  // Until `count` ops of this stream are over. Throws Stopped.
  void wait_completed(std::uint32_t count, const Job& job);

 private:
  std::atomic<std::uint32_t>& completed_;
  std::mutex mutex_;
  std::condition_variable_any pushed_;
  std::condition_variable_any progressed_;
  std::deque<IssuedOp> queue_;
  bool closed_ = false;
};

}  // namespace stepcast::exec
