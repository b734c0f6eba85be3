// Causal attention with grouped query heads (Ainslie et al. 2023, arXiv:2305.13245), softmax(q k^T / sqrt(head_dim)) v.
// Backward recomputes the probabilities from the saved log-sum-exp, as FlashAttention does (Dao et al. 2022,
// arXiv:2205.14135, algorithm 4): with p the probabilities, dp = dout v^T and delta = dout . out,
// ds = p * (dp - delta), dq = ds k / sqrt(d), dk = ds^T q / sqrt(d), dv = p^T dout.
//
// With ALiBi a key loses slope * distance of its score. With dropout the probabilities are masked after the softmax;
// the mask is drawn again backward: with m = mask / (1 - p), dp = m * (dout v^T), dv = (p * m)^T dout, and delta stays.
//
// Rows and heads: attention_layout.h. Work is per (sequence, kv head), on its keys and values
// copied to the accumulate type; every inner loop runs along contiguous keys or channels.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/attention_layout.h"
#include "kernels/cpu/dropout_mask.h"
#include "kernels/cpu/reference.h"

namespace stepcast::kernels::cpu {
namespace {

using Layout = AttentionLayout;

// dim channels of every position of one sequence, from column `column` of each row: as [sequence, dim].
template <class S>
std::vector<Accumulate<S>> by_position(const Rows<S>& tensor, const Layout& at, std::int64_t b, std::int64_t column) {
  std::vector<Accumulate<S>> result(static_cast<std::size_t>(at.sequence * at.dim));
  Accumulate<S>* to = result.data();
  for (std::int64_t p = 0; p < at.sequence; ++p) {
    const S* from = tensor[at.row(p, b)] + column;
    for (std::int64_t c = 0; c < at.dim; ++c) to[p * at.dim + c] = widen(from[c]);
  }
  return result;
}

// The same as [dim, sequence].
template <class A>
std::vector<A> by_channel(const std::vector<A>& positions, const Layout& at) {
  std::vector<A> result(positions.size());
  A* to = result.data();
  const A* from = positions.data();
  for (std::int64_t p = 0; p < at.sequence; ++p) {
    for (std::int64_t c = 0; c < at.dim; ++c) to[c * at.sequence + p] = from[p * at.dim + c];
  }
  return result;
}

// out[j] = scale * sum over c of x[c] * channels[c][j], for the first `count` positions j.
template <class A, class S>
void dot_with_positions(const S* x, const std::vector<A>& channels, const Layout& at, std::int64_t count, A scale,
                        A* out) {
  std::fill_n(out, count, A(0));
  for (std::int64_t c = 0; c < at.dim; ++c) {
    add_scaled(count, scale * widen(x[c]), channels.data() + c * at.sequence, out);
  }
}

// Turns `count` scores into exp(score - max) and returns log(sum of exp(score)); `sum` gets the sum.
template <class A>
A exponentiate(A* scores, std::int64_t count, A& sum) {
  const A largest = *std::max_element(scores, scores + count);
  double total = 0;
  for (std::int64_t j = 0; j < count; ++j) {
    scores[j] = std::exp(scores[j] - largest);
    total += static_cast<double>(scores[j]);
  }
  sum = static_cast<A>(total);
  return static_cast<A>(static_cast<double>(largest) + std::log(total));
}

// What happens to the scores and probabilities of one (sequence, head).
struct ScoreRule {
  const DropoutMask& mask;
  std::uint64_t first = 0;  // global element of score (0, 0)
  double slope = 0;
  std::int64_t sequence = 0;

  static ScoreRule of(const KernelContext& context, const DropoutMask& mask, const Layout& at, std::int64_t b,
                      std::int64_t head) {
    const std::uint64_t first =
        first_score(mask.sample(b), at.heads * context.index_count, context.index * at.heads + head, at.sequence);
    return {mask, first, slope_of(context, head), at.sequence};
  }

