// What both directions of tiled attention share: which queries see which keys, tiles of rows in shared memory, products
// of tiles, and what happens to a score.
//
// A block of 256 threads, as 16 x 16, has tiles of kTile rows, widened to float: thread (x, y) computes the rows
// y, y + 16, ... and the columns x, x + 16, ... of a product. Tiles are as long as shared memory allows for the width
// of a head: 64 rows of up to 128 channels, or 32 of up to 256.
#pragma once

#include <limits>

#include "kernels/cpu/attention_layout.h"
#include "kernels/cpu/dropout_mask.h"
#include "kernels/cuda/reduce.h"
#include "kernels/share.h"

namespace stepcast::kernels::cuda {

inline constexpr int kSide = 16;  // threads of a block along rows and along columns
inline constexpr float kHidden = -std::numeric_limits<float>::infinity();  // score of a key that is not seen

// One call of attention: where its queries and keys lie in their operands and in the whole sequence.
struct AttentionCall {
  cpu::AttentionLayout heads{};    // of the rows of qkv
  Share queries;                   // which positions the rows of qkv are
  Share keys;                      // which the keys are; of the first member where all members' are there
  bool gathered = false;           // keys of all members, one after the other
  std::int64_t key_positions = 0;  // of one sequence
  std::int64_t key_width = 0;      // of a row that has keys
  std::int64_t key_begin = 0;      // column of its first key head

  constexpr std::int64_t key_column(std::int64_t kv_head) const { return key_begin + kv_head * heads.dim; }
  constexpr std::int64_t value_column(std::int64_t kv_head) const { return key_column(heads.kv_heads + kv_head); }
  constexpr std::int64_t key_position(std::int64_t own) const {
    if (!gathered) return keys.position(own);
    return Share{own / keys.positions, keys.members, keys.positions}.position(own % keys.positions);
  }
  // Of `count` keys from `first` on: positions of a member's share grow.
  constexpr std::int64_t smallest_key_position(std::int64_t first, std::int64_t count) const {
    std::int64_t smallest = key_position(first);
    std::int64_t next = (first / keys.positions + 1) * keys.positions;  // the next member's
    for (; next < first + count; next += keys.positions) {
      const std::int64_t position = key_position(next);
      smallest = position < smallest ? position : smallest;
    }
    return smallest;
  }
  constexpr bool sees_any(std::int64_t first_query, std::int64_t queries_here, std::int64_t first_key,
                          std::int64_t keys_here) const {
    const std::int64_t last = queries.position(first_query + queries_here - 1);
    return smallest_key_position(first_key, keys_here) <= last;
  }
};

// Every position attends to those up to itself; keys are in the rows of qkv.
inline AttentionCall whole_call(const cpu::AttentionLayout& heads) {
  const Share all{0, 1, heads.sequence};
  return {heads, all, all, false, heads.sequence, heads.width(), heads.key(0)};
}

// Queries of the own share, keys of another share or of all: op.h, share_attention_forward. `kv_rows` tells which.
inline AttentionCall share_call(const KernelContext& context, const cpu::AttentionLayout& heads, std::int64_t kv_rows,
                                std::int64_t kv_width) {
  const std::int64_t members = context.index_count;
  const std::int64_t tokens = heads.sequence * heads.batch;
  const bool gathered = kv_rows != tokens;
  CHECK(!gathered || kv_rows == members * tokens, tokens, kv_rows, members);
  CHECK(kv_width == 2 * heads.kv_heads * heads.dim, kv_width, heads.kv_heads, heads.dim);
  const std::int64_t source = program::member_position(context.index - attributes(context).count, members);
  return {heads,
          {context.index, members, heads.sequence},
          {gathered ? 0 : source, members, heads.sequence},
          gathered,
          kv_rows / heads.batch,
          kv_width,
          0};
}

// ALiBi and dropout of scores. Shares have neither.
struct ScoreRule {
  bool drops = false;
  cpu::DropoutMask mask;
  std::int64_t model_heads = 0;  // of the whole model
  std::int64_t first_head = 0;   // the rank's first one
  std::int64_t alibi_heads = 0;  // of the whole model with ALiBi, 0: none
  std::int64_t sequence = 0;
};

inline ScoreRule whole_rule(const KernelContext& context, const cpu::AttentionLayout& heads) {
  const cpu::DropoutMask mask(context, program::DropoutSite::kScores);
  return {
      mask.active(), mask, heads.heads * context.index_count, heads.heads * context.index, attributes(context).count,
      heads.sequence};
}

inline ScoreRule share_rule(const KernelContext& context) {
  return {false, cpu::DropoutMask(context, program::DropoutSite::kScores), 0, 0, 0, 0};
}

// The rule for the scores of one (sequence, head).
class HeadRule {
 public:
  __device__ HeadRule(const ScoreRule& rule, std::int64_t b, std::int64_t head)
      : rule_(rule),
        first_(cpu::first_score(rule.mask.sample(b), rule.model_heads, rule.first_head + head, rule.sequence)),
        slope_(rule.alibi_heads == 0 ? 0.0 : cpu::alibi_slope(rule.first_head + head, rule.alibi_heads)) {}

  __device__ float biased(float score, std::int64_t query, std::int64_t key) const {
    if (slope_ == 0) return score;
    return score - static_cast<float>(slope_ * static_cast<double>(query - key));
  }
  // value * mask / (1 - p)
  __device__ float dropped(float value, std::int64_t query, std::int64_t key) const {
    if (!rule_.drops) return value;
    const bool keeps = rule_.mask.keeps(first_ + static_cast<std::uint64_t>(query * rule_.sequence + key));
    return keeps ? value * static_cast<float>(rule_.mask.scale()) : 0.0F;
  }

