// Where heads lie in the rows of attention's operands, and ALiBi's slopes.
//
// `batch` sequences are interleaved: row t is position t / batch of sequence t % batch. A qkv row is [q heads | k heads
// | v heads]; q head h reads kv head h / (heads / kv_heads).
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cpu/access.h"

namespace stepcast::kernels::cpu {

struct AttentionLayout {
  std::int64_t batch;
  std::int64_t sequence;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t dim;

  constexpr std::int64_t group() const { return heads / kv_heads; }
  constexpr std::int64_t width() const { return (heads + 2 * kv_heads) * dim; }
  constexpr std::int64_t row(std::int64_t position, std::int64_t b) const { return position * batch + b; }
  constexpr std::int64_t query(std::int64_t head) const { return head * dim; }
  constexpr std::int64_t key(std::int64_t kv_head) const { return (heads + kv_head) * dim; }
  constexpr std::int64_t value(std::int64_t kv_head) const { return (heads + kv_heads + kv_head) * dim; }
};

inline AttentionLayout attention_layout(const KernelContext& context, std::int64_t tokens, std::int64_t qkv_width) {
  const program::Attributes& a = attributes(context);
  CHECK(a.batch > 0 && a.kv_heads > 0 && a.head_dim > 0 && a.heads % a.kv_heads == 0, a.batch, a.heads, a.kv_heads,
        a.head_dim);
  CHECK(tokens % a.batch == 0, tokens, a.batch);
  const AttentionLayout layout{a.batch, tokens / a.batch, a.heads, a.kv_heads, a.head_dim};
  CHECK(qkv_width == layout.width(), qkv_width, layout.width());
  return layout;
}

template <class A>
A scale_of(const AttentionLayout& at) {
  return static_cast<A>(1.0 / std::sqrt(static_cast<double>(at.dim)));
}

// ALiBi's slope of head `head` of a model of `heads` (Press, Smith, Lewis 2021, arXiv:2108.12409, section 3 and its
// get_slopes): 2^(-8 (h+1) / n) for n heads, a power of two; further heads take every second slope of 2 n heads.
constexpr double alibi_slope(std::int64_t head, std::int64_t heads) {
  std::int64_t n = 1;
  while (2 * n <= heads) n *= 2;
  if (head < n) return std::exp2(-8.0 * static_cast<double>(head + 1) / static_cast<double>(n));
  return std::exp2(-4.0 * static_cast<double>(2 * (head - n) + 1) / static_cast<double>(n));
}

// The slope of a rank's own head; 0 without ALiBi. A key j positions before its query loses slope * j.
inline double slope_of(const KernelContext& context, std::int64_t head) {
  const program::Attributes& a = attributes(context);
  if (a.count == 0) return 0;
  return alibi_slope(context.index * a.heads + head, a.count);
}

}  // namespace stepcast::kernels::cpu