  // Takes ALiBi's bias off the scores of the keys [0, i] of query i.
  template <class A>
  void bias(A* scores, std::int64_t i) const {
    if (slope == 0) return;
    for (std::int64_t j = 0; j <= i; ++j) scores[j] -= static_cast<A>(slope * static_cast<double>(i - j));
  }
  // Multiplies values of the keys [0, i] of query i by mask / (1 - p).
  template <class A>
  void drop(A* values, std::int64_t i) const {
    if (!mask.active()) return;
    const A scale = static_cast<A>(mask.scale());
    for (std::int64_t j = 0; j <= i; ++j) {
      values[j] = mask.keeps(first + static_cast<std::uint64_t>(i * sequence + j)) ? values[j] * scale : A(0);
    }
  }
};

// Keys and values of one (sequence, kv head), and scratch of one query row.
template <class A>
struct ForwardState {
  std::vector<A> keys;    // [dim, sequence]
  std::vector<A> values;  // [sequence, dim]
  std::vector<A> scores;  // [sequence]
  std::vector<A> mixed;   // [dim]
};

// out[0, dim) for the query at position i; returns its log-sum-exp. Dividing by the sum after mixing the values saves a
// pass over the scores.
template <class S>
Accumulate<S> forward_row(const S* query, const Layout& at, std::int64_t i, const ScoreRule& rule,
                          ForwardState<Accumulate<S>>& state, S* out) {
  using A = Accumulate<S>;
  A sum = 0;
  dot_with_positions(query, state.keys, at, i + 1, scale_of<A>(at), state.scores.data());
  rule.bias(state.scores.data(), i);
  const A lse = exponentiate(state.scores.data(), i + 1, sum);
  rule.drop(state.scores.data(), i);
  std::fill(state.mixed.begin(), state.mixed.end(), A(0));
  for (std::int64_t j = 0; j <= i; ++j) {
    add_scaled(at.dim, state.scores[static_cast<std::size_t>(j)], state.values.data() + j * at.dim, state.mixed.data());
  }
  for (std::int64_t c = 0; c < at.dim; ++c) out[c] = narrow<S>(state.mixed[static_cast<std::size_t>(c)] / sum);
  return lse;
}

template <class S>
void forward(const KernelContext& context) {
  using A = Accumulate<S>;
  const auto qkv = rows<S>(context, 0);
  const auto out = rows<S>(context, 1);
  const auto lse = rows<A>(context, 2);
  const Layout at = attention_layout(context, qkv.count, qkv.width);
  CHECK(out.count == qkv.count && out.width == at.heads * at.dim, out.count, out.width);
  CHECK(lse.size() == qkv.count * at.heads, lse.size(), qkv.count, at.heads);
  const DropoutMask mask(context, program::DropoutSite::kScores);
  ForwardState<A> state;
  state.scores.resize(static_cast<std::size_t>(at.sequence));
  state.mixed.resize(static_cast<std::size_t>(at.dim));
  for (std::int64_t b = 0; b < at.batch; ++b) {
    for (std::int64_t kv = 0; kv < at.kv_heads; ++kv) {
      state.keys = by_channel(by_position(qkv, at, b, at.key(kv)), at);
      state.values = by_position(qkv, at, b, at.value(kv));
      for (std::int64_t h = kv * at.group(); h < (kv + 1) * at.group(); ++h) {
        const ScoreRule rule = ScoreRule::of(context, mask, at, b, h);
        for (std::int64_t i = 0; i < at.sequence; ++i) {
          const std::int64_t t = at.row(i, b);
          lse.data[t * at.heads + h] = forward_row(qkv[t] + at.query(h), at, i, rule, state, out[t] + at.query(h));
        }
      }
    }
  }
}

// Keys and values of one (sequence, kv head) in both orders, and the gradients that its query heads add up.
template <class A>
struct KvHead {
  std::vector<A> keys;             // [sequence, dim]
  std::vector<A> keys_by_channel;  // [dim, sequence]
  std::vector<A> values_by_channel;
  std::vector<A> dkeys;  // [sequence, dim]
  std::vector<A> dvalues;

