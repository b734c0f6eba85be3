// Independent pieces of work on the machine's cores. What the pieces write must be apart, so that the result does not
// depend on who does which.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace stepcast {

// Threads that work on `pieces` pieces, the caller's included: no more than the machine has cores, nor than eight.
inline std::size_t thread_count(std::size_t pieces) {
  constexpr std::size_t kMost = 8;
  const std::size_t cores = std::max<std::size_t>(1, std::thread::hardware_concurrency());
  return std::clamp<std::size_t>(pieces, 1, std::min(cores, kMost));
}

// Calls body(i) for every i in [0, pieces) on up to `threads` threads, the caller's included, in no particular order;
// on one thread in order. An exception of the lowest i that threw is rethrown once all are done.
template <class Body>
void parallel_on(std::size_t threads, std::size_t pieces, const Body& body) {
  if (std::min(threads, pieces) <= 1) {
    for (std::size_t i = 0; i < pieces; ++i) body(i);
    return;
  }
  std::atomic<std::size_t> next{0};
  std::vector<std::exception_ptr> faults(pieces);
  const auto work = [&] {
    for (std::size_t i = next++; i < pieces; i = next++) {
      try {
        body(i);
      } catch (...) {
        faults[i] = std::current_exception();
      }
    }
  };
  std::vector<std::jthread> helpers;  // joined by their destructors
  try {
    for (std::size_t t = 1; t < std::min(threads, pieces); ++t) helpers.emplace_back(work);
  } catch (const std::system_error&) {
    // No more threads here: those there are do the work.
  }
  work();
  helpers.clear();
  for (const std::exception_ptr& fault : faults) {
    if (fault) std::rethrow_exception(fault);
  }
}

// On the machine's cores. Starting a thread costs some 50 us: where the whole work is not `worth_threads`, the calls
// are made here.
template <class Body>
void parallel_for(std::size_t pieces, bool worth_threads, const Body& body) {
  parallel_on(worth_threads ? thread_count(pieces) : 1, pieces, body);
}

}  // namespace stepcast