 private:
  const ScoreRule& rule_;
  std::uint64_t first_;
  double slope_;
};

// The extents of tiles of kTile rows, for heads of `dim` channels.
template <int kTile>
struct TileSizes {
  static constexpr int kRows = kTile / kSide;                      // of a thread
  static constexpr int kChannels = 8192 / kTile / kSide;           // of a thread: 128 or 256 columns
  static constexpr int kLanes = static_cast<int>(kBlock) / kTile;  // threads that share a row of scores
  static constexpr int kScoreStride = kTile + 1;
  static constexpr int kScores = kTile * kScoreStride;

  int dim = 0;
  int padded = 0;  // with channels of zeros up to a multiple of 16
  int stride = 0;  // odd: 16 rows of one channel are in 16 banks

  explicit constexpr TileSizes(std::int64_t head_dim)
      : dim(static_cast<int>(head_dim)), padded((dim + kSide - 1) / kSide * kSide), stride(padded + 1) {}
  constexpr int floats() const { return kTile * stride; }
};

// Calls body.operator()<kTile>() with the longest tiles that heads of `dim` channels allow.
template <class Body>
void for_tile(std::int64_t dim, const Body& body) {
  if (dim <= 128) return body.template operator()<64>();
  CHECK(dim <= 256, "heads have up to 256 channels", dim);
  body.template operator()<32>();
}

inline std::int64_t tiles_of(std::int64_t positions, int tile) { return (positions + tile - 1) / tile; }

__device__ inline int side_x() { return static_cast<int>(threadIdx.x) % kSide; }
__device__ inline int side_y() { return static_cast<int>(threadIdx.x) / kSide; }

// Rows of the channels of one head: row r begins at data + r * stride.
template <class S>
struct HeadRows {
  S* data;
  std::int64_t stride;
};

// `count` rows to a tile; what is behind them, and behind the channels, is zero.
template <int kTile, class S>
__device__ void load_tile(const TileSizes<kTile>& sizes, HeadRows<const S> from, std::int64_t count, float* to) {
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  for (int r = static_cast<int>(threadIdx.x / kWarp); r < kTile; r += static_cast<int>(kBlock / kWarp)) {
    const S* row = from.data + r * from.stride;
    for (int c = lane; c < sizes.padded; c += static_cast<int>(kWarp)) {
      to[r * sizes.stride + c] = r < count && c < sizes.dim ? widen(row[c]) : 0.0F;
    }
  }
}

// scores[i][j] = sum over channels of a[row i of the thread] * b[column j of the thread].
template <int kTile>
__device__ void multiply_rows(const TileSizes<kTile>& sizes, const float* a, const float* b,
                              float (&scores)[TileSizes<kTile>::kRows][TileSizes<kTile>::kRows]) {
  constexpr int kRows = TileSizes<kTile>::kRows;
  for (auto& row : scores) {
    for (float& score : row) score = 0;
  }
  a += side_y() * sizes.stride;
  b += side_x() * sizes.stride;
  for (int c = 0; c < sizes.padded; ++c) {
    float of_b[kRows];
    for (int j = 0; j < kRows; ++j) of_b[j] = b[j * kSide * sizes.stride + c];
    for (int i = 0; i < kRows; ++i) {
      const float of_a = a[i * kSide * sizes.stride + c];
      for (int j = 0; j < kRows; ++j) scores[i][j] += of_a * of_b[j];
    }
  }
}

// Sums of a thread: its rows, and its channels.
template <int kTile>
struct ThreadSums {
  using Sizes = TileSizes<kTile>;
  float value[Sizes::kRows][Sizes::kChannels];

  __device__ void clear() {
    for (auto& row : value) {
      for (float& x : row) x = 0;
    }
  }
  __device__ void scale_rows(const float* factors) {
    for (int i = 0; i < Sizes::kRows; ++i) {
      const float factor = factors[side_y() + i * kSide];
      for (float& x : value[i]) x *= factor;
    }
  }
  // value[i][channel] += sum over k of weights(row i, k) * tile[k][channel], where weights(r, k) is at
  // r * row_stride + k * depth_stride.
  __device__ void add_mixture(const Sizes& sizes, const float* weights, int row_stride, int depth_stride, int depth,
                              const float* tile) {
    weights += side_y() * row_stride;
    tile += side_x();
    for (int k = 0; k < depth; ++k) {
      float weight[Sizes::kRows];
      for (int i = 0; i < Sizes::kRows; ++i) weight[i] = weights[i * kSide * row_stride + k * depth_stride];
#pragma unroll
      for (int j = 0; j < Sizes::kChannels; ++j) {
        if (j * kSide >= sizes.padded) break;
        const float x = tile[k * sizes.stride + j * kSide];
        for (int i = 0; i < Sizes::kRows; ++i) value[i][j] += weight[i] * x;
      }
    }
  }
  // Calls visit(row, channel, value) for those within `rows` and the head's channels.
  template <class Visit>
  __device__ void for_each(const Sizes& sizes, std::int64_t rows, const Visit& visit) {
#pragma unroll
    for (int i = 0; i < Sizes::kRows; ++i) {
      const int row = side_y() + i * kSide;
      if (row >= rows) break;
#pragma unroll
      for (int j = 0; j < Sizes::kChannels; ++j) {
        const int channel = side_x() + j * kSide;
        if (channel >= sizes.dim) break;
        visit(row, channel, value[i][j]);
      }
    }
  }
};

}  // namespace stepcast::kernels::cuda
