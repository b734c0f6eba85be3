// Vocabulary-parallel embedding (cpu/embedding.cc), learned positions (cpu/position.cc) and synthetic tokens
// (kernels/tokens.h).
//
// The gradient of the table without atomics and without sorting: a warp for each token and 256 columns. The warp of the
// first of equal tokens adds the rows of all of them, in their order; those of the others end. T tokens cost at most
// T^2 reads of a token for each 256 columns (T = 8192, h = 4096: 1 G reads of 4 bytes from cache), tokens of other
// holders nothing. Tokens lie in device memory, so those beyond all holders are not refused as the reference does: they
// count as other holders'.
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/tokens.h"

namespace stepcast::kernels::cuda {
namespace {

// This holder's rows of the table.
struct VocabularyRange {
  std::int64_t begin;
  std::int64_t rows;

  constexpr bool holds(std::int32_t token) const { return token >= begin && token < begin + rows; }
  constexpr std::int64_t local(std::int32_t token) const { return token - begin; }
};

VocabularyRange vocabulary_range(const KernelContext& context, std::int64_t local_rows) {
  CHECK(context.index >= 0 && context.index < context.index_count, context.index, context.index_count);
  return {context.index * local_rows, local_rows};
}

template <class S>
__global__ void look_up(const std::int32_t* tokens, VocabularyRange range, const S* table, Rows<S> out) {
  const std::int64_t t = blockIdx.x;
  const std::int32_t token = tokens[t];
  const bool held = range.holds(token);
  const S* row = held ? table + range.local(token) * out.width : nullptr;
  for (std::int64_t c = threadIdx.x; c < out.width; c += blockDim.x) out[t][c] = held ? row[c] : S{};
}

constexpr int kColumnsOfLane = 8;

// Bit i of the result: token `first` + i of those in [begin, end) is `token`. The warp calls it.
__device__ unsigned matches(const std::int32_t* tokens, std::int64_t first, std::int64_t begin, std::int64_t end,
                            std::int32_t token) {
  const std::int64_t at = first + threadIdx.x;
  return __ballot_sync(0xffffffffU, at >= begin && at < end && tokens[at] == token);
}

template <class S, class G>
__global__ void add_rows_of_token(const std::int32_t* tokens, VocabularyRange range, Rows<S> dout, G* dtable) {
  const std::int64_t own = blockIdx.x;
  const std::int32_t token = tokens[own];
  if (!range.holds(token)) return;
  for (std::int64_t first = 0; first < own; first += kWarp) {
    if (matches(tokens, first, 0, own, token) != 0) return;
  }
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * kColumnsOfLane * kWarp + threadIdx.x;
  float sum[kColumnsOfLane] = {};
  for (std::int64_t first = own; first < dout.count; first += kWarp) {
    for (unsigned left = matches(tokens, first, own, dout.count, token); left != 0; left &= left - 1) {
      const S* row = dout[first + __ffs(left) - 1];
      for (int k = 0; k < kColumnsOfLane; ++k) {
        const std::int64_t c = column + k * static_cast<std::int64_t>(kWarp);
        if (c < dout.width) sum[k] += widen(row[c]);
      }
    }
  }
  G* row = dtable + range.local(token) * dout.width;
  for (int k = 0; k < kColumnsOfLane; ++k) {
    const std::int64_t c = column + k * static_cast<std::int64_t>(kWarp);
    if (c < dout.width) row[c] = narrow<G>(widen(row[c]) + sum[k]);
  }
}

// `first_row` is the number of row 0 in the whole batch.
template <class S>
__global__ void add_positions(const S* table, Rows<S> x, std::int64_t first_row, std::int64_t batch) {
  const std::int64_t t = blockIdx.x;
  const S* row = table + (first_row + t) / batch * x.width;
  for (std::int64_t c = threadIdx.x; c < x.width; c += blockDim.x) x[t][c] = narrow<S>(widen(x[t][c]) + widen(row[c]));
}

// A block for each position; its rows are neighbours, one of each sequence.
template <class S, class G>
__global__ void add_rows_of_position(Rows<S> dx, std::int64_t first_row, std::int64_t batch, G* dtable) {
  const std::int64_t position = first_row / batch + blockIdx.x;
  const std::int64_t begin = std::max<std::int64_t>(position * batch - first_row, 0);
  const std::int64_t end = std::min((position + 1) * batch - first_row, dx.count);
  G* row = dtable + position * dx.width;
  for (std::int64_t c = threadIdx.x; c < dx.width; c += blockDim.x) {
    float sum = 0;
    for (std::int64_t t = begin; t < end; ++t) sum += widen(dx[t][c]);
    row[c] = narrow<G>(widen(row[c]) + sum);
  }
}

// The own rows' first and last position, of a table of `table_rows`.
struct Positions {
  std::int64_t first_row;
  std::int64_t count;
};

Positions positions_of(const KernelContext& context, std::int64_t rows, std::int64_t table_rows) {
  const std::int64_t batch = attributes(context).batch;
  const std::int64_t first_row = context.index * rows;
  CHECK(batch > 0 && rows > 0, batch, rows);
  const std::int64_t last = (first_row + rows - 1) / batch;
  CHECK(last < table_rows, last, table_rows);
  return {first_row, last - first_row / batch + 1};
}

__global__ void draw_tokens(RandomStream stream, std::int64_t first_sample, std::int64_t batch, std::int64_t vocab,
                            std::int64_t count, std::int32_t* tokens, std::int32_t* targets) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    const std::int64_t position = i / batch;
    const std::int64_t sample = first_sample + i % batch;
    tokens[i] = token_at(stream, sample, position, vocab);
    targets[i] = token_at(stream, sample, position + 1, vocab);
  }
}

}  // namespace

