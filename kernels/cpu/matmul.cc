// c = a b in the three forms of training (program/ops/op.h, MatmulForm), optionally added to c, or with a bias row
// added.
//
// b is first brought to [K,N] in the accumulate type (a copy for bf16 or form NT, the operand itself otherwise). Then
// every form is the same loop: a row of c gathers multiples of rows of b. Each element of c is summed over k in
// ascending order, one product after the other, in all forms and at every size; c is rounded to its storage type once.
#include <algorithm>
#include <array>
#include <vector>

#include "kernels/cpu/access.h"
#include "kernels/cpu/reference.h"

namespace stepcast::kernels::cpu {
namespace {

// Columns of c that are built at once: with K rows of b it is the piece of b that stays in the cache while all rows of
// a pass over it.
constexpr std::int64_t kColumns = 256;

// a(m, k) = data[m * row_stride + k * depth_stride].
template <class S>
struct Strided {
  const S* data;
  std::int64_t row_stride;
  std::int64_t depth_stride;
};

// b as [K,N] in A, from [N,K] when transposed; `storage` keeps the copy.
template <class A, class S>
const A* depth_major(const Rows<S>& b, bool transposed, std::vector<A>& storage) {
  if constexpr (std::is_same_v<A, S>) {
    if (!transposed) return b.data;
  }
  storage.resize(static_cast<std::size_t>(b.size()));
  A* to = storage.data();
  if (!transposed) {
    for (std::int64_t i = 0; i < b.size(); ++i) to[i] = widen(b.data[i]);
    return to;
  }
  constexpr std::int64_t kTile = 16;  // both sides of a 16 x 16 tile fit in a few cache lines each
  for (std::int64_t row = 0; row < b.count; row += kTile) {
    for (std::int64_t column = 0; column < b.width; column += kTile) {
      for (std::int64_t k = column; k < std::min(column + kTile, b.width); ++k) {
        for (std::int64_t n = row; n < std::min(row + kTile, b.count); ++n) to[k * b.count + n] = widen(b[n][k]);
      }
    }
  }
  return to;
}

// sum[0, columns) = sum over k of a(m, k) * b[k][0, columns). Four k at a time keep `sum` in registers for longer; the
// order of the additions is that of the plain loop.
template <class A, class S>
void row_of_product(const Strided<S>& a, std::int64_t m, const A* b, std::int64_t b_width, std::int64_t depth,
                    std::int64_t columns, A* sum) {
  std::fill_n(sum, columns, A(0));
  const S* x = a.data + m * a.row_stride;
  std::int64_t k = 0;
  for (; k + 4 <= depth; k += 4) {
    const A x0 = widen(x[k * a.depth_stride]);
    const A x1 = widen(x[(k + 1) * a.depth_stride]);
    const A x2 = widen(x[(k + 2) * a.depth_stride]);
    const A x3 = widen(x[(k + 3) * a.depth_stride]);
    const A* b0 = b + k * b_width;
    const A* b1 = b0 + b_width;
    const A* b2 = b1 + b_width;
    const A* b3 = b2 + b_width;
    for (std::int64_t n = 0; n < columns; ++n) {
      sum[n] = (((sum[n] + x0 * b0[n]) + x1 * b1[n]) + x2 * b2[n]) + x3 * b3[n];
    }
  }
  for (; k < depth; ++k) add_scaled(columns, widen(x[k * a.depth_stride]), b + k * b_width, sum);
}

template <class S, class C>
void multiply(const KernelContext& context) {
  using A = Accumulate<S>;
  const auto a = rows<S>(context, 0);
  const auto b = rows<S>(context, 1);
  const auto c = rows<C>(context, 2);
  const bool has_bias = context.operands.size() > 3;
  const auto bias = has_bias ? rows<S>(context, 3) : Rows<S>{};
  const program::MatmulForm form = attributes(context).form;
  const bool a_transposed = form == program::MatmulForm::kTN;
  const bool b_transposed = form == program::MatmulForm::kNT;
  const std::int64_t depth = a_transposed ? a.count : a.width;
  CHECK(c.count == (a_transposed ? a.width : a.count), c.count, a.count, a.width);
  CHECK(c.width == (b_transposed ? b.count : b.width), c.width, b.count, b.width);
  CHECK(!has_bias || (bias.size() == c.width && !context.accumulate), bias.size(), c.width);
  CHECK(depth == (b_transposed ? b.width : b.count), depth, b.count, b.width);

  std::vector<A> storage;
  const A* b_data = depth_major<A>(b, b_transposed, storage);
  const Strided<S> a_view{a.data, a_transposed ? 1 : a.width, a_transposed ? a.width : 1};
  std::array<A, kColumns> sum;
  for (std::int64_t first = 0; first < c.width; first += kColumns) {
    const std::int64_t columns = std::min(kColumns, c.width - first);
    for (std::int64_t m = 0; m < c.count; ++m) {
      row_of_product(a_view, m, b_data + first, c.width, depth, columns, sum.data());
      C* out = c[m] + first;
      for (std::int64_t n = 0; n < columns; ++n) {
        const A value = sum[static_cast<std::size_t>(n)];
        out[n] = narrow<C>(has_bias             ? value + widen(bias.data[first + n])
                           : context.accumulate ? widen(out[n]) + value
                                                : value);
      }
    }
  }
}

}  // namespace

void matmul(const KernelContext& context) {
  for_source_and_result(dtype(context, 0), dtype(context, 2), [&]<class S, class C>() { multiply<S, C>(context); });
}

}  // namespace stepcast::kernels::cpu
