// See completion.h.
#include "exec/completion.h"

#include <algorithm>

#include "base/check.h"

namespace stepcast::exec {

void Completion::part_done(Transfer part) {
  {
    const std::lock_guard lock(mutex_);
    CHECK(parts_left_ > 0);
    --parts_left_;
    latest_.transfer = std::max(latest_.transfer, part.transfer);
    latest_.end = std::max(latest_.end, part.end);
  }
  changed_.notify_all();
}

Transfer Completion::wait_done(const Job& job) {
  std::unique_lock lock(mutex_);
  wait_or_stop(changed_, lock, job.stop_token(), [&] { return parts_left_ == 0; });
  return latest_;
}

void Completion::sleep_until(const Job& job, SimTime end) {
  if (job.now() >= end) return;
  std::unique_lock lock(mutex_);
  const std::stop_token stop = job.stop_token();
  changed_.wait_until(lock, stop, job.at(end), [] { return false; });
  if (stop.stop_requested()) throw Stopped{};
}

}  // namespace stepcast::exec
