// What both directions of blocked attention share: how positions are cut into blocks, where heads lie, and what happens
// to a row of scores of one block.
//
// A block holds neighbouring positions, so the keys of a block that a query sees under the causal mask are the first
// few of them: none, some or all. Shares of a sequence (kernels/share.h) are two such stretches each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/cpu/attention_layout.h"
#include "kernels/cpu/dropout_mask.h"
#include "kernels/cpu_fast/onednn.h"
#include "kernels/cpu_fast/row_math.h"
#include "kernels/share.h"

namespace stepcast::kernels::cpu_fast {

// Scores of 64 queries and 128 keys are 32 KiB: with the rows they come from, they stay in the second cache.
inline constexpr std::int64_t kQueryBlock = 64;
inline constexpr std::int64_t kKeyBlock = 128;

// Neighbouring positions of one sequence.
struct PositionBlock {
  std::int64_t first = 0;     // among the positions that the operand holds
  std::int64_t position = 0;  // of `first` in the whole sequence
  std::int64_t count = 0;

  // How many of these keys the query at `query` sees.
  std::int64_t visible_to(std::int64_t query) const { return std::clamp<std::int64_t>(query - position + 1, 0, count); }
};

// Appends the positions of a share, which begin at `first` in the operand, as blocks of up to `limit`.
void append_blocks(const Share& share, std::int64_t first, std::int64_t limit, std::vector<PositionBlock>& blocks);

// One call of attention: which queries and keys there are, and where the rows of keys have k and v.
struct AttentionCase {
  cpu::AttentionLayout heads{};  // of the rows of qkv
  std::vector<PositionBlock> queries;
  std::vector<PositionBlock> keys;
  std::int64_t key_positions = 0;  // of one sequence
  std::int64_t key_begin = 0;      // column of the first key head

  std::int64_t key_column(std::int64_t kv_head) const { return key_begin + kv_head * heads.dim; }
  std::int64_t value_column(std::int64_t kv_head) const { return key_column(heads.kv_heads + kv_head); }
};

// Every position attends to those up to itself; keys are in the rows of qkv.
AttentionCase whole_case(const cpu::AttentionLayout& heads);
// Queries of the own share, keys of another share or of all: op.h, share_attention_forward. `kv_rows` tells which.
AttentionCase share_case(const KernelContext& context, const cpu::AttentionLayout& heads, std::int64_t kv_rows);

// ALiBi and dropout of the scores of one (sequence, head).
class ScoreRule {
 public:
  ScoreRule(const KernelContext& context, const cpu::DropoutMask& mask, const AttentionCase& at, std::int64_t b,
            std::int64_t head);
  // Neither: shares know none.
  ScoreRule() = default;

  // Takes ALiBi's bias off the scores of the first `n` keys of a block, for the query at `query`.
  void bias(float* scores, const PositionBlock& keys, std::int64_t n, std::int64_t query) const;
  // Multiplies values of the first `n` keys by mask / (1 - p).
  void drop(float* values, const PositionBlock& keys, std::int64_t n, std::int64_t query) const;

 private:
  const cpu::DropoutMask* mask_ = nullptr;
  std::uint64_t first_ = 0;  // global element of score (0, 0)
  double slope_ = 0;
  std::int64_t sequence_ = 0;
};

// `dim` columns from `column` on, of the positions of a block of sequence b, as floats side by side: rows of qkv are
// kilobytes apart, often a power of two, which caches serve badly.
class BlockReader {
 public:
  BlockReader(std::int64_t rows, std::int64_t dim) : dim_(dim), buffer_(static_cast<std::size_t>(rows * dim)) {}

  template <class S>
  Block<const float> of(const cpu::Rows<S>& tensor, const cpu::AttentionLayout& heads, std::int64_t b,
                        const PositionBlock& block, std::int64_t column) {
    for (std::int64_t r = 0; r < block.count; ++r) {
      const S* from = tensor[heads.row(block.first + r, b)] + column;
      float* to = buffer_.data() + r * dim_;
      if constexpr (std::is_same_v<S, float>) {
        std::copy_n(from, dim_, to);
      } else {
        widen_row(from, dim_, to);
      }
    }
    return {buffer_.data(), dim_};
  }

 private:
  std::int64_t dim_;
  std::vector<float> buffer_;
};

}  // namespace stepcast::kernels::cpu_fast
