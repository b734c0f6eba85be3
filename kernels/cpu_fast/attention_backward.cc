// The gradient of blocked attention (Dao et al. 2022, FlashAttention, arXiv:2205.14135, algorithm 4), formulas as in
// cpu/attention.cc: probabilities are made again from the saved log-sum-exp, block by block. A thread has the queries
// of one (sequence, kv head), so that gradients of keys and values are summed in one order.
#include <vector>

#include "kernels/cpu/reference.h"
#include "kernels/cpu_fast/attention_blocks.h"
#include "kernels/cpu_fast/fast_kernels.h"
#include "kernels/cpu_fast/float_rows.h"
#include "kernels/cpu_fast/parallel.h"
#include "kernels/cpu_fast/vector.h"

namespace stepcast::kernels::cpu_fast {
namespace {

using cpu::Rows;
using cpu::rows;

template <class S>
struct BackwardOperands {
  Rows<S> dout, qkv, keys, out;
  Rows<float> lse;
  Rows<S> dqkv;
  Rows<S> dkeys;             // rows whose k and v columns are filled
  bool add_queries = false;  // to what dqkv holds
};

// Scores of the first `visible` keys become probabilities; the others are not seen.
[[STEPCAST_VECTORISED]] void to_probabilities(float* scores, std::int64_t visible, std::int64_t count, float lse) {
  for (std::int64_t j = 0; j < visible; ++j) scores[j] = exponential(scores[j] - lse);
  for (std::int64_t j = visible; j < count; ++j) scores[j] = 0;
}

// Gradients of probabilities become those of the products q k.
[[STEPCAST_VECTORISED]] void to_score_gradients(const float* p, float delta, float scale, std::int64_t visible,
                                                std::int64_t count, float* d) {
  for (std::int64_t j = 0; j < visible; ++j) d[j] = p[j] * (d[j] - delta) * scale;
  for (std::int64_t j = visible; j < count; ++j) d[j] = 0;
}

// Scratch of one thread, and the gradients of one (sequence, kv head).
struct Scratch {
  explicit Scratch(const AttentionCase& at)
      : query(kQueryBlock, at.heads.dim),
        dout(kQueryBlock, at.heads.dim),
        out(kQueryBlock, at.heads.dim),
        key(kKeyBlock, at.heads.dim),
        value(kKeyBlock, at.heads.dim),
        p(kQueryBlock * kKeyBlock),
        ds(p.size()),
        delta(kQueryBlock),
        dquery(static_cast<std::size_t>(kQueryBlock * at.heads.dim)),
        dkey(static_cast<std::size_t>(at.key_positions * at.heads.dim)),
        dvalue(dkey.size()) {}

