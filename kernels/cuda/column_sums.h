// Sums over the rows, for the gradients of weights and biases, in two passes: columns of a chunk of rows, in order, by
// a thread each; then the chunks, in order. The chunks depend on the shape alone, so the same operands give the same
// bytes. Sums are float, as the reference's.
#pragma once

#include <algorithm>
#include <array>

#include "kernels/cuda/launch.h"

namespace stepcast::kernels::cuda {

// A Term has `static constexpr int kSums` and `add(row, column, float sum[kSums])`. Sums: [chunks, kSums, width].
template <class Term>
__global__ void sum_chunk(Term term, std::int64_t rows, std::int64_t width, std::int64_t chunk_rows, float* sums) {
  const std::int64_t c = first_element();
  if (c >= width) return;
  const std::int64_t chunk = blockIdx.y;
  const std::int64_t end = std::min(rows, (chunk + 1) * chunk_rows);
  float sum[Term::kSums] = {};
  for (std::int64_t t = chunk * chunk_rows; t < end; ++t) term.add(t, c, sum);
  for (int s = 0; s < Term::kSums; ++s) sums[(chunk * Term::kSums + s) * width + c] = sum[s];
}

// out += the sums of the chunks, which are `stride` elements apart.
template <class G>
__global__ void add_chunks(const float* sums, std::int64_t chunks, std::int64_t stride, std::int64_t width, G* out) {
  for (std::int64_t c = first_element(); c < width; c += element_stride()) {
    float sum = 0;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) sum += sums[chunk * stride + c];
    out[c] = narrow<G>(widen(out[c]) + sum);
  }
}

// Rows of a chunk: enough chunks to fill a GPU where columns are few, little scratch where they are many.
inline std::int64_t rows_of_chunk(std::int64_t rows, std::int64_t width) {
  constexpr std::int64_t kLeastRows = 32;
  constexpr std::int64_t kMostChunks = 512;
  constexpr std::int64_t kMostSums = std::int64_t{1} << 20;
  const std::int64_t most = std::clamp<std::int64_t>(kMostSums / width, 1, kMostChunks);
  return std::max(kLeastRows, (rows + most - 1) / most);
}

// out[s][c] += sum over `rows` rows t of what term.add(t, c) gives, for `width` columns c. Uses the op's scratch.
template <class Term, class G>
void add_column_sums(const KernelContext& context, const Term& term, std::int64_t rows, std::int64_t width,
                     const std::array<G*, Term::kSums>& out) {
  if (rows == 0 || width == 0) return;
  const std::int64_t chunk_rows = rows_of_chunk(rows, width);
  const std::int64_t chunks = (rows + chunk_rows - 1) / chunk_rows;
  const std::int64_t stride = Term::kSums * width;
  auto* sums = reinterpret_cast<float*>(scratch(context, static_cast<std::size_t>(chunks * stride) * sizeof(float)));
  const unsigned threads = threads_for(width, 1, kBlock);
  const dim3 blocks(static_cast<unsigned>((width + threads - 1) / threads), static_cast<unsigned>(chunks));
  launch(context, {.blocks = blocks, .threads = dim3(threads), .meets = false}, &sum_chunk<Term>, term, rows, width,
         chunk_rows, sums);
  for (std::size_t s = 0; s < out.size(); ++s) {
    const float* of_output = sums + static_cast<std::int64_t>(s) * width;
    launch_elements(context, width, &add_chunks<G>, of_output, chunks, stride, width, out[s]);
  }
}

}  // namespace stepcast::kernels::cuda
