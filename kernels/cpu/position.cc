// Learned positions (Vaswani et al. 2017, arXiv:1706.03762, section 3.5): the row of a token's position is added to its
// embedding. With an index role the rank holds the index-th of equal parts of the token rows (sequence parallelism).
#include <algorithm>
#include <vector>

#include "kernels/cpu/access.h"
#include "kernels/cpu/reference.h"

namespace stepcast::kernels::cpu {
namespace {

std::int64_t position_of(const KernelContext& context, std::int64_t row, std::int64_t rows) {
  return (context.index * rows + row) / attributes(context).batch;
}

template <class S>
void forward(const KernelContext& context) {
  const auto table = rows<S>(context, 0);
  const auto x = rows<S>(context, 1);
  CHECK(table.width == x.width, table.width, x.width);
  for (std::int64_t t = 0; t < x.count; ++t) {
    const std::int64_t position = position_of(context, t, x.count);
    CHECK(position < table.count, position, table.count);
    for (std::int64_t c = 0; c < x.width; ++c) x[t][c] = narrow<S>(widen(x[t][c]) + widen(table[position][c]));
  }
}

template <class S, class G>
void backward(const KernelContext& context) {
  const auto dx = rows<S>(context, 0);
  const auto dtable = rows<G>(context, 1);
  CHECK(dtable.width == dx.width, dtable.width, dx.width);
  std::vector<Accumulate<S>> sum(static_cast<std::size_t>(dx.width));
  // Rows of one position are neighbours, one of each sequence: they are summed before the table's row is rounded.
  for (std::int64_t t = 0; t < dx.count;) {
    const std::int64_t position = position_of(context, t, dx.count);
    CHECK(position < dtable.count, position, dtable.count);
    std::fill(sum.begin(), sum.end(), Accumulate<S>(0));
    for (; t < dx.count && position_of(context, t, dx.count) == position; ++t)
      add_scaled(dx.width, Accumulate<S>(1), dx[t], sum.data());
    add_sums(sum.data(), dx.width, dtable[position]);
  }
}

}  // namespace

void position_forward(const KernelContext& context) {
  for_storage(dtype(context, 1), [&]<class S>() { forward<S>(context); });
}

void position_backward(const KernelContext& context) {
  for_source_and_result(dtype(context, 0), dtype(context, 1), [&]<class S, class G>() { backward<S, G>(context); });
}

}  // namespace stepcast::kernels::cpu