  BlockReader query, dout, out, key, value;
  std::vector<float> p, ds, delta, dquery, dkey, dvalue;
};

// Views of what one block of queries brings.
struct QueryRows {
  Block<const float> query, dout, out;
};

struct HeadAt {
  std::int64_t b = 0;
  std::int64_t head = 0;
};

// Probabilities and gradients of scores of one block, from products in scratch.p and scratch.ds.
template <class S>
void differentiate(const BackwardOperands<S>& in, const AttentionCase& at, HeadAt which, const PositionBlock& queries,
                   const PositionBlock& keys, const ScoreRule& rule, Scratch& scratch) {
  const auto scale = cpu::scale_of<float>(at.heads);
  for (std::int64_t r = 0; r < queries.count; ++r) {
    float* p = scratch.p.data() + r * kKeyBlock;
    float* ds = scratch.ds.data() + r * kKeyBlock;
    const std::int64_t query = queries.position + r;
    const std::int64_t visible = keys.visible_to(query);
    const std::int64_t t = at.heads.row(queries.first + r, which.b);
    rule.bias(p, keys, visible, query);
    rule.drop(ds, keys, visible, query);
    to_probabilities(p, visible, keys.count, in.lse.data[t * at.heads.heads + which.head]);
    to_score_gradients(p, scratch.delta[static_cast<std::size_t>(r)], scale, visible, keys.count, ds);
    rule.drop(p, keys, visible, query);
  }
}

// Adds what one block of queries and one of keys give to the gradients in scratch.
template <class S>
void add_block(const BackwardOperands<S>& in, const AttentionCase& at, HeadAt which, const PositionBlock& queries,
               const PositionBlock& keys, const QueryRows& rows, const ScoreRule& rule, Scratch& scratch) {
  const std::int64_t dim = at.heads.dim;
  const std::int64_t kv = which.head / at.heads.group();
  const auto k = scratch.key.of(in.keys, at.heads, which.b, keys, at.key_column(kv));
  const auto v = scratch.value.of(in.keys, at.heads, which.b, keys, at.value_column(kv));
  const auto scale = cpu::scale_of<float>(at.heads);
  multiply_blocks({queries.count, keys.count, dim, false, true, scale, 0}, rows.query, k,
                  {scratch.p.data(), kKeyBlock});
  multiply_blocks({queries.count, keys.count, dim, false, true, 1, 0}, rows.dout, v, {scratch.ds.data(), kKeyBlock});
  differentiate(in, at, which, queries, keys, rule, scratch);
  const Block<const float> p{scratch.p.data(), kKeyBlock};
  const Block<const float> ds{scratch.ds.data(), kKeyBlock};
  const BlockProduct to_keys{keys.count, dim, queries.count, true, false, 1, 1};
  multiply_blocks(to_keys, p, rows.dout, {scratch.dvalue.data() + keys.first * dim, dim});
  multiply_blocks(to_keys, ds, rows.query, {scratch.dkey.data() + keys.first * dim, dim});
  multiply_blocks({queries.count, dim, keys.count, false, false, 1, 1}, ds, k, {scratch.dquery.data(), dim});
}

// Rounded once, into `dim` columns from `column` on.
template <class S>
void store_row(const float* from, std::int64_t dim, bool add, S* to) {
  for (std::int64_t c = 0; c < dim; ++c) to[c] = narrow<S>(add ? widen(to[c]) + from[c] : from[c]);
}

template <class S>
void backward_head(const BackwardOperands<S>& in, const AttentionCase& at, HeadAt which, const ScoreRule& rule,
                   Scratch& scratch) {
  const std::int64_t dim = at.heads.dim;
  const std::int64_t column = at.heads.query(which.head);
  for (const PositionBlock& queries : at.queries) {
    const QueryRows rows{scratch.query.of(in.qkv, at.heads, which.b, queries, column),
                         scratch.dout.of(in.dout, at.heads, which.b, queries, column),
                         scratch.out.of(in.out, at.heads, which.b, queries, column)};
    for (std::int64_t r = 0; r < queries.count; ++r) {
      scratch.delta[static_cast<std::size_t>(r)] =
          static_cast<float>(dot_of(rows.dout.data + r * rows.dout.stride, rows.out.data + r * rows.out.stride, dim));
    }
    std::fill(scratch.dquery.begin(), scratch.dquery.end(), 0.0F);
    for (const PositionBlock& keys : at.keys) {
      if (keys.position > queries.position + queries.count - 1) continue;
      add_block(in, at, which, queries, keys, rows, rule, scratch);
    }
    for (std::int64_t r = 0; r < queries.count; ++r) {
      store_row(scratch.dquery.data() + r * dim, dim, in.add_queries,
                in.dqkv[at.heads.row(queries.first + r, which.b)] + column);
    }
  }
}

// `rule_of(b, head)` gives the ScoreRule of a head.
template <class S, class RuleOf>
void backward(const BackwardOperands<S>& in, const AttentionCase& at, const RuleOf& rule_of) {
  CHECK(in.out.count == in.qkv.count && in.out.width == at.heads.heads * at.heads.dim, in.out.count, in.out.width);
  CHECK(in.dout.size() == in.out.size() && in.dqkv.size() == in.qkv.size() && in.dkeys.size() == in.keys.size(),
        in.dout.size(), in.dqkv.size(), in.dkeys.size());
  CHECK(in.lse.size() == in.qkv.count * at.heads.heads, in.lse.size(), in.qkv.count, at.heads.heads);
  parallel_for(at.heads.batch * at.heads.kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t dim = at.heads.dim;
    Scratch scratch(at);
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t b = task / at.heads.kv_heads;
      const std::int64_t kv = task % at.heads.kv_heads;
      std::fill(scratch.dkey.begin(), scratch.dkey.end(), 0.0F);
      std::fill(scratch.dvalue.begin(), scratch.dvalue.end(), 0.0F);
      for (std::int64_t h = kv * at.heads.group(); h < (kv + 1) * at.heads.group(); ++h) {
        backward_head(in, at, {b, h}, rule_of(b, h), scratch);
      }
      for (std::int64_t p = 0; p < at.key_positions; ++p) {
        S* row = in.dkeys[at.heads.row(p, b)];
        store_row(scratch.dkey.data() + p * dim, dim, false, row + at.key_column(kv));
        store_row(scratch.dvalue.data() + p * dim, dim, false, row + at.value_column(kv));
      }
    }
  });
}

}  // namespace

void attention_backward(const KernelContext& context) {
  fast_or_reference(context, cpu::dtype(context, 1), cpu::attention_backward, [&]<class S>() {
    const auto qkv = rows<S>(context, 1);
    const auto dqkv = rows<S>(context, 4);
    const BackwardOperands<S> in{rows<S>(context, 0),     qkv,  qkv,  rows<S>(context, 2),
                                 rows<float>(context, 3), dqkv, dqkv, false};
    const AttentionCase at = whole_case(cpu::attention_layout(context, qkv.count, qkv.width));
    const cpu::DropoutMask mask(context, program::DropoutSite::kScores);
    backward(in, at, [&](std::int64_t b, std::int64_t head) { return ScoreRule(context, mask, at, b, head); });
  });
}

void share_attention_backward(const KernelContext& context) {
  fast_or_reference(context, cpu::dtype(context, 1), cpu::share_attention_backward, [&]<class S>() {
    const auto qkv = rows<S>(context, 1);
    const auto kv = rows<S>(context, 2);
    const auto dqkv = rows<S>(context, 5);
    const BackwardOperands<S> in{
        rows<S>(context, 0), qkv, kv, rows<S>(context, 3), rows<float>(context, 4), dqkv, rows<S>(context, 6),
        context.accumulate};
    const AttentionCase at = share_case(context, cpu::attention_layout(context, qkv.count, qkv.width), kv.count);
    if (!context.accumulate) {
      for (std::int64_t t = 0; t < dqkv.count; ++t) {
        std::fill(dqkv[t] + at.heads.key(0), dqkv[t] + dqkv.width, narrow<S>(0.0F));
      }
    }
    backward(in, at, [](std::int64_t, std::int64_t) { return ScoreRule(); });
  });
}

}  // namespace stepcast::kernels::cpu_fast
