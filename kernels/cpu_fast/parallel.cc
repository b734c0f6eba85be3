// OpenMP, because oneDNN runs on it: one pool of threads serves both.
#include "kernels/cpu_fast/parallel.h"

#include <omp.h>

#include <cstddef>
#include <exception>
#include <vector>

#include "base/check.h"

namespace stepcast::kernels::cpu_fast {

void set_kernel_threads(int threads) {
  CHECK(threads >= 1, threads);
  omp_set_num_threads(threads);
}

int kernel_threads() { return omp_get_max_threads(); }

void parallel_for(std::int64_t count, std::int64_t least,
                  const std::function<void(std::int64_t begin, std::int64_t end)>& body) {
  CHECK(least >= 1, least);
  if (count <= 0) return;
  const std::int64_t shares = std::clamp<std::int64_t>(count / least, 1, kernel_threads());
  if (shares == 1) {
    body(0, count);
    return;
  }
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(shares));
#pragma omp parallel for num_threads(static_cast <int>(shares)) schedule(static, 1)
  for (std::int64_t share = 0; share < shares; ++share) {
    try {
      body(count * share / shares, count * (share + 1) / shares);
    } catch (...) {  // an exception must not leave the parallel region
      failures[static_cast<std::size_t>(share)] = std::current_exception();
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace stepcast::kernels::cpu_fast
