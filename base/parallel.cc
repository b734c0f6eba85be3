// Helpers sleep until a job wants one. A job is its caller's: it lies on the caller's stack and leaves the list before
// the call returns.
#include "base/parallel.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

namespace stepcast {
namespace {

constexpr std::size_t kMostThreads = 8;

class Helpers {
 public:
  static Helpers& shared() {
    static Helpers helpers;
    return helpers;
  }

  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;

  void call(std::size_t wanted, const std::function<void()>& work) {
    Job job{work, wanted};
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(&job);
    }
    for (std::size_t i = 0; i < std::min(wanted, threads_.size()); ++i) has_job_.notify_one();
    work();
    leave(job);
  }

 private:
  struct Job {
    const std::function<void()>& work;
    std::size_t wanted = 0;   // helpers it can still use
    std::size_t working = 0;  // helpers that have not returned
    std::condition_variable done{};
  };

  Helpers() {
    try {
      for (std::size_t t = 1; t < thread_count(kMostThreads); ++t) threads_.emplace_back([this] { help(); });
    } catch (const std::system_error&) {
      // No more threads here: those there are do the work.
    }
  }

  ~Helpers() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    has_job_.notify_all();
  }

  // Nobody new takes up the job, and those that have come back.
  void leave(Job& job) {
    std::unique_lock lock(mutex_);
    jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &job));
    job.done.wait(lock, [&job] { return job.working == 0; });
  }

  void help() {
    std::unique_lock lock(mutex_);
    while (!ends_) {
      const auto wants = [](const Job* job) { return job->wanted > 0; };
      const auto found = std::find_if(jobs_.begin(), jobs_.end(), wants);
      if (found == jobs_.end()) {
        has_job_.wait(lock);
        continue;
      }
      Job& job = **found;
      --job.wanted;
      ++job.working;
      lock.unlock();
      job.work();
      lock.lock();
      if (--job.working == 0) job.done.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable has_job_;
  std::vector<Job*> jobs_;  // with a caller that still works on it, oldest first
  bool ends_ = false;
  std::vector<std::jthread> threads_;  // last: joined before the rest goes
};

}  // namespace

std::size_t thread_count(std::size_t pieces) {
  const std::size_t cores = std::max<std::size_t>(1, std::thread::hardware_concurrency());
  return std::clamp<std::size_t>(pieces, 1, std::min(cores, kMostThreads));
}

void start_helpers() { Helpers::shared(); }

void call_with_helpers(std::size_t helpers, const std::function<void()>& work) {
  Helpers::shared().call(helpers, work);
}

}  // namespace stepcast
