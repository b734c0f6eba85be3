// See job.h.
#include "exec/job.h"

#include <algorithm>
#include <exception>

#include "base/check.h"
#include "base/error.h"

namespace stepcast::exec {

Job::~Job() {
  stop_.request_stop();
  open_gate();
  for (std::thread& thread : threads_) thread.join();
}

void Job::add_thread(std::function<void()> body, std::function<std::string(const std::string&)> describe) {
  const std::lock_guard lock(mutex_);
  threads_.emplace_back([this, body = std::move(body), describe = std::move(describe)] { run(body, describe); });
  ++running_;
}

void Job::run(const std::function<void()>& body, const std::function<std::string(const std::string&)>& describe) {
  gate_.wait();
  try {
    if (!stop_.stop_requested()) body();
  } catch (const Stopped&) {
  } catch (const Error& e) {
    fail(describe(e.problems().front().message));
  } catch (const InternalError& e) {
    fail(describe(e.what()), true);
  } catch (const std::exception& e) {
    fail(describe(e.what()));
  }
  const std::lock_guard lock(mutex_);
  --running_;
  ended_.notify_all();
}

void Job::open_gate() {
  if (gate_open_) return;
  gate_open_ = true;
  gate_.count_down();
}

void Job::start() {
  origin_ = Clock::now();
  open_gate();
}

bool Job::wait(Duration watchdog, const std::function<bool()>& busy) {
  using std::chrono::nanoseconds;
  const nanoseconds limit(watchdog.ps / 1000);
  // Looks ten times per limit, so a hang is found within 1.1 limits.
  const nanoseconds poll = std::clamp(limit / 10, nanoseconds(1'000'000), nanoseconds(100'000'000));
  std::uint64_t seen = completed_.load(std::memory_order_relaxed);
  Clock::time_point progressed = Clock::now();
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, poll, [&] { return running_ == 0; })) {
    const std::uint64_t completed = completed_.load(std::memory_order_relaxed);
    if (completed != seen || busy()) {
      seen = completed;
      progressed = Clock::now();
    } else if (Clock::now() - progressed >= limit && !failure_) {
      return false;
    }
  }
  return true;
}

void Job::fail(std::string message, bool internal) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = Failure{std::move(message), internal};
  }
  stop_.request_stop();
}

std::optional<Job::Failure> Job::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

SimTime Job::now() const {
  const auto elapsed = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - origin_);
  return SimTime(elapsed.count() * 1000);
}

}  // namespace stepcast::exec
