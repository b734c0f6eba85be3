// The gradient of tiled attention (Dao et al. 2022, FlashAttention, arXiv:2205.14135, algorithm 4), formulas as in
// cpu/attention.cc: probabilities are made again from the saved log-sum-exp, tile by tile. One kernel has a tile of
// keys and goes through all queries for dk and dv, another has a tile of queries and goes through all keys for dq:
// every sum is one block's, in one order, at the price of making the probabilities twice.
#include "kernels/cuda/attention_tiles.h"
#include "kernels/cuda/cuda_kernels.h"

namespace stepcast::kernels::cuda {
namespace {

template <class S>
struct BackwardOperands {
  const S* dout;
  const S* qkv;
  const S* keys;  // rows that have k and v
  const S* out;
  const float* lse;
  float* delta;  // dout . out, of every (row, head)
  S* dqkv;
  S* dkeys;  // rows whose k and v columns are filled
  bool add;  // queries' gradients to what dqkv holds
};

// dout . out, a warp for each (row, head).
template <class S>
__global__ void sum_products(const S* dout, const S* out, float* delta, std::int64_t count, std::int64_t dim) {
  const std::int64_t warp = first_element() / kWarp;
  if (warp >= count) return;
  float sum = 0;
  for (std::int64_t c = threadIdx.x % kWarp; c < dim; c += kWarp) {
    sum += widen(dout[warp * dim + c]) * widen(out[warp * dim + c]);
  }
  sum = over_warp<Sum>(sum);
  if (threadIdx.x % kWarp == 0) delta[warp] = sum;
}

// Columns [first, first + columns) of every row.
template <class S>
__global__ void clear_columns(S* data, std::int64_t width, std::int64_t first, std::int64_t columns,
                              std::int64_t count) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    data[i / columns * width + first + i % columns] = narrow<S>(0.0F);
  }
}

// Shared memory of a block: tiles of queries, of their outputs' gradients, of keys and of values; the probabilities
// (after dropout) and the gradients of the scores of one pair of tiles; what is known of the queries.
template <int kTile>
struct BackwardTiles {
  using Sizes = TileSizes<kTile>;
  Sizes sizes;

  static std::size_t bytes(const Sizes& sizes) {
    return static_cast<std::size_t>(4 * sizes.floats() + 2 * Sizes::kScores + 2 * kTile) * sizeof(float);
  }
  __device__ float* queries() const { return shared_memory<float>(); }
  __device__ float* douts() const { return queries() + sizes.floats(); }
  __device__ float* keys() const { return douts() + sizes.floats(); }
  __device__ float* values() const { return keys() + sizes.floats(); }
  __device__ float* probabilities() const { return values() + sizes.floats(); }
  __device__ float* dscores() const { return probabilities() + Sizes::kScores; }
  __device__ float* lse() const { return dscores() + Sizes::kScores; }
  __device__ float* delta() const { return lse() + kTile; }
};

// Neighbouring positions of one sequence, in the operand of queries or of keys.
struct Positions {
  std::int64_t first;
  std::int64_t count;
};

__device__ inline Positions tile_at(std::int64_t first, std::int64_t positions, int tile) {
  const std::int64_t rest = positions - first;
  return {first, rest < tile ? rest : tile};
}

template <class S, int kTile>
__device__ void load_queries(const BackwardOperands<S>& in, const AttentionCall& call, std::int64_t b,
                             std::int64_t head, Positions at, const BackwardTiles<kTile>& tiles) {
  const cpu::AttentionLayout& heads = call.heads;
  const std::int64_t row = heads.row(at.first, b);
  const std::int64_t width = heads.heads * heads.dim;
  load_tile<kTile, S>(tiles.sizes, {in.qkv + row * heads.width() + heads.query(head), heads.batch * heads.width()},
                      at.count, tiles.queries());
  load_tile<kTile, S>(tiles.sizes, {in.dout + row * width + heads.query(head), heads.batch * width}, at.count,
                      tiles.douts());
  for (int r = static_cast<int>(threadIdx.x); r < kTile; r += static_cast<int>(kBlock)) {
    const std::int64_t of_head = (row + r * heads.batch) * heads.heads + head;
    tiles.lse()[r] = r < at.count ? in.lse[of_head] : 0.0F;
    tiles.delta()[r] = r < at.count ? in.delta[of_head] : 0.0F;
  }
}

template <class S, int kTile>
__device__ void load_keys(const BackwardOperands<S>& in, const AttentionCall& call, std::int64_t b, std::int64_t kv,
                          Positions at, const BackwardTiles<kTile>& tiles) {
  const S* row = in.keys + call.heads.row(at.first, b) * call.key_width;
  const std::int64_t step = call.heads.batch * call.key_width;
  load_tile<kTile, S>(tiles.sizes, {row + call.key_column(kv), step}, at.count, tiles.keys());
  load_tile<kTile, S>(tiles.sizes, {row + call.value_column(kv), step}, at.count, tiles.values());
}

