// RMSNorm; formulas and source: cpu/norm.cc. A block for each row; the weight's gradient is a sum of columns.
#include "kernels/cuda/column_sums.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/rms_row.h"

namespace stepcast::kernels::cuda {
namespace {

template <class S>
__global__ void normalise_rows(Rows<S> x, const S* weight, double eps, S* y, float* rstd) {
  const std::int64_t t = blockIdx.x;
  const float r = normalise_row(x[t], weight, x.width, eps, y + t * x.width);
  if (threadIdx.x == 0) rstd[t] = r;
}

template <class S>
__global__ void input_gradients(Rows<S> dy, const S* x, const float* rstd, const S* weight, const S* residual, S* dx) {
  const std::int64_t t = blockIdx.x;
  const std::int64_t first = t * dy.width;
  rms_input_gradient<S>({dy[t], x + first, weight, residual == nullptr ? nullptr : residual + first, rstd[t], dy.width},
                        dx + first);
}

template <class S>
void forward(const KernelContext& context) {
  const auto x = rows<S>(context, 0);
  const auto weight = rows<S>(context, 1);
  const auto y = rows<S>(context, 2);
  const auto rstd = rows<float>(context, 3);
  CHECK(x.size() == y.size() && weight.size() == x.width && rstd.size() == x.count, x.width, weight.size(), x.count);
  launch(context, grid_over_rows(x.count, x.width), &normalise_rows<S>, x, weight.data, attributes(context).value,
         y.data, rstd.data);
}

template <class S>
void backward_input(const KernelContext& context) {
  const auto dy = rows<S>(context, 0);
  const auto x = rows<S>(context, 1);
  const auto rstd = rows<float>(context, 2);
  const auto weight = rows<S>(context, 3);
  const auto dx = rows<S>(context, 4);
  const bool has_residual = context.operands.size() > 5;
  const auto residual = has_residual ? rows<S>(context, 5) : Rows<S>{};
  CHECK(dy.size() == x.size() && dx.size() == x.size() && weight.size() == x.width && rstd.size() == x.count, dy.size(),
        x.size(), dx.size(), weight.size(), rstd.size());
  CHECK(!has_residual || residual.size() == x.size(), residual.size(), x.size());
  const Rows<S> rows_of_dy{dy.data, x.count, x.width};
  launch(context, grid_over_rows(x.count, x.width), &input_gradients<S>, rows_of_dy, x.data, rstd.data, weight.data,
         residual.data, dx.data);
}

template <class S, class G>
void backward_weight(const KernelContext& context) {
  const auto dy = rows<S>(context, 0);
  const auto x = rows<S>(context, 1);
  const auto rstd = rows<float>(context, 2);
  const auto dweight = rows<G>(context, 3);
  CHECK(dy.size() == x.size() && dweight.size() == x.width && rstd.size() == x.count, dy.size(), x.size(),
        dweight.size(), rstd.size());
  add_column_sums<RmsWeightTerm<S>, G>(context, {dy.data, x.data, rstd.data, x.width}, x.count, x.width,
                                       {dweight.data});
}

}  // namespace

void rms_norm_forward(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() { forward<S>(context); });
}

void rms_norm_backward_input(const KernelContext& context) {
  for_device_storage(dtype(context, 1), [&]<class S>() { backward_input<S>(context); });
}

void rms_norm_backward_weight(const KernelContext& context) {
  for_device_source_and_result(dtype(context, 1), dtype(context, 3),
                               [&]<class S, class G>() { backward_weight<S, G>(context); });
}

}  // namespace stepcast::kernels::cuda
