// Attention block by block with a running softmax (Dao et al. 2022, FlashAttention, arXiv:2205.14135, algorithm 1): of
// each query the largest score so far, the sum of exponentials relative to it, and the values mixed with them. A block
// of keys with a larger score scales sum and mixture down. Keys of other shares, merged before, are one more block.
//
// What is attended to whom: cpu/attention.cc and cpu/context.cc. Products are oneDNN's; bf16 is computed in float.
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/cpu/reference.h"
#include "kernels/cpu_fast/attention_blocks.h"
#include "kernels/cpu_fast/fast_kernels.h"
#include "kernels/cpu_fast/float_rows.h"
#include "kernels/cpu_fast/parallel.h"

namespace stepcast::kernels::cpu_fast {
namespace {

using cpu::Rows;
using cpu::rows;

template <class S>
struct ForwardOperands {
  Rows<S> qkv;
  Rows<S> keys;  // rows that have k and v
  Rows<S> out;
  Rows<float> lse;
  bool merge = false;  // into what out and lse hold
};

// The queries of one block so far.
class RunningSoftmax {
 public:
  explicit RunningSoftmax(std::int64_t dim)
      : dim_(dim), largest_(kQueryBlock), sum_(kQueryBlock), mixed_(static_cast<std::size_t>(kQueryBlock * dim)) {}

  float* mixed(std::int64_t row) { return mixed_.data() + row * dim_; }
  void start(std::int64_t row, float lse) {
    const auto r = static_cast<std::size_t>(row);
    largest_[r] = lse;
    sum_[r] = std::isinf(lse) ? 0 : 1;
  }
  // Turns the scores of the first `visible` of `count` keys into weights relative to the largest so far.
  void add_row(std::int64_t row, float* scores, std::int64_t visible) {
    const auto r = static_cast<std::size_t>(row);
    const float largest = std::max(largest_[r], largest_of(scores, visible));
    if (largest > largest_[r]) {
      const double shrink = std::exp(static_cast<double>(largest_[r]) - static_cast<double>(largest));
      sum_[r] *= shrink;
      scale_row(static_cast<float>(shrink), dim_, mixed(row));
      largest_[r] = largest;
    }
    sum_[r] += exponentiate(scores, visible, largest);
  }
  double sum(std::int64_t row) const { return sum_[static_cast<std::size_t>(row)]; }
  float lse(std::int64_t row) const {
    return static_cast<float>(static_cast<double>(largest_[static_cast<std::size_t>(row)]) + std::log(sum(row)));
  }

 private:
  std::int64_t dim_;
  std::vector<float> largest_;
  std::vector<double> sum_;
  std::vector<float> mixed_;  // [kQueryBlock, dim]
};

// Scratch of one thread.
struct Scratch {
  explicit Scratch(std::int64_t dim)
      : query(kQueryBlock, dim),
        key(kKeyBlock, dim),
        value(kKeyBlock, dim),
        running(dim),
        scores(static_cast<std::size_t>(kQueryBlock * kKeyBlock)) {}