// Probabilities and gradients of the scores of a tile of queries and one of keys; zero where a key is not seen.
template <int kTile>
__device__ void differentiate(const AttentionCall& call, Positions queries, Positions keys, float scale,
                              const HeadRule& rule, const BackwardTiles<kTile>& tiles) {
  constexpr int kRows = TileSizes<kTile>::kRows;
  float scores[kRows][kRows];
  float gradients[kRows][kRows];
  multiply_rows<kTile>(tiles.sizes, tiles.queries(), tiles.keys(), scores);
  multiply_rows<kTile>(tiles.sizes, tiles.douts(), tiles.values(), gradients);
  for (int j = 0; j < kRows; ++j) {
    const int column = side_x() + j * kSide;
    const std::int64_t key = column < keys.count ? call.key_position(keys.first + column) : 0;
    for (int i = 0; i < kRows; ++i) {
      const int row = side_y() + i * kSide;
      const std::int64_t query = row < queries.count ? call.queries.position(queries.first + row) : -1;
      float p = 0;
      float ds = 0;
      if (column < keys.count && key <= query) {
        p = std::exp(rule.biased(scale * scores[i][j], query, key) - tiles.lse()[row]);
        ds = p * (rule.dropped(gradients[i][j], query, key) - tiles.delta()[row]) * scale;
        p = rule.dropped(p, query, key);
      }
      tiles.probabilities()[row * TileSizes<kTile>::kScoreStride + column] = p;
      tiles.dscores()[row * TileSizes<kTile>::kScoreStride + column] = ds;
    }
  }
}

// dk and dv of a tile of keys of one (sequence, kv head): the sums over the query heads that share it.
template <class S, int kTile>
__global__ void __launch_bounds__(kBlock)
    differentiate_keys(BackwardOperands<S> in, AttentionCall call, ScoreRule score_rule, float scale) {
  using Sizes = TileSizes<kTile>;
  const BackwardTiles<kTile> tiles{Sizes(call.heads.dim)};
  const std::int64_t matrices = call.heads.batch * call.heads.kv_heads;
  const std::int64_t kv = blockIdx.x % matrices % call.heads.kv_heads;
  const std::int64_t b = blockIdx.x % matrices / call.heads.kv_heads;
  const Positions keys = tile_at(blockIdx.x / matrices * kTile, call.key_positions, kTile);
  load_keys<S, kTile>(in, call, b, kv, keys, tiles);
  ThreadSums<kTile> dkeys;
  ThreadSums<kTile> dvalues;
  dkeys.clear();
  dvalues.clear();
  for (std::int64_t head = kv * call.heads.group(); head < (kv + 1) * call.heads.group(); ++head) {
    const HeadRule rule(score_rule, b, head);
    for (std::int64_t first = 0; first < call.heads.sequence; first += kTile) {
      const Positions queries = tile_at(first, call.heads.sequence, kTile);
      if (!call.sees_any(queries.first, queries.count, keys.first, keys.count)) continue;
      __syncthreads();
      load_queries<S, kTile>(in, call, b, head, queries, tiles);
      __syncthreads();
      differentiate<kTile>(call, queries, keys, scale, rule, tiles);
      __syncthreads();
      const int depth = static_cast<int>(queries.count);
      dvalues.add_mixture(tiles.sizes, tiles.probabilities(), 1, Sizes::kScoreStride, depth, tiles.douts());
      dkeys.add_mixture(tiles.sizes, tiles.dscores(), 1, Sizes::kScoreStride, depth, tiles.queries());
    }
  }
  S* row = in.dkeys + call.heads.row(keys.first, b) * call.key_width;
  const std::int64_t step = call.heads.batch * call.key_width;
  dkeys.for_each(tiles.sizes, keys.count, [&](int r, int channel, float sum) {
    row[r * step + call.key_column(kv) + channel] = narrow<S>(sum);
  });
  dvalues.for_each(tiles.sizes, keys.count, [&](int r, int channel, float sum) {
    row[r * step + call.value_column(kv) + channel] = narrow<S>(sum);
  });
}

// dq of a tile of queries of one (sequence, head).
template <class S, int kTile>
__global__ void __launch_bounds__(kBlock)
    differentiate_queries(BackwardOperands<S> in, AttentionCall call, ScoreRule score_rule, float scale) {
  using Sizes = TileSizes<kTile>;
  const BackwardTiles<kTile> tiles{Sizes(call.heads.dim)};
  const std::int64_t matrices = call.heads.batch * call.heads.heads;
  const std::int64_t head = blockIdx.x % matrices % call.heads.heads;
  const std::int64_t b = blockIdx.x % matrices / call.heads.heads;
  const std::int64_t tile = gridDim.x / matrices - 1 - blockIdx.x / matrices;  // those that see most keys start first
  const Positions queries = tile_at(tile * kTile, call.heads.sequence, kTile);
  const HeadRule rule(score_rule, b, head);
  load_queries<S, kTile>(in, call, b, head, queries, tiles);
  ThreadSums<kTile> sums;
  sums.clear();
  for (std::int64_t first = 0; first < call.key_positions; first += kTile) {
    const Positions keys = tile_at(first, call.key_positions, kTile);
    if (!call.sees_any(queries.first, queries.count, keys.first, keys.count)) continue;
    __syncthreads();
    load_keys<S, kTile>(in, call, b, head / call.heads.group(), keys, tiles);
    __syncthreads();
    differentiate<kTile>(call, queries, keys, scale, rule, tiles);
    __syncthreads();
    sums.add_mixture(tiles.sizes, tiles.dscores(), Sizes::kScoreStride, 1, static_cast<int>(keys.count), tiles.keys());
  }
  S* row = in.dqkv + call.heads.row(queries.first, b) * call.heads.width() + call.heads.query(head);
  const std::int64_t step = call.heads.batch * call.heads.width();
  sums.for_each(tiles.sizes, queries.count, [&](int r, int channel, float sum) {
    S* to = row + r * step + channel;
    *to = narrow<S>(in.add ? widen(*to) + sum : sum);
  });
}

