// LayerNorm and the gradient of a projection's bias; formulas and source: cpu/layer_norm.cc. A block for each row; the
// gradients of weight and bias are sums of columns.
#include <cmath>

#include "kernels/cuda/column_sums.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/reduce.h"

namespace stepcast::kernels::cuda {
namespace {

// stats are [means, rstds].
template <class S>
__global__ void normalise_rows(Rows<S> x, const S* weight, const S* bias, double eps, S* y, float* stats) {
  const std::int64_t t = blockIdx.x;
  const S* row = x[t];
  const auto width = static_cast<double>(x.width);
  double sum = 0;
  for (std::int64_t c = threadIdx.x; c < x.width; c += blockDim.x) sum += static_cast<double>(widen(row[c]));
  const double mean = block_sum(sum) / width;
  double squares = 0;
  for (std::int64_t c = threadIdx.x; c < x.width; c += blockDim.x) {
    const double d = static_cast<double>(widen(row[c])) - mean;
    squares += d * d;
  }
  squares = block_sum(squares);
  const float m = static_cast<float>(mean);
  const float r = static_cast<float>(1.0 / std::sqrt(squares / width + eps));
  for (std::int64_t c = threadIdx.x; c < x.width; c += blockDim.x) {
    y[t * x.width + c] = narrow<S>((widen(row[c]) - m) * r * widen(weight[c]) + widen(bias[c]));
  }
  if (threadIdx.x != 0) return;
  stats[t] = m;
  stats[x.count + t] = r;
}

template <class S>
struct InputGradient {
  Rows<S> dy;
  Rows<S> x;
  const float* stats;
  const S* weight;
  const S* residual;  // nullptr: none
  S* dx;
};

template <class S>
__global__ void input_gradients(InputGradient<S> in) {
  const std::int64_t t = blockIdx.x;
  const std::int64_t width = in.x.width;
  const S* dy = in.dy.data + t * width;
  const S* x = in.x[t];
  const float m = in.stats[t];
  const float r = in.stats[in.x.count + t];
  double sum = 0;
  double along = 0;
  for (std::int64_t c = threadIdx.x; c < width; c += blockDim.x) {
    const float g = widen(dy[c]) * widen(in.weight[c]);
    sum += static_cast<double>(g);
    along += static_cast<double>(g) * static_cast<double>((widen(x[c]) - m) * r);
  }
  const float mean_g = static_cast<float>(block_sum(sum) / static_cast<double>(width));
  const float mean_gn = static_cast<float>(block_sum(along) / static_cast<double>(width));
  for (std::int64_t c = threadIdx.x; c < width; c += blockDim.x) {
    const float g = widen(dy[c]) * widen(in.weight[c]);
    const float through_norm = r * (g - mean_g - (widen(x[c]) - m) * r * mean_gn);
    const std::int64_t at = t * width + c;
    in.dx[at] = narrow<S>(in.residual != nullptr ? widen(in.residual[at]) + through_norm : through_norm);
  }
}

// What row t adds to the gradients of weight and bias: dy * (x - mean) * rstd, and dy.
template <class S>
struct WeightAndBiasTerm {
  static constexpr int kSums = 2;
  const S* dy;
  Rows<S> x;
  const float* stats;

  __device__ void add(std::int64_t t, std::int64_t c, float* sum) const {
    const float d = widen(dy[t * x.width + c]);
    sum[0] += d * (widen(x[t][c]) - stats[t]) * stats[x.count + t];
    sum[1] += d;
  }
};

template <class S>
struct BiasTerm {
  static constexpr int kSums = 1;
  Rows<S> dout;

  __device__ void add(std::int64_t t, std::int64_t c, float* sum) const { sum[0] += widen(dout[t][c]); }
};

template <class S>
void forward(const KernelContext& context) {
  const auto x = rows<S>(context, 0);
  const auto weight = rows<S>(context, 1);
  const auto bias = rows<S>(context, 2);
  const auto y = rows<S>(context, 3);
  const auto stats = rows<float>(context, 4);
  CHECK(x.size() == y.size() && weight.size() == x.width && bias.size() == x.width, x.width, weight.size());
  CHECK(stats.size() == 2 * x.count, stats.size(), x.count);
  launch(context, grid_over_rows(x.count, x.width), &normalise_rows<S>, x, weight.data, bias.data,
         attributes(context).value, y.data, stats.data);
}

template <class S>
void backward_input(const KernelContext& context) {
  const auto dy = rows<S>(context, 0);
  const auto x = rows<S>(context, 1);
  const auto stats = rows<float>(context, 2);
  const auto weight = rows<S>(context, 3);
  const auto dx = rows<S>(context, 4);
  const bool has_residual = context.operands.size() > 5;
  const auto residual = has_residual ? rows<S>(context, 5) : Rows<S>{};
  CHECK(dy.size() == x.size() && dx.size() == x.size() && weight.size() == x.width, dy.size(), x.size(), dx.size());
  CHECK(stats.size() == 2 * x.count, stats.size(), x.count);
  CHECK(!has_residual || residual.size() == x.size(), residual.size(), x.size());
  const InputGradient<S> in{dy, x, stats.data, weight.data, residual.data, dx.data};
  launch(context, grid_over_rows(x.count, x.width), &input_gradients<S>, in);
}

template <class S, class G>
void backward_weight(const KernelContext& context) {
  const auto dy = rows<S>(context, 0);
  const auto x = rows<S>(context, 1);
  const auto stats = rows<float>(context, 2);
  const auto dweight = rows<G>(context, 3);
  const auto dbias = rows<G>(context, 4);
  CHECK(dy.size() == x.size() && stats.size() == 2 * x.count, dy.size(), x.size(), stats.size());
  CHECK(dweight.size() == x.width && dbias.size() == x.width, dweight.size(), dbias.size(), x.width);
  add_column_sums<WeightAndBiasTerm<S>, G>(context, {dy.data, x, stats.data}, x.count, x.width,
                                           {dweight.data, dbias.data});
}

}  // namespace

void layer_norm_forward(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() { forward<S>(context); });
}

void layer_norm_backward_input(const KernelContext& context) {
  for_device_storage(dtype(context, 1), [&]<class S>() { backward_input<S>(context); });
}

void layer_norm_backward_weight(const KernelContext& context) {
  for_device_source_and_result(dtype(context, 1), dtype(context, 3),
                               [&]<class S, class G>() { backward_weight<S, G>(context); });
}

void bias_backward(const KernelContext& context) {
  for_device_source_and_result(dtype(context, 0), dtype(context, 1), [&]<class S, class G>() {
    const auto dout = rows<S>(context, 0);
    const auto dbias = rows<G>(context, 1);
    CHECK(dbias.size() == dout.width, dbias.size(), dout.width);
    add_column_sums<BiasTerm<S>, G>(context, {dout}, dout.count, dout.width, {dbias.data});
  });
}

}  // namespace stepcast::kernels::cuda
