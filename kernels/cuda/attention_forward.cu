// Tiled attention with a running softmax (Dao et al. 2022, FlashAttention, arXiv:2205.14135, algorithm 1): of each
// query the largest score so far, the sum of exponentials relative to it, and the values mixed with them. A tile of
// keys with a larger score scales sum and mixture down. Keys of other shares, merged before, are one more tile.
//
// A block has one tile of queries of one (sequence, head). What is attended to whom: cpu/attention.cc, cpu/context.cc.
#include "kernels/cuda/attention_tiles.h"
#include "kernels/cuda/cuda_kernels.h"

namespace stepcast::kernels::cuda {
namespace {

template <class S>
struct ForwardOperands {
  const S* qkv;
  const S* keys;  // rows that have k and v
  S* out;
  float* lse;
  bool merge;  // into what out and lse hold
};

// Shared memory of a block. Keys and values take turns in one tile.
template <int kTile>
struct ForwardTiles {
  using Sizes = TileSizes<kTile>;
  Sizes sizes;

  static std::size_t bytes(const Sizes& sizes) {
    return static_cast<std::size_t>(2 * sizes.floats() + Sizes::kScores + kTile) * sizeof(float);
  }
  __device__ float* queries() const { return shared_memory<float>(); }
  __device__ float* keys() const { return queries() + sizes.floats(); }
  __device__ float* scores() const { return keys() + sizes.floats(); }
  __device__ float* factors() const { return scores() + Sizes::kScores; }  // of the rows of the mixture
};

// The softmax of one query so far. kLanes threads share a query and hold the same; each treats every kLanes-th key.
template <int kTile>
struct RunningSoftmax {
  static constexpr int kLanes = TileSizes<kTile>::kLanes;
  float largest = kHidden;
  double sum = 0;

  __device__ static int row() { return static_cast<int>(threadIdx.x) / kLanes; }
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kLanes; }

  // Keys merged before.
  __device__ void start(float lse) {
    largest = lse;
    sum = lse == kHidden ? 0 : 1;
  }
  // Turns the scores of a tile into weights relative to the largest so far; returns what scales earlier ones.
  __device__ float add(float* scores) {
    float largest_here = largest;
    for (int j = lane(); j < kTile; j += kLanes) largest_here = Max()(largest_here, scores[j]);
    largest_here = over_warp<Max, kLanes>(largest_here);
    double added = 0;
    for (int j = lane(); j < kTile; j += kLanes) {
      scores[j] = scores[j] == kHidden ? 0.0F : std::exp(scores[j] - largest_here);
      added += static_cast<double>(scores[j]);
    }
    added = over_warp<Sum, kLanes>(added);
    const float shrink = largest == kHidden ? 0.0F : std::exp(largest - largest_here);
    sum = sum * static_cast<double>(shrink) + added;
    largest = largest_here;
    return shrink;
  }
  __device__ float lse() const { return static_cast<float>(static_cast<double>(largest) + std::log(sum)); }
};

// What a block does.
struct QueryTile {
  std::int64_t head, b, first, count;
  std::int64_t row;     // of the first query
  std::int64_t column;  // of the head in its row

