#include "kernels/cpu_fast/attention_blocks.h"

namespace stepcast::kernels::cpu_fast {
namespace {

[[STEPCAST_VECTORISED]] void subtract_slope(float* scores, double slope, std::int64_t distance, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) scores[j] -= static_cast<float>(slope * static_cast<double>(distance - j));
}

}  // namespace

void append_blocks(const Share& share, std::int64_t first, std::int64_t limit, std::vector<PositionBlock>& blocks) {
  for (std::int64_t own = 0; own < share.positions;) {
    PositionBlock block{first + own, share.position(own), 0};
    while (own < share.positions && block.count < limit && share.position(own) == block.position + block.count) {
      ++block.count;
      ++own;
    }
    blocks.push_back(block);
  }
}

AttentionCase whole_case(const cpu::AttentionLayout& heads) {
  AttentionCase at;
  at.heads = heads;
  at.key_positions = heads.sequence;
  at.key_begin = heads.key(0);
  const Share all{0, 1, heads.sequence};
  append_blocks(all, 0, kQueryBlock, at.queries);
  append_blocks(all, 0, kKeyBlock, at.keys);
  return at;
}

AttentionCase share_case(const KernelContext& context, const cpu::AttentionLayout& heads, std::int64_t kv_rows) {
  const std::int64_t members = context.index_count;
  const std::int64_t tokens = heads.sequence * heads.batch;
  const bool gathered = kv_rows != tokens;
  CHECK(!gathered || kv_rows == members * tokens, tokens, kv_rows, members);
  AttentionCase at;
  at.heads = heads;
  at.key_positions = kv_rows / heads.batch;
  append_blocks({context.index, members, heads.sequence}, 0, kQueryBlock, at.queries);
  if (gathered) {
    for (std::int64_t member = 0; member < members; ++member) {
      append_blocks({member, members, heads.sequence}, member * heads.sequence, kKeyBlock, at.keys);
    }
  } else {
    const std::int64_t source = program::member_position(context.index - cpu::attributes(context).count, members);
    append_blocks({source, members, heads.sequence}, 0, kKeyBlock, at.keys);
  }
  return at;
}

ScoreRule::ScoreRule(const KernelContext& context, const cpu::DropoutMask& mask, const AttentionCase& at,
                     std::int64_t b, std::int64_t head)
    : mask_(mask.active() ? &mask : nullptr),
      first_(cpu::first_score(mask.sample(b), at.heads.heads * context.index_count,
                              context.index * at.heads.heads + head, at.heads.sequence)),
      slope_(cpu::slope_of(context, head)),
      sequence_(at.heads.sequence) {}

void ScoreRule::bias(float* scores, const PositionBlock& keys, std::int64_t n, std::int64_t query) const {
  if (slope_ != 0) subtract_slope(scores, slope_, query - keys.position, n);
}

void ScoreRule::drop(float* values, const PositionBlock& keys, std::int64_t n, std::int64_t query) const {
  if (mask_ == nullptr) return;
  const auto scale = static_cast<float>(mask_->scale());
  const std::uint64_t first = first_ + static_cast<std::uint64_t>(query * sequence_ + keys.position);
  for (std::int64_t j = 0; j < n; ++j) {
    values[j] = mask_->keeps(first + static_cast<std::uint64_t>(j)) ? values[j] * scale : 0.0F;
  }
}

}  // namespace stepcast::kernels::cpu_fast
