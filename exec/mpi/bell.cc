// See bell.h. The sleeper says that it sleeps before it looks at the count, a ringer counts before it looks for a
// sleeper: one of them sees the other, in the single order of these atomics.
#include "exec/mpi/bell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace stepcast::exec {
namespace {

// Not the private form: the waiters on the word may be another process's.
void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* longest) {
  static_assert(sizeof word == sizeof value && std::atomic<std::uint32_t>::is_always_lock_free);
  ::syscall(SYS_futex, &word, operation, value, longest, nullptr, 0);
}

}  // namespace

void Bell::ring() {
  rings_.fetch_add(1);
  if (asleep_.load()) futex(rings_, FUTEX_WAKE, 1, nullptr);
}

void Bell::sleep(std::uint32_t heard, std::optional<std::chrono::nanoseconds> longest) {
  timespec time{};
  if (longest) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*longest);
    time.tv_sec = static_cast<std::time_t>(seconds.count());
    time.tv_nsec = static_cast<long>((*longest - seconds).count());
  }
  asleep_.store(true);
  if (rings_.load() == heard) futex(rings_, FUTEX_WAIT, heard, longest ? &time : nullptr);
  asleep_.store(false);
}

}  // namespace stepcast::exec
