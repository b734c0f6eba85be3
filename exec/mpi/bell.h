// A bell in memory that processes share: one thread sleeps at it, any thread of any of them may ring it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace stepcast::exec {

class Bell {
 public:
  // How often it has rung.
  std::uint32_t rings() const { return rings_.load(); }
  // Wakes the sleeper; without one it is an increment.
  void ring();
  // Until it has rung more often than `heard`, or for `longest`; it may also return early.
  void sleep(std::uint32_t heard, std::optional<std::chrono::nanoseconds> longest = std::nullopt);

 private:
  std::atomic<std::uint32_t> rings_{0};
  std::atomic<bool> asleep_{false};
};

}  // namespace stepcast::exec
