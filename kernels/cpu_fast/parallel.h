// Shares of a loop on the threads of one kernel. What a share computes does not depend on how many there are, so
// results do not depend on the number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

namespace stepcast::kernels::cpu_fast {

// How many threads kernels called by this thread use, oneDNN's included; at least 1.
void set_kernel_threads(int threads);
int kernel_threads();

// Calls body(begin, end) for contiguous shares of [0, count), each of `least` or more but where count is less: one
// share for each thread, on the calling thread alone when that makes one. Throws what a share throws, the first of
// them.
void parallel_for(std::int64_t count, std::int64_t least,
                  const std::function<void(std::int64_t begin, std::int64_t end)>& body);

// For rows of `width` elements that take a few operations each: at least some ten microseconds of work a share.
inline std::int64_t least_rows(std::int64_t width) {
  constexpr std::int64_t kElements = 1 << 14;
  return std::max<std::int64_t>(1, kElements / std::max<std::int64_t>(1, width));
}

}  // namespace stepcast::kernels::cpu_fast