  // The blocks of the last queries, which see most keys, start first.
  template <int kTile>
  __device__ static QueryTile own(const AttentionCall& call) {
    const std::int64_t matrices = call.heads.batch * call.heads.heads;
    const std::int64_t matrix = blockIdx.x % matrices;
    const std::int64_t first = (gridDim.x / matrices - 1 - blockIdx.x / matrices) * kTile;
    const std::int64_t rest = call.heads.sequence - first;
    const std::int64_t head = matrix % call.heads.heads;
    const std::int64_t b = matrix / call.heads.heads;
    return {head, b, first, rest < kTile ? rest : kTile, call.heads.row(first, b), call.heads.query(head)};
  }
};

// Scores of one tile to shared memory: scaled, with bias; hidden ones where a query does not see a key.
template <int kTile>
__device__ void score_tile(const AttentionCall& call, const QueryTile& at, std::int64_t first_key, float scale,
                           const HeadRule& rule, const ForwardTiles<kTile>& tiles) {
  constexpr int kRows = TileSizes<kTile>::kRows;
  float scores[kRows][kRows];
  multiply_rows<kTile>(tiles.sizes, tiles.queries(), tiles.keys(), scores);
  for (int j = 0; j < kRows; ++j) {
    const std::int64_t own_key = first_key + side_x() + j * kSide;
    const std::int64_t key = own_key < call.key_positions ? call.key_position(own_key) : 0;
    for (int i = 0; i < kRows; ++i) {
      const int row = side_y() + i * kSide;
      const std::int64_t query = row < at.count ? call.queries.position(at.first + row) : -1;
      const bool seen = own_key < call.key_positions && key <= query;
      tiles.scores()[row * TileSizes<kTile>::kScoreStride + side_x() + j * kSide] =
          seen ? rule.biased(scale * scores[i][j], query, key) : kHidden;
    }
  }
}

// The weights of the thread's query.
template <int kTile>
__device__ void drop_weights(const AttentionCall& call, const QueryTile& at, std::int64_t first_key,
                             const HeadRule& rule, float* weights) {
  using Running = RunningSoftmax<kTile>;
  const std::int64_t query = call.queries.position(at.first + Running::row());
  for (int j = Running::lane(); j < kTile && first_key + j < call.key_positions; j += Running::kLanes) {
    if (weights[j] != 0) weights[j] = rule.dropped(weights[j], query, call.key_position(first_key + j));
  }
}

template <class S, int kTile>
__global__ void __launch_bounds__(kBlock)
    attend(ForwardOperands<S> in, AttentionCall call, ScoreRule score_rule, float scale) {
  using Sizes = TileSizes<kTile>;
  const ForwardTiles<kTile> tiles{Sizes(call.heads.dim)};
  const QueryTile at = QueryTile::own<kTile>(call);
  const HeadRule rule(score_rule, at.b, at.head);
  const std::int64_t kv = at.head / call.heads.group();
  const std::int64_t out_width = call.heads.heads * call.heads.dim;
  const std::int64_t row_step = call.heads.batch;  // rows of one sequence
  S* out = in.out + at.row * out_width + at.column;
  float* lse = in.lse + at.row * call.heads.heads + at.head;
  const int softmax_row = RunningSoftmax<kTile>::row();

  RunningSoftmax<kTile> running;
  ThreadSums<kTile> mixed;
  mixed.clear();
  if (in.merge) {
    if (softmax_row < at.count) running.start(lse[softmax_row * row_step * call.heads.heads]);
    mixed.for_each(tiles.sizes, at.count,
                   [&](int row, int channel, float& sum) { sum = widen(out[row * row_step * out_width + channel]); });
  }
  load_tile<kTile, S>(tiles.sizes, {in.qkv + at.row * call.heads.width() + at.column, row_step * call.heads.width()},
                      at.count, tiles.queries());
  float* weights = tiles.scores() + softmax_row * Sizes::kScoreStride;
  for (std::int64_t first = 0; first < call.key_positions; first += kTile) {
    const std::int64_t rest = call.key_positions - first;
    const std::int64_t count = rest < kTile ? rest : kTile;
    if (!call.sees_any(at.first, at.count, first, count)) continue;
    const S* keys = in.keys + call.heads.row(first, at.b) * call.key_width;
    const std::int64_t key_step = row_step * call.key_width;
    __syncthreads();
    load_tile<kTile, S>(tiles.sizes, {keys + call.key_column(kv), key_step}, count, tiles.keys());
    __syncthreads();
    score_tile<kTile>(call, at, first, scale, rule, tiles);
    __syncthreads();
    load_tile<kTile, S>(tiles.sizes, {keys + call.value_column(kv), key_step}, count, tiles.keys());
    const float shrink = running.add(weights);
    if (score_rule.drops) drop_weights<kTile>(call, at, first, rule, weights);
    if (RunningSoftmax<kTile>::lane() == 0) tiles.factors()[softmax_row] = shrink;
    __syncthreads();
    mixed.scale_rows(tiles.factors());
    mixed.add_mixture(tiles.sizes, tiles.scores(), Sizes::kScoreStride, 1, static_cast<int>(count), tiles.keys());
  }
  __syncthreads();
  if (RunningSoftmax<kTile>::lane() == 0) {
    tiles.factors()[softmax_row] = running.sum > 0 ? static_cast<float>(1.0 / running.sum) : 0.0F;
    if (softmax_row < at.count) lse[softmax_row * row_step * call.heads.heads] = running.lse();
  }
  __syncthreads();
  mixed.scale_rows(tiles.factors());
  mixed.for_each(tiles.sizes, at.count,
                 [&](int row, int channel, float sum) { out[row * row_step * out_width + channel] = narrow<S>(sum); });
}

template <class S>
void forward(const KernelContext& context, const ForwardOperands<S>& in, const AttentionCall& call,
             const ScoreRule& rule) {
  for_tile(call.heads.dim, [&]<int kTile>() {
    const TileSizes<kTile> sizes(call.heads.dim);
    const std::int64_t blocks = tiles_of(call.heads.sequence, kTile) * call.heads.batch * call.heads.heads;
    launch(context, {.blocks = blocks_of_rows(blocks), .shared_bytes = ForwardTiles<kTile>::bytes(sizes)},
           &attend<S, kTile>, in, call, rule, cpu::scale_of<float>(call.heads));
  });
}

void check_results(const KernelContext& context, const cpu::AttentionLayout& heads, std::size_t out) {
  const std::int64_t tokens = heads.sequence * heads.batch;
  const std::int64_t out_elements = operand(context, out).type.shape.elements();
  const std::int64_t lse_elements = operand(context, out + 1).type.shape.elements();
  CHECK(out_elements == tokens * heads.heads * heads.dim && lse_elements == tokens * heads.heads, out_elements,
        lse_elements, tokens);
}

}  // namespace

void attention_forward(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() {
    const auto qkv = rows<S>(context, 0);
    const cpu::AttentionLayout heads = cpu::attention_layout(context, qkv.count, qkv.width);
    check_results(context, heads, 1);
    const ForwardOperands<S> in{qkv.data, qkv.data, rows<S>(context, 1).data, rows<float>(context, 2).data, false};
    forward(context, in, whole_call(heads), whole_rule(context, heads));
  });
}

void share_attention_forward(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() {
    const auto qkv = rows<S>(context, 0);
    const auto kv = rows<S>(context, 1);
    const cpu::AttentionLayout heads = cpu::attention_layout(context, qkv.count, qkv.width);
    check_results(context, heads, 2);
    const ForwardOperands<S> in{qkv.data, kv.data, rows<S>(context, 2).data, rows<float>(context, 3).data,
                                context.accumulate};
    forward(context, in, share_call(context, heads, kv.count, kv.width), share_rule(context));
  });
}

}  // namespace stepcast::kernels::cuda
