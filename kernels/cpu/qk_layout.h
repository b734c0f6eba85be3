// Which columns of a qkv row [q heads | k heads | v heads] qk_norm normalises together, and by which weight.
#pragma once

#include <cstdint>

#include "kernels/cpu/access.h"

namespace stepcast::kernels::cpu {

// Neighbouring stretches of `width` columns, from `begin` on, that share one weight; `statistic` is that of the first.
struct Stretches {
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::int64_t width = 0;
  std::int64_t statistic = 0;
};

struct QkLayout {
  Stretches q, k;
  std::int64_t columns = 0;     // of q and k
  std::int64_t statistics = 0;  // of a row
};

// Of weights of `q_weight` and `k_weight` elements.
inline QkLayout qk_layout(const program::Attributes& a, std::int64_t q_weight, std::int64_t k_weight) {
  CHECK(a.heads > 0 && a.kv_heads > 0 && a.head_dim > 0, a.heads, a.kv_heads, a.head_dim);
  const std::int64_t q = std::int64_t{a.heads} * a.head_dim;
  const std::int64_t k = std::int64_t{a.kv_heads} * a.head_dim;
  CHECK(q_weight > 0 && k_weight > 0 && q % q_weight == 0 && k % k_weight == 0, q, q_weight, k, k_weight);
  QkLayout at;
  at.q = {0, q / q_weight, q_weight, 0};
  at.k = {q, k / k_weight, k_weight, at.q.count};
  at.columns = q + k;
  at.statistics = at.q.count + at.k.count;
  return at;
}

}  // namespace stepcast::kernels::cpu