template <class S>
void backward(const KernelContext& context, BackwardOperands<S> in, const AttentionCall& call, const ScoreRule& rule) {
  const cpu::AttentionLayout& heads = call.heads;
  const std::int64_t rows_and_heads = heads.sequence * heads.batch * heads.heads;
  in.delta = reinterpret_cast<float*>(scratch(context, static_cast<std::size_t>(rows_and_heads) * sizeof(float)));
  constexpr std::int64_t kWarps = kBlock / kWarp;
  launch(context, {.blocks = blocks_of_rows((rows_and_heads + kWarps - 1) / kWarps)}, &sum_products<S>, in.dout, in.out,
         in.delta, rows_and_heads, heads.dim);
  for_tile(heads.dim, [&]<int kTile>() {
    const std::size_t bytes = BackwardTiles<kTile>::bytes(TileSizes<kTile>(heads.dim));
    const auto scale = cpu::scale_of<float>(heads);
    const std::int64_t key_blocks = tiles_of(call.key_positions, kTile) * heads.batch * heads.kv_heads;
    launch(context, {.blocks = blocks_of_rows(key_blocks), .shared_bytes = bytes}, &differentiate_keys<S, kTile>, in,
           call, rule, scale);
    const std::int64_t query_blocks = tiles_of(heads.sequence, kTile) * heads.batch * heads.heads;
    launch(context, {.blocks = blocks_of_rows(query_blocks), .shared_bytes = bytes}, &differentiate_queries<S, kTile>,
           in, call, rule, scale);
  });
}

template <class S>
void check_operands(const cpu::AttentionLayout& heads, const Rows<S>& dout, const Rows<S>& out, const Rows<float>& lse,
                    const Rows<S>& dqkv) {
  const std::int64_t tokens = heads.sequence * heads.batch;
  CHECK(out.size() == tokens * heads.heads * heads.dim && dout.size() == out.size(), out.size(), dout.size(), tokens);
  CHECK(lse.size() == tokens * heads.heads && dqkv.size() == tokens * heads.width(), lse.size(), dqkv.size(), tokens);
}

}  // namespace

void attention_backward(const KernelContext& context) {
  for_device_storage(dtype(context, 1), [&]<class S>() {
    const auto dout = rows<S>(context, 0);
    const auto qkv = rows<S>(context, 1);
    const auto out = rows<S>(context, 2);
    const auto lse = rows<float>(context, 3);
    const auto dqkv = rows<S>(context, 4);
    const cpu::AttentionLayout heads = cpu::attention_layout(context, qkv.count, qkv.width);
    check_operands(heads, dout, out, lse, dqkv);
    backward<S>(context, {dout.data, qkv.data, qkv.data, out.data, lse.data, nullptr, dqkv.data, dqkv.data, false},
                whole_call(heads), whole_rule(context, heads));
  });
}

void share_attention_backward(const KernelContext& context) {
  for_device_storage(dtype(context, 1), [&]<class S>() {
    const auto dout = rows<S>(context, 0);
    const auto qkv = rows<S>(context, 1);
    const auto kv = rows<S>(context, 2);
    const auto out = rows<S>(context, 3);
    const auto lse = rows<float>(context, 4);
    const auto dqkv = rows<S>(context, 5);
    const auto dkv = rows<S>(context, 6);
    const cpu::AttentionLayout heads = cpu::attention_layout(context, qkv.count, qkv.width);
    check_operands(heads, dout, out, lse, dqkv);
    CHECK(dkv.size() == kv.size(), dkv.size(), kv.size());
    backward<S>(context,
                {dout.data, qkv.data, kv.data, out.data, lse.data, nullptr, dqkv.data, dkv.data, context.accumulate},
                share_call(context, heads, kv.count, kv.width), share_rule(context));
    if (context.accumulate) return;
    const std::int64_t columns = 2 * heads.kv_heads * heads.dim;
    launch_elements(context, qkv.count * columns, &clear_columns<S>, dqkv.data, dqkv.width, heads.key(0), columns,
                    qkv.count * columns);
  });
}

}  // namespace stepcast::kernels::cuda
