// cast, add and accumulate of f32 and bf16, in pieces that stay in the first cache; each result is rounded once, so the
// bytes are the reference kernels'.
#include "kernels/cpu/reference.h"
#include "kernels/cpu_fast/fast_kernels.h"
#include "kernels/cpu_fast/float_rows.h"
#include "kernels/cpu_fast/parallel.h"

namespace stepcast::kernels::cpu_fast {
namespace {

using cpu::rows;

constexpr std::int64_t kPiece = 2048;

// Calls body(first, n) for pieces of [0, count) in one share.
template <class Body>
void for_pieces(std::int64_t begin, std::int64_t end, const Body& body) {
  for (std::int64_t first = begin; first < end; first += kPiece) body(first, std::min(kPiece, end - first));
}

template <class S, class D>
void cast_elements(const KernelContext& context) {
  const auto in = rows<S>(context, 0);
  const auto out = rows<D>(context, 1);
  CHECK(in.size() == out.size(), in.size(), out.size());
  parallel_for(in.size(), least_rows(1), [&](std::int64_t begin, std::int64_t end) {
    if constexpr (std::is_same_v<S, D>) {
      std::copy(in.data + begin, in.data + end, out.data + begin);
    } else if constexpr (std::is_same_v<S, float>) {
      narrow_row(in.data + begin, end - begin, out.data + begin);
    } else {
      widen_row(in.data + begin, end - begin, out.data + begin);
    }
  });
}

template <class S>
void add_elements(const KernelContext& context) {
  const auto a = rows<S>(context, 0);
  const auto b = rows<S>(context, 1);
  const auto out = rows<S>(context, 2);
  CHECK(a.size() == out.size() && b.size() == out.size(), a.size(), b.size(), out.size());
  parallel_for(out.size(), least_rows(1), [&](std::int64_t begin, std::int64_t end) {
    FloatInput<S> as(kPiece), bs(kPiece);
    std::vector<float> sum(static_cast<std::size_t>(kPiece));
    FloatOutput<S> outs(kPiece);
    for_pieces(begin, end, [&](std::int64_t first, std::int64_t n) {
      // `out` may be a or b: nothing is written before both are read.
      std::copy_n(as.of(a.data + first, n), n, sum.data());
      add_row(bs.of(b.data + first, n), n, sum.data());
      std::copy_n(sum.data(), n, outs.begin(out.data + first));
      outs.store(out.data + first, n);
    });
  });
}

template <class S, class D>
void accumulate_elements(const KernelContext& context) {
  const auto in = rows<S>(context, 0);
  const auto out = rows<D>(context, 1);
  CHECK(in.size() == out.size(), in.size(), out.size());
  parallel_for(in.size(), least_rows(1), [&](std::int64_t begin, std::int64_t end) {
    FloatInput<S> ins(kPiece);
    FloatInput<D> before(kPiece);
    FloatOutput<D> outs(kPiece);
    for_pieces(begin, end, [&](std::int64_t first, std::int64_t n) {
      D* to = out.data + first;
      float* sum = outs.begin(to);
      if constexpr (!std::is_same_v<D, float>) std::copy_n(before.of(to, n), n, sum);
      add_row(ins.of(in.data + first, n), n, sum);
      outs.store(to, n);
    });
  });
}

}  // namespace

void cast(const KernelContext& context) {
  if (!is_fast(cpu::dtype(context, 0)) || !is_fast(cpu::dtype(context, 1))) return cpu::cast(context);
  for_fast_pair(cpu::dtype(context, 0), cpu::dtype(context, 1),
                [&]<class S, class D>() { cast_elements<S, D>(context); });
}

void add(const KernelContext& context) {
  fast_or_reference(context, cpu::dtype(context, 2), cpu::add, [&]<class S>() { add_elements<S>(context); });
}

void accumulate(const KernelContext& context) {
  if (!is_fast(cpu::dtype(context, 0)) || !is_fast(cpu::dtype(context, 1))) return cpu::accumulate(context);
  for_fast_pair(cpu::dtype(context, 0), cpu::dtype(context, 1),
                [&]<class S, class D>() { accumulate_elements<S, D>(context); });
}

}  // namespace stepcast::kernels::cpu_fast