void embedding_forward(const KernelContext& context) {
  for_device_storage(dtype(context, 2), [&]<class S>() {
    const auto tokens = rows<std::int32_t>(context, 0);
    const auto table = rows<S>(context, 1);
    const auto out = rows<S>(context, 2);
    CHECK(tokens.size() == out.count && table.width == out.width, tokens.size(), out.count, table.width, out.width);
    launch_rows(context, out.count, out.width, &look_up<S>, tokens.data, vocabulary_range(context, table.count),
                table.data, out);
  });
}

void embedding_backward(const KernelContext& context) {
  for_device_source_and_result(dtype(context, 1), dtype(context, 2), [&]<class S, class G>() {
    const auto tokens = rows<std::int32_t>(context, 0);
    const auto dout = rows<S>(context, 1);
    const auto dtable = rows<G>(context, 2);
    CHECK(tokens.size() == dout.count && dtable.width == dout.width, tokens.size(), dout.count, dtable.width,
          dout.width);
    constexpr std::int64_t kColumns = std::int64_t{kColumnsOfLane} * kWarp;
    Grid grid{.blocks = blocks_of_rows(dout.count), .threads = dim3(kWarp)};
    grid.blocks.y = static_cast<unsigned>((dout.width + kColumns - 1) / kColumns);
    launch(context, grid, &add_rows_of_token<S, G>, tokens.data, vocabulary_range(context, dtable.count), dout,
           dtable.data);
  });
}

void position_forward(const KernelContext& context) {
  for_device_storage(dtype(context, 1), [&]<class S>() {
    const auto table = rows<S>(context, 0);
    const auto x = rows<S>(context, 1);
    CHECK(table.width == x.width, table.width, x.width);
    const Positions at = positions_of(context, x.count, table.count);
    launch_rows(context, x.count, x.width, &add_positions<S>, table.data, x, at.first_row, attributes(context).batch);
  });
}

void position_backward(const KernelContext& context) {
  for_device_source_and_result(dtype(context, 0), dtype(context, 1), [&]<class S, class G>() {
    const auto dx = rows<S>(context, 0);
    const auto dtable = rows<G>(context, 1);
    CHECK(dtable.width == dx.width, dtable.width, dx.width);
    const Positions at = positions_of(context, dx.count, dtable.count);
    launch_rows(context, at.count, dx.width, &add_rows_of_position<S, G>, dx, at.first_row, attributes(context).batch,
                dtable.data);
  });
}

void token_load(const KernelContext& context) {
  const auto tokens = rows<std::int32_t>(context, 0);
  const auto targets = rows<std::int32_t>(context, 1);
  const program::Attributes& a = attributes(context);
  CHECK(a.batch > 0 && a.vocab > 0 && a.count >= 0 && a.count < a.microbatches, a.batch, a.vocab, a.count,
        a.microbatches);
  CHECK(tokens.size() == targets.size() && tokens.size() % a.batch == 0, tokens.size(), targets.size(), a.batch);
  CHECK(tokens.size() / a.batch < kMaxSequence, tokens.size(), a.batch);
  const std::int64_t first_sample = (context.index * a.microbatches + a.count) * a.batch;
  launch_elements(context, tokens.size(), &draw_tokens, RandomStream(context.seed, "tokens"), first_sample, a.batch,
                  a.vocab, tokens.size(), tokens.data, targets.data);
}

}  // namespace stepcast::kernels::cuda