  template <class S>
  void load(const Rows<S>& qkv, const Layout& at, std::int64_t b, std::int64_t kv) {
    keys = by_position(qkv, at, b, at.key(kv));
    keys_by_channel = by_channel(keys, at);
    values_by_channel = by_channel(by_position(qkv, at, b, at.value(kv)), at);
    dkeys.assign(keys.size(), A(0));
    dvalues.assign(keys.size(), A(0));
  }
};

// Scratch of one query row.
template <class A>
struct Scratch {
  std::vector<A> probabilities;  // [sequence]
  std::vector<A> dscores;        // [sequence]
  std::vector<A> dquery;         // [dim]
};

// One query row: q, its output, the output's gradient, its log-sum-exp; adds to the gradients of kv, writes dq.
template <class S>
struct QueryRow {
  const S* query;
  const S* out;
  const S* dout;
  Accumulate<S> lse;
  S* dquery;
};

template <class S>
void backward_row(const QueryRow<S>& row, const Layout& at, std::int64_t i, const ScoreRule& rule,
                  KvHead<Accumulate<S>>& kv, Scratch<Accumulate<S>>& scratch) {
  using A = Accumulate<S>;
  const A scale = scale_of<A>(at);
  A* p = scratch.probabilities.data();
  A* ds = scratch.dscores.data();
  dot_with_positions(row.query, kv.keys_by_channel, at, i + 1, scale, p);
  rule.bias(p, i);
  dot_with_positions(row.dout, kv.values_by_channel, at, i + 1, A(1), ds);
  rule.drop(ds, i);
  A delta = 0;
  for (std::int64_t c = 0; c < at.dim; ++c) delta += widen(row.dout[c]) * widen(row.out[c]);
  for (std::int64_t j = 0; j <= i; ++j) {
    p[j] = std::exp(p[j] - row.lse);
    ds[j] = p[j] * (ds[j] - delta) * scale;
  }
  rule.drop(p, i);
  std::fill(scratch.dquery.begin(), scratch.dquery.end(), A(0));
  for (std::int64_t j = 0; j <= i; ++j) {
    add_scaled(at.dim, ds[j], kv.keys.data() + j * at.dim, scratch.dquery.data());
    add_scaled(at.dim, ds[j], row.query, kv.dkeys.data() + j * at.dim);
    add_scaled(at.dim, p[j], row.dout, kv.dvalues.data() + j * at.dim);
  }
  for (std::int64_t c = 0; c < at.dim; ++c) row.dquery[c] = narrow<S>(scratch.dquery[static_cast<std::size_t>(c)]);
}

template <class S>
void store(const std::vector<Accumulate<S>>& positions, const Rows<S>& tensor, const Layout& at, std::int64_t b,
           std::int64_t column) {
  for (std::int64_t p = 0; p < at.sequence; ++p) {
    S* to = tensor[at.row(p, b)] + column;
    const Accumulate<S>* from = positions.data() + p * at.dim;
    for (std::int64_t c = 0; c < at.dim; ++c) to[c] = narrow<S>(from[c]);
  }
}

template <class S>
void backward(const KernelContext& context) {
  using A = Accumulate<S>;
  const auto dout = rows<S>(context, 0);
  const auto qkv = rows<S>(context, 1);
  const auto out = rows<S>(context, 2);
  const auto lse = rows<A>(context, 3);
  const auto dqkv = rows<S>(context, 4);
  const Layout at = attention_layout(context, qkv.count, qkv.width);
  CHECK(out.count == qkv.count && out.width == at.heads * at.dim && dout.size() == out.size(), out.width, dout.size());
  CHECK(dqkv.size() == qkv.size() && lse.size() == qkv.count * at.heads, dqkv.size(), lse.size());
  Scratch<A> scratch{std::vector<A>(static_cast<std::size_t>(at.sequence)),
                     std::vector<A>(static_cast<std::size_t>(at.sequence)),
                     std::vector<A>(static_cast<std::size_t>(at.dim))};
  const DropoutMask mask(context, program::DropoutSite::kScores);
  KvHead<A> kv;
  for (std::int64_t b = 0; b < at.batch; ++b) {
    for (std::int64_t kv_head = 0; kv_head < at.kv_heads; ++kv_head) {
      kv.load(qkv, at, b, kv_head);
      for (std::int64_t h = kv_head * at.group(); h < (kv_head + 1) * at.group(); ++h) {
        const ScoreRule rule = ScoreRule::of(context, mask, at, b, h);
        for (std::int64_t i = 0; i < at.sequence; ++i) {
          const std::int64_t t = at.row(i, b);
          const std::int64_t column = at.query(h);
          const QueryRow<S> row{qkv[t] + column, out[t] + column, dout[t] + column, lse.data[t * at.heads + h],
                                dqkv[t] + column};
          backward_row(row, at, i, rule, kv, scratch);
        }
      }
      store(kv.dkeys, dqkv, at, b, at.key(kv_head));
      store(kv.dvalues, dqkv, at, b, at.value(kv_head));
    }
  }
}

}  // namespace

void attention_forward(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { forward<S>(context); });
}

void attention_backward(const KernelContext& context) {
  for_storage(dtype(context, 1), [&]<class S>() { backward<S>(context); });
}

}  // namespace stepcast::kernels::cpu