  BlockReader query, key, value;
  RunningSoftmax running;
  std::vector<float> scores;
};

// One (sequence, head).
struct HeadAt {
  std::int64_t b = 0;
  std::int64_t head = 0;
};

// Weights of one block of keys for one block of queries, from their scores.
void weigh(const PositionBlock& queries, const PositionBlock& keys, const ScoreRule& rule, RunningSoftmax& running,
           float* scores) {
  for (std::int64_t r = 0; r < queries.count; ++r) {
    float* row = scores + r * kKeyBlock;
    const std::int64_t query = queries.position + r;
    const std::int64_t visible = keys.visible_to(query);
    if (visible > 0) {
      rule.bias(row, keys, visible, query);
      running.add_row(r, row, visible);
      rule.drop(row, keys, visible, query);
    }
    std::fill(row + visible, row + keys.count, 0.0F);
  }
}

template <class S>
void start_rows(const ForwardOperands<S>& in, const AttentionCase& at, HeadAt which, const PositionBlock& queries,
                RunningSoftmax& running) {
  const std::int64_t dim = at.heads.dim;
  for (std::int64_t r = 0; r < queries.count; ++r) {
    const std::int64_t t = at.heads.row(queries.first + r, which.b);
    running.start(r, in.merge ? in.lse.data[t * at.heads.heads + which.head] : -std::numeric_limits<float>::infinity());
    const S* out = in.out[t] + at.heads.query(which.head);
    for (std::int64_t c = 0; c < dim; ++c) running.mixed(r)[c] = in.merge ? widen(out[c]) : 0.0F;
  }
}

template <class S>
void finish_rows(const ForwardOperands<S>& in, const AttentionCase& at, HeadAt which, const PositionBlock& queries,
                 RunningSoftmax& running) {
  const std::int64_t dim = at.heads.dim;
  for (std::int64_t r = 0; r < queries.count; ++r) {
    const std::int64_t t = at.heads.row(queries.first + r, which.b);
    const double sum = running.sum(r);
    const float inverse = sum > 0 ? static_cast<float>(1.0 / sum) : 0.0F;
    S* out = in.out[t] + at.heads.query(which.head);
    for (std::int64_t c = 0; c < dim; ++c) out[c] = narrow<S>(running.mixed(r)[c] * inverse);
    in.lse.data[t * at.heads.heads + which.head] = running.lse(r);
  }
}

template <class S>
void attend(const ForwardOperands<S>& in, const AttentionCase& at, HeadAt which, const ScoreRule& rule,
            Scratch& scratch) {
  const std::int64_t dim = at.heads.dim;
  const std::int64_t kv = which.head / at.heads.group();
  const Block<float> scores{scratch.scores.data(), kKeyBlock};
  const Block<const float> weights{scratch.scores.data(), kKeyBlock};
  const auto scale = cpu::scale_of<float>(at.heads);
  for (const PositionBlock& queries : at.queries) {
    start_rows(in, at, which, queries, scratch.running);
    const auto q = scratch.query.of(in.qkv, at.heads, which.b, queries, at.heads.query(which.head));
    for (const PositionBlock& keys : at.keys) {
      if (keys.position > queries.position + queries.count - 1) continue;
      const auto k = scratch.key.of(in.keys, at.heads, which.b, keys, at.key_column(kv));
      multiply_blocks({queries.count, keys.count, dim, false, true, scale, 0}, q, k, scores);
      weigh(queries, keys, rule, scratch.running, scores.data);
      const auto v = scratch.value.of(in.keys, at.heads, which.b, keys, at.value_column(kv));
      multiply_blocks({queries.count, dim, keys.count, false, false, 1, 1}, weights, v,
                      {scratch.running.mixed(0), dim});
    }
    finish_rows(in, at, which, queries, scratch.running);
  }
}

// `rule_of(b, head)` gives the ScoreRule of a head.
template <class S, class RuleOf>
void forward(const ForwardOperands<S>& in, const AttentionCase& at, const RuleOf& rule_of) {
  CHECK(in.out.count == in.qkv.count && in.out.width == at.heads.heads * at.heads.dim, in.out.count, in.out.width);
  CHECK(in.lse.size() == in.qkv.count * at.heads.heads, in.lse.size(), in.qkv.count, at.heads.heads);
  parallel_for(at.heads.batch * at.heads.heads, 1, [&](std::int64_t begin, std::int64_t end) {
    Scratch scratch(at.heads.dim);
    for (std::int64_t task = begin; task < end; ++task) {
      const HeadAt which{task / at.heads.heads, task % at.heads.heads};
      attend(in, at, which, rule_of(which.b, which.head), scratch);
    }
  });
}

}  // namespace

void attention_forward(const KernelContext& context) {
  fast_or_reference(context, cpu::dtype(context, 0), cpu::attention_forward, [&]<class S>() {
    const auto qkv = rows<S>(context, 0);
    const ForwardOperands<S> in{qkv, qkv, rows<S>(context, 1), rows<float>(context, 2), false};
    const AttentionCase at = whole_case(cpu::attention_layout(context, qkv.count, qkv.width));
    const cpu::DropoutMask mask(context, program::DropoutSite::kScores);
    forward(in, at, [&](std::int64_t b, std::int64_t head) { return ScoreRule(context, mask, at, b, head); });
  });
}

void share_attention_forward(const KernelContext& context) {
  fast_or_reference(context, cpu::dtype(context, 0), cpu::share_attention_forward, [&]<class S>() {
    const auto qkv = rows<S>(context, 0);
    const auto kv = rows<S>(context, 1);
    const ForwardOperands<S> in{qkv, kv, rows<S>(context, 2), rows<float>(context, 3), context.accumulate};
    const AttentionCase at = share_case(context, cpu::attention_layout(context, qkv.count, qkv.width), kv.count);
    forward(in, at, [](std::int64_t, std::int64_t) { return ScoreRule(); });
  });
}

}  // namespace stepcast::kernels::cpu_fast
