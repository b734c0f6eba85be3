// c = a b in the three forms of training (program/ops/op.h, MatmulForm), optionally added to c, or with a bias row
// added. On a GPU it is cuBLASLt's (cublas_matmul.h); shapes that this does not take, and every one where CUDA's
// threads are the CPU's, run in the tiled kernel of product.h.
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/matmul_shape.h"
#include "kernels/cuda/product.h"

namespace stepcast::kernels::cuda {
namespace {

template <class S, class C>
void multiply(const KernelContext& context, const MatmulShape& shape) {
  Product<S, C> product;
  product.left = {rows<S>(context, 0).data, shape.a_transposed ? 1 : shape.depth, shape.a_transposed ? shape.rows : 1};
  product.right = {rows<S>(context, 1).data, shape.b_transposed ? shape.depth : 1,
                   shape.b_transposed ? 1 : shape.columns};
  product.result = rows<C>(context, 2).data;
  product.row_stride = shape.columns;
  product.bias = shape.bias ? rows<S>(context, 3).data : nullptr;
  product.add = shape.accumulate;
  product.rows = shape.rows;
  product.columns = shape.columns;
  product.depth = shape.depth;
  launch_product(context, product);
}

#ifdef __CUDACC__
bool multiplied_by_cublas(const KernelContext& context, const MatmulShape& shape) {
  if (shape.is_empty()) return false;
  MatmulOperands operands;
  operands.a = operand(context, 0).data;
  operands.b = operand(context, 1).data;
  operands.c = operand(context, 2).data;
  if (shape.bias) operands.bias = operand(context, 3).data;
  return state_of(context).matmuls().multiply(shape, operands);
}
#else
bool multiplied_by_cublas(const KernelContext&, const MatmulShape&) { return false; }
#endif

}  // namespace

void matmul(const KernelContext& context) {
  const MatmulShape shape = matmul_shape(context);
  if (multiplied_by_cublas(context, shape)) return;
  for_device_source_and_result(dtype(context, 0), dtype(context, 2),
                               [&]<class S, class C>() { multiply<S, C>(context, shape); });
}

}  // namespace stepcast::kernels::cuda
