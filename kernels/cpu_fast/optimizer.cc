// Sum of squares and Adam on f32 masters; formulas and their source: cpu/optimizer.cc. The sum adds, in order, those of
// pieces of fixed size, so it does not depend on the number of threads.
#include <cmath>
#include <vector>

#include "kernels/cpu/reference.h"
#include "kernels/cpu_fast/fast_kernels.h"
#include "kernels/cpu_fast/float_rows.h"
#include "kernels/cpu_fast/parallel.h"

namespace stepcast::kernels::cpu_fast {
namespace {

using cpu::own_part;
using cpu::rows;
using program::DType;

constexpr std::int64_t kPiece = 1024;

template <class S>
void add_squares(const KernelContext& context) {
  const std::int64_t elements = rows<S>(context, 0).size();
  const auto out = rows<float>(context, 1);
  const std::int64_t parts = cpu::attributes(context).count;
  CHECK(out.size() == 1 && (parts == 0 || parts == context.index_count), out.size(), parts, context.index_count);
  CHECK(parts == 0 || elements % parts == 0, elements, parts);
  const std::int64_t n = parts == 0 ? elements : elements / parts;
  const S* in = own_part<S>(context, 0, n);
  const std::int64_t pieces = (n + kPiece - 1) / kPiece;
  std::vector<double> sums(static_cast<std::size_t>(pieces));
  parallel_for(pieces, least_rows(kPiece), [&](std::int64_t begin, std::int64_t end) {
    FloatInput<S> buffer(kPiece);
    for (std::int64_t piece = begin; piece < end; ++piece) {
      const std::int64_t count = std::min(kPiece, n - piece * kPiece);
      sums[static_cast<std::size_t>(piece)] = sum_of_squares(buffer.of(in + piece * kPiece, count), count);
    }
  });
  double sum = 0;
  for (const double piece : sums) sum += piece;
  out.data[0] = static_cast<float>(static_cast<double>(out.data[0]) + cpu::attributes(context).value * sum);
}

struct AdamStep {
  float beta1, beta2, fresh1, fresh2, unbias1, unbias2, rate, eps, clip;
};

AdamStep adam_step(const KernelContext& context) {
  CHECK(context.step >= 1, context.step);
  const program::Attributes& a = cpu::attributes(context);
  const auto step = static_cast<double>(context.step);
  return {static_cast<float>(a.beta1),
          static_cast<float>(a.beta2),
          static_cast<float>(1.0 - a.beta1),
          static_cast<float>(1.0 - a.beta2),
          static_cast<float>(1.0 / (1.0 - std::pow(a.beta1, step))),
          static_cast<float>(1.0 / (1.0 - std::pow(a.beta2, step))),
          static_cast<float>(a.learning_rate),
          static_cast<float>(a.eps),
          rows<float>(context, 1).data[0]};
}

// The moments of a piece before and after; they are rounded after the update has used them.
struct AdamRow {
  const float* gradient;
  const float* m_before;
  const float* v_before;
  float* m;
  float* v;
  float* master;
};

[[STEPCAST_VECTORISED]] void adam_row(const AdamStep& s, const AdamRow& row, std::int64_t n) {
  const float* gradient = row.gradient;
  const float* m_before = row.m_before;
  const float* v_before = row.v_before;
#pragma GCC ivdep  // in place where moments are f32: an element depends on itself alone
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = gradient[i] * s.clip;
    const float m1 = s.beta1 * m_before[i] + s.fresh1 * g;
    const float v1 = s.beta2 * v_before[i] + s.fresh2 * g * g;
    row.m[i] = m1;
    row.v[i] = v1;
    row.master[i] -= s.rate * (m1 * s.unbias1) / (std::sqrt(v1 * s.unbias2) + s.eps);
  }
}

// G and M: storage of the gradient and of the moments.
template <class G, class M>
void step_master(const KernelContext& context) {
  const auto m = rows<M>(context, 2);
  const auto v = rows<M>(context, 3);
  const std::int64_t n = m.size();
  CHECK(v.size() == n && rows<float>(context, 1).size() == 1, n, v.size());
  const G* grad = own_part<G>(context, 0, n);
  float* master = own_part<float>(context, 4, n);
  const AdamStep s = adam_step(context);
  parallel_for(n, least_rows(4), [&](std::int64_t begin, std::int64_t end) {
    FloatInput<G> gradients(kPiece);
    FloatInput<M> ms(kPiece), vs(kPiece);
    FloatOutput<M> new_ms(kPiece), new_vs(kPiece);
    for (std::int64_t first = begin; first < end; first += kPiece) {
      const std::int64_t count = std::min(kPiece, end - first);
      M* m_at = m.data + first;
      M* v_at = v.data + first;
      adam_row(s,
               {gradients.of(grad + first, count), ms.of(m_at, count), vs.of(v_at, count), new_ms.begin(m_at),
                new_vs.begin(v_at), master + first},
               count);
      new_ms.store(m_at, count);
      new_vs.store(v_at, count);
    }
  });
}

template <class W>
void round_to_weight(const KernelContext& context) {
  const std::int64_t n = cpu::operand(context, 2).type.shape.elements();
  const float* master = own_part<float>(context, 4, n);
  W* weight = own_part<W>(context, 5, n);
  parallel_for(n, least_rows(1), [&](std::int64_t begin, std::int64_t end) {
    if constexpr (std::is_same_v<W, float>) {
      std::copy(master + begin, master + end, weight + begin);
    } else {
      narrow_row(master + begin, end - begin, weight + begin);
    }
  });
}

// Masters in f32; gradient, moments and weight in f32 or bf16.
bool is_covered(const KernelContext& context) {
  const bool weight = context.operands.size() <= 5 || is_fast(cpu::dtype(context, 5));
  return cpu::dtype(context, 4) == DType::kF32 && is_fast(cpu::dtype(context, 0)) && is_fast(cpu::dtype(context, 2)) &&
         weight;
}

}  // namespace

void sum_squares(const KernelContext& context) {
  fast_or_reference(context, cpu::dtype(context, 0), cpu::sum_squares, [&]<class S>() { add_squares<S>(context); });
}

void adam(const KernelContext& context) {
  if (!is_covered(context)) return cpu::adam(context);
  for_fast_pair(cpu::dtype(context, 0), cpu::dtype(context, 2),
                [&]<class G, class M>() { step_master<G, M>(context); });
  if (context.operands.size() <= 5) return;
  if (cpu::dtype(context, 5) == DType::kF32) return round_to_weight<float>(context);
  round_to_weight<Bf16>(context);
}

}  // namespace stepcast::kernels::cpu_fast
