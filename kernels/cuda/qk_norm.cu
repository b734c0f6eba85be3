// RMSNorm of queries and keys, in place in a qkv row; layout and source: cpu/qk_layout.h, cpu/qk_norm.cc. A block for
// each stretch of columns that is normalised by itself.
#include "kernels/cpu/qk_layout.h"
#include "kernels/cuda/column_sums.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/rms_row.h"

namespace stepcast::kernels::cuda {
namespace {

using cpu::QkLayout;
using cpu::Stretches;

// The stretch of a block: q's of a row come first, then k's, as their statistics do.
template <class S>
struct Stretch {
  std::int64_t row;
  std::int64_t statistic;
  std::int64_t begin;  // column
  std::int64_t width;
  const S* weight;
};

template <class S>
__device__ Stretch<S> stretch_of_block(const QkLayout& at, const S* q_weight, const S* k_weight) {
  const std::int64_t row = blockIdx.x / at.statistics;
  const std::int64_t n = blockIdx.x % at.statistics;
  const bool of_q = n < at.q.count;
  const Stretches& s = of_q ? at.q : at.k;
  return {row, n, s.begin + (n - s.statistic) * s.width, s.width, of_q ? q_weight : k_weight};
}

template <class S>
__global__ void normalise_stretches(QkLayout at, const S* q_weight, const S* k_weight, double eps, Rows<S> qkv, S* raw,
                                    float* rstd) {
  const Stretch<S> s = stretch_of_block(at, q_weight, k_weight);
  S* x = qkv[s.row] + s.begin;
  S* kept = raw + s.row * at.columns + s.begin;
  for (std::int64_t c = threadIdx.x; c < s.width; c += blockDim.x) kept[c] = x[c];
  const float r = normalise_row(x, s.weight, s.width, eps, x);
  if (threadIdx.x == 0) rstd[s.row * at.statistics + s.statistic] = r;
}

template <class S>
__global__ void stretch_gradients(QkLayout at, const S* q_weight, const S* k_weight, const S* raw, const float* rstd,
                                  Rows<S> dqkv) {
  const Stretch<S> s = stretch_of_block(at, q_weight, k_weight);
  S* d = dqkv[s.row] + s.begin;
  const S* x = raw + s.row * at.columns + s.begin;
  rms_input_gradient<S>({d, x, s.weight, nullptr, rstd[s.row * at.statistics + s.statistic], s.width}, d);
}

// "Rows" of the sum are (row, stretch).
template <class S>
struct StretchTerm {
  static constexpr int kSums = 1;
  Stretches stretches;
  Rows<S> dqkv;
  Rows<S> raw;
  Rows<float> rstd;

  __device__ void add(std::int64_t n, std::int64_t c, float* sum) const {
    const std::int64_t row = n / stretches.count;
    const std::int64_t i = n % stretches.count;
    const std::int64_t column = stretches.begin + i * stretches.width + c;
    sum[0] += widen(dqkv[row][column]) * widen(raw[row][column]) * rstd[row][stretches.statistic + i];
  }
};

Grid grid_over_stretches(const QkLayout& at, std::int64_t rows) {
  return grid_over_rows(rows * at.statistics, std::max(at.q.width, at.k.width));
}

template <class S>
void forward(const KernelContext& context) {
  const auto q_weight = rows<S>(context, 0);
  const auto k_weight = rows<S>(context, 1);
  const auto qkv = rows<S>(context, 2);
  const auto raw = rows<S>(context, 3);
  const auto rstd = rows<float>(context, 4);
  const QkLayout at = cpu::qk_layout(attributes(context), q_weight.size(), k_weight.size());
  CHECK(raw.count == qkv.count && raw.width == at.columns && qkv.width > at.columns, raw.width, at.columns, qkv.width);
  CHECK(rstd.count == qkv.count && rstd.width == at.statistics, rstd.width, at.statistics);
  launch(context, grid_over_stretches(at, qkv.count), &normalise_stretches<S>, at, q_weight.data, k_weight.data,
         attributes(context).value, qkv, raw.data, rstd.data);
}

template <class S>
void backward_input(const KernelContext& context) {
  const auto raw = rows<S>(context, 0);
  const auto rstd = rows<float>(context, 1);
  const auto q_weight = rows<S>(context, 2);
  const auto k_weight = rows<S>(context, 3);
  const auto dqkv = rows<S>(context, 4);
  const QkLayout at = cpu::qk_layout(attributes(context), q_weight.size(), k_weight.size());
  CHECK(raw.count == dqkv.count && raw.width == at.columns && dqkv.width > at.columns, raw.width, at.columns);
  CHECK(rstd.count == dqkv.count && rstd.width == at.statistics, rstd.width, at.statistics);
  launch(context, grid_over_stretches(at, dqkv.count), &stretch_gradients<S>, at, q_weight.data, k_weight.data,
         raw.data, rstd.data, dqkv);
}

template <class S, class G>
void backward_weight(const KernelContext& context) {
  const auto dqkv = rows<S>(context, 0);
  const auto raw = rows<S>(context, 1);
  const auto rstd = rows<float>(context, 2);
  const auto dq_weight = rows<G>(context, 3);
  const auto dk_weight = rows<G>(context, 4);
  const QkLayout at = cpu::qk_layout(attributes(context), dq_weight.size(), dk_weight.size());
  CHECK(raw.count == dqkv.count && raw.width == at.columns && dqkv.width > at.columns, raw.width, at.columns);
  CHECK(rstd.count == dqkv.count && rstd.width == at.statistics, rstd.width, at.statistics);
  add_column_sums<StretchTerm<S>, G>(context, {at.q, dqkv, raw, rstd}, raw.count * at.q.count, at.q.width,
                                     {dq_weight.data});
  add_column_sums<StretchTerm<S>, G>(context, {at.k, dqkv, raw, rstd}, raw.count * at.k.count, at.k.width,
                                     {dk_weight.data});
}

}  // namespace

void qk_norm_forward(const KernelContext& context) {
  for_device_storage(dtype(context, 2), [&]<class S>() { forward<S>(context); });
}

void qk_norm_backward_input(const KernelContext& context) {
  for_device_storage(dtype(context, 4), [&]<class S>() { backward_input<S>(context); });
}

void qk_norm_backward_weight(const KernelContext& context) {
  for_device_source_and_result(dtype(context, 0), dtype(context, 3),
                               [&]<class S, class G>() { backward_weight<S, G>(context); });
}

}  // namespace stepcast::kernels::cuda
