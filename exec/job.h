// One run of one step: its clock, its stop, its first failure. Every wait of every thread can be stopped through it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <latch>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/units.h"

namespace stepcast::exec {

// Thrown out of a wait when the job has been stopped; whoever stopped it has said why.
struct Stopped {};

// Waits on `condition` until `ready()`; throws Stopped when the job is stopped first.
template <class Ready>
void wait_or_stop(std::condition_variable_any& condition, std::unique_lock<std::mutex>& lock,
                  const std::stop_token& stop, Ready ready) {
  if (ready()) return;  // saves registering with the stop token, the common case
  if (!condition.wait(lock, stop, ready)) throw Stopped{};
}

class Job {
 public:
  using Clock = std::chrono::steady_clock;

  Job() = default;
  // Stops and joins whatever still runs.
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Adds a thread, which waits for start(). What `body` throws, except Stopped, is handed to `describe` and fails the
  // job.
  void add_thread(std::function<void()> body, std::function<std::string(const std::string& what)> describe);
  // Time starts and every thread runs.
  void start();
  // Waits for all threads to end. Ends early, with false, when for `watchdog` op_completed() was not called and
  // `busy()` was false each time it was asked.
  bool wait(Duration watchdog, const std::function<bool()>& busy);

  struct Failure {
    std::string message;
    bool internal = false;  // a broken invariant of ours (InternalError)
  };
  // Stops the job; the first failure is kept. Any thread.
  void fail(std::string message, bool internal = false);
  std::optional<Failure> failure() const;
  std::stop_token stop_token() const { return stop_.get_token(); }

  // Only after start().
  SimTime now() const;
  // The first tick of the clock at or after `t`.
  Clock::time_point at(SimTime t) const { return origin_ + std::chrono::nanoseconds((t.ps + 999) / 1000); }
  void op_completed() { completed_.fetch_add(1, std::memory_order_relaxed); }

 private:
  void open_gate();
  void run(const std::function<void()>& body, const std::function<std::string(const std::string&)>& describe);

  Clock::time_point origin_;
  std::latch gate_{1};
  bool gate_open_ = false;
  std::stop_source stop_;
  std::atomic<std::uint64_t> completed_{0};
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::optional<Failure> failure_;
  std::size_t running_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace stepcast::exec
