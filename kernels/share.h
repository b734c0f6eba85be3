// Where the rows of a share of a sequence are: of 2n equal parts of the positions, member i holds part i and part
// 2n - 1 - i, in this order.
#pragma once

#include <cstdint>

namespace stepcast::kernels {

struct Share {
  std::int64_t index = 0;      // of the member
  std::int64_t members = 1;    // n
  std::int64_t positions = 0;  // of one sequence in the share: even, unless there is one member

  // In the whole sequence.
  constexpr std::int64_t position(std::int64_t own) const {
    if (members == 1) return own;
    const std::int64_t part = positions / 2;
    return own < part ? index * part + own : (2 * members - 1 - index) * part + (own - part);
  }
};

}  // namespace stepcast::kernels
