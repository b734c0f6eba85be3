// Independent pieces of work on the machine's cores. What the pieces write must be apart, so that the result does not
// depend on who does which.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <vector>

namespace stepcast {

// Threads that work on `pieces` pieces, the caller's included: no more than the machine has cores, nor than eight.
std::size_t thread_count(std::size_t pieces);

// Starts the threads that help with pieces of work; else the first work that wants them does. They stay, because a
// new thread may wait some milliseconds for its first turn, and one that sleeps a tenth of one.
void start_helpers();

// Calls work() here, and at the same time on up to `helpers` of them that have nothing else to do. Returns when all
// calls have. Work must not throw, and may itself ask for helpers.
void call_with_helpers(std::size_t helpers, const std::function<void()>& work);

// Calls body(i) for every i in [0, pieces) on up to `threads` threads, the caller's included; pieces are begun in
// order. An exception of the lowest i that threw is rethrown once all are done.
template <class Body>
void parallel_on(std::size_t threads, std::size_t pieces, const Body& body) {
  if (threads <= 1 || pieces <= 1) {
    for (std::size_t i = 0; i < pieces; ++i) body(i);
    return;
  }
  std::atomic<std::size_t> next{0};
  std::vector<std::exception_ptr> faults(pieces);
  call_with_helpers((threads < pieces ? threads : pieces) - 1, [&] {
    for (std::size_t i = next++; i < pieces; i = next++) {
      try {
        body(i);
      } catch (...) {
        faults[i] = std::current_exception();
      }
    }
  });
  for (const std::exception_ptr& fault : faults) {
    if (fault) std::rethrow_exception(fault);
  }
}

// On the machine's cores. Where the whole work takes less than some 100 us it is not `worth_threads`: the calls are
// made here.
template <class Body>
void parallel_for(std::size_t pieces, bool worth_threads, const Body& body) {
  parallel_on(worth_threads ? thread_count(pieces) : 1, pieces, body);
}

}  // namespace stepcast
