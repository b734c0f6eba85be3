// See op_stream.h. The counter changes under the mutex, so that no waiter misses a change; reading it needs no lock.
#include "exec/op_stream.h"

#include <utility>

namespace stepcast::exec {

void OpStream::push(IssuedOp op) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(op));
  }
  pushed_.notify_one();
}

void OpStream::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  pushed_.notify_one();
}

std::optional<IssuedOp> OpStream::pop(const Job& job) {
  std::unique_lock lock(mutex_);
  wait_or_stop(pushed_, lock, job.stop_token(), [&] { return !queue_.empty() || closed_; });
  if (queue_.empty()) return std::nullopt;
  IssuedOp op = std::move(queue_.front());
  queue_.pop_front();
  return op;
}

void OpStream::complete() {
  {
    const std::lock_guard lock(mutex_);
    completed_.fetch_add(1, std::memory_order_release);
  }
  progressed_.notify_all();
}

void OpStream::wait_completed(std::uint32_t count, const Job& job) {
  const auto reached = [&] { return completed_.load(std::memory_order_acquire) >= count; };
  if (reached()) return;
  std::unique_lock lock(mutex_);
  wait_or_stop(progressed_, lock, job.stop_token(), reached);
}

}  // namespace stepcast::exec
