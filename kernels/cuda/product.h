// A tiled product of matrices with any strides, in f32 arithmetic: what matmul (shapes that cuBLASLt does not take) and
// unfused attention run.
//
// A block of 256 threads, as 16 x 16, has a tile of 64 x 64 elements and goes through k in steps of 16, in ascending
// order; a thread has 4 x 4 elements.
#pragma once

#include "kernels/cuda/launch.h"

namespace stepcast::kernels::cuda {

inline constexpr int kProductTile = 64;
inline constexpr int kProductDepth = 16;

// Matrix z of a product is that of head z % heads of sequence z / heads; where its elements begin. `shared`
// neighbouring heads have one.
struct MatrixPlace {
  std::int64_t by_sequence = 0;
  std::int64_t by_head = 0;
  std::int64_t shared = 1;

  constexpr std::int64_t of(std::int64_t sequence, std::int64_t head) const {
    return sequence * by_sequence + head / shared * by_head;
  }
};

// A factor's element (i, k), i being a row of the result for the left one and a column for the right one, is at
// data + i * outer + k * depth. Where k has several parts, part p begins p * part behind the first.
template <class S>
struct Factor {
  const S* data = nullptr;
  std::int64_t outer = 0;
  std::int64_t depth = 0;
  MatrixPlace place = {};
  std::int64_t part = 0;
};

// result(m, n) = scale * sum over parts and k of left(m, k) right(n, k) [+ bias(n)] [+ result(m, n)], rounded once.
template <class S, class C>
struct Product {
  Factor<S> left;
  Factor<S> right;
  C* result = nullptr;
  std::int64_t row_stride = 0;  // of the result, whose columns are side by side
  MatrixPlace place = {};
  const S* bias = nullptr;
  bool add = false;
  float scale = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;  // of one part
  std::int64_t parts = 1;
  std::int64_t sequences = 1;
  std::int64_t heads = 1;

  constexpr std::int64_t row_tiles() const { return (rows + kProductTile - 1) / kProductTile; }
  constexpr std::int64_t column_tiles() const { return (columns + kProductTile - 1) / kProductTile; }
};

// Elements [first, first + 64) x [k, k + 16) of a factor to shared memory, by k; zero behind its ends. Threads that are
// neighbours read neighbours in memory, along whichever side is contiguous.
template <class S>
__device__ void load_factor(const Factor<S>& factor, const S* data, std::int64_t first, std::int64_t count,
                            std::int64_t k, std::int64_t depth, float (&to)[kProductDepth][kProductTile + 1]) {
  const bool along_depth = factor.depth == 1;
  for (int at = static_cast<int>(threadIdx.x); at < kProductTile * kProductDepth; at += static_cast<int>(kBlock)) {
    const int i = along_depth ? at / kProductDepth : at % kProductTile;
    const int d = along_depth ? at % kProductDepth : at / kProductTile;
    const bool inside = first + i < count && k + d < depth;
    to[d][i] = inside ? widen(data[(first + i) * factor.outer + (k + d) * factor.depth]) : 0.0F;
  }
}

template <class S, class C>
__global__ void __launch_bounds__(kBlock) multiply_tiles(Product<S, C> product) {
  constexpr int kSide = 16;
  constexpr int kOwn = kProductTile / kSide;
  __shared__ float left[kProductDepth][kProductTile + 1];
  __shared__ float right[kProductDepth][kProductTile + 1];
  const std::int64_t tile = blockIdx.x % (product.row_tiles() * product.column_tiles());
  const std::int64_t matrix = blockIdx.x / (product.row_tiles() * product.column_tiles());
  const std::int64_t sequence = matrix / product.heads;
  const std::int64_t head = matrix % product.heads;
  const std::int64_t first_row = tile / product.column_tiles() * kProductTile;
  const std::int64_t first_column = tile % product.column_tiles() * kProductTile;
  const int x = static_cast<int>(threadIdx.x) % kSide;
  const int y = static_cast<int>(threadIdx.x) / kSide;
  float sums[kOwn][kOwn] = {};
  for (std::int64_t part = 0; part < product.parts; ++part) {
    const S* left_data = product.left.data + product.left.place.of(sequence, head) + part * product.left.part;
    const S* right_data = product.right.data + product.right.place.of(sequence, head) + part * product.right.part;
    for (std::int64_t k = 0; k < product.depth; k += kProductDepth) {
      __syncthreads();
      load_factor(product.left, left_data, first_row, product.rows, k, product.depth, left);
      load_factor(product.right, right_data, first_column, product.columns, k, product.depth, right);
      __syncthreads();
      for (int d = 0; d < kProductDepth; ++d) {
        for (int i = 0; i < kOwn; ++i) {
          for (int j = 0; j < kOwn; ++j) sums[i][j] += left[d][y + i * kSide] * right[d][x + j * kSide];
        }
      }
    }
  }
  C* result = product.result + product.place.of(sequence, head);
  for (int i = 0; i < kOwn; ++i) {
    for (int j = 0; j < kOwn; ++j) {
      const std::int64_t row = first_row + y + i * kSide;
      const std::int64_t column = first_column + x + j * kSide;
      if (row >= product.rows || column >= product.columns) continue;
      C* to = result + row * product.row_stride + column;
      float value = product.scale * sums[i][j];
      if (product.bias != nullptr) value += widen(product.bias[column]);
      *to = narrow<C>(product.add ? widen(*to) + value : value);
    }
  }
}

template <class S, class C>
void launch_product(const KernelContext& context, const Product<S, C>& product) {
  const std::int64_t blocks = product.row_tiles() * product.column_tiles() * product.sequences * product.heads;
  launch(context, {.blocks = blocks_of_rows(blocks)}, &multiply_tiles<S, C>, product);
}

}  // namespace stepcast::kernels::cuda
