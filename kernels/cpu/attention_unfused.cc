// Attention as stacks without a fused kernel run it: scores, softmax and context as ops of their own, the score
// matrices of all heads kept in memory (Megatron-LM's core attention; Korthikanti et al. 2022, arXiv:2205.05198, figure
// 3).
//
// Matrix n of [batch * heads, s, s] is head n % heads of sequence n / heads. With p the probabilities and d the
// gradient: softmax backward is ds = p * (dp - sum over keys of p * dp); scores: dq = ds k / sqrt(dim), dk = ds^T q /
// sqrt(dim); context: dp = dout v^T, dv = p^T dout. Keys behind the query have probability 0.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/attention_layout.h"
#include "kernels/cpu/reference.h"

namespace stepcast::kernels::cpu {
namespace {

using Layout = AttentionLayout;

template <class S>
void check_scores_of(const Rows<S>& scores, const Layout& at) {
  CHECK(scores.width == at.sequence && scores.count == at.batch * at.heads * at.sequence, scores.count, scores.width);
}

// Calls body(b, h, first) for every matrix, whose row i is row first + i of the scores.
template <class Body>
void for_matrices(const Layout& at, const Body& body) {
  for (std::int64_t b = 0; b < at.batch; ++b) {
    for (std::int64_t h = 0; h < at.heads; ++h) body(b, h, (b * at.heads + h) * at.sequence);
  }
}

template <class S>
void scores_forward(const KernelContext& context) {
  using A = Accumulate<S>;
  const auto qkv = rows<S>(context, 0);
  const auto scores = rows<S>(context, 1);
  const Layout at = attention_layout(context, qkv.count, qkv.width);
  check_scores_of(scores, at);
  for_matrices(at, [&](std::int64_t b, std::int64_t h, std::int64_t first) {
    for (std::int64_t i = 0; i < at.sequence; ++i) {
      const S* query = qkv[at.row(i, b)] + at.query(h);
      for (std::int64_t j = 0; j < at.sequence; ++j) {
        const A product = dot<A>(query, qkv[at.row(j, b)] + at.key(h / at.group()), at.dim);
        scores[first + i][j] = narrow<S>(product * scale_of<A>(at));
      }
    }
  });
}

// Adds the sums [position, dim] to dim channels of the rows of one sequence, from column `column` on.
template <class S>
void add_positions(const std::vector<Accumulate<S>>& sum, const Rows<S>& to, const Layout& at, std::int64_t b,
                   std::int64_t column) {
  for (std::int64_t p = 0; p < at.sequence; ++p) {
    add_sums(sum.data() + p * at.dim, at.dim, to[at.row(p, b)] + column);
  }
}

template <class S>
void scores_backward(const KernelContext& context) {
  using A = Accumulate<S>;
  const auto dscores = rows<S>(context, 0);
  const auto qkv = rows<S>(context, 1);
  const auto dqkv = rows<S>(context, 2);
  const Layout at = attention_layout(context, qkv.count, qkv.width);
  check_scores_of(dscores, at);
  CHECK(dqkv.size() == qkv.size(), dqkv.size(), qkv.size());
  const auto size = static_cast<std::size_t>(at.sequence * at.dim);
  for (std::int64_t b = 0; b < at.batch; ++b) {
    for (std::int64_t kv = 0; kv < at.kv_heads; ++kv) {
      std::vector<A> dkeys(size, A(0));
      for (std::int64_t h = kv * at.group(); h < (kv + 1) * at.group(); ++h) {
        std::vector<A> dqueries(size, A(0));
        for (std::int64_t i = 0; i < at.sequence; ++i) {
          const S* d = dscores[(b * at.heads + h) * at.sequence + i];
          const S* query = qkv[at.row(i, b)] + at.query(h);
          for (std::int64_t j = 0; j < at.sequence; ++j) {
            const A scaled = widen(d[j]) * scale_of<A>(at);
            add_scaled(at.dim, scaled, qkv[at.row(j, b)] + at.key(kv), dqueries.data() + i * at.dim);
            add_scaled(at.dim, scaled, query, dkeys.data() + j * at.dim);
          }
        }
        add_positions(dqueries, dqkv, at, b, at.query(h));
      }
      add_positions(dkeys, dqkv, at, b, at.key(kv));
    }
  }
}

template <class S>
void softmax_row(const S* scores, S* probabilities, std::int64_t i, std::int64_t sequence, double slope) {
  using A = Accumulate<S>;
  std::vector<A> row(static_cast<std::size_t>(i + 1));
  for (std::int64_t j = 0; j <= i; ++j) {
    row[static_cast<std::size_t>(j)] = widen(scores[j]) - static_cast<A>(slope * static_cast<double>(i - j));
  }
  const A largest = *std::max_element(row.begin(), row.end());
  double total = 0;
  for (A& x : row) {
    x = std::exp(x - largest);
    total += static_cast<double>(x);
  }
  for (std::int64_t j = 0; j <= i; ++j) {
    probabilities[j] = narrow<S>(row[static_cast<std::size_t>(j)] / static_cast<A>(total));
  }
  std::fill(probabilities + i + 1, probabilities + sequence, narrow<S>(A(0)));
}

template <class S>
void softmax_rows(const KernelContext& context) {
  const auto scores = rows<S>(context, 0);
  const auto probabilities = rows<S>(context, 1);
  const std::int64_t sequence = scores.width;
  CHECK(probabilities.size() == scores.size() && scores.count % sequence == 0, scores.count, sequence);
  const std::int64_t heads = attributes(context).heads;
  CHECK(attributes(context).count == 0 || heads > 0, heads);
  for (std::int64_t row = 0; row < scores.count; ++row) {
    const double slope = heads > 0 ? slope_of(context, row / sequence % heads) : 0;
    softmax_row(scores[row], probabilities[row], row % sequence, sequence, slope);
  }
}

template <class S>
void softmax_gradient(const KernelContext& context) {
  using A = Accumulate<S>;
  const auto probabilities = rows<S>(context, 0);
  const auto gradient = rows<S>(context, 1);
  CHECK(probabilities.size() == gradient.size(), probabilities.size(), gradient.size());
  for (std::int64_t row = 0; row < gradient.count; ++row) {
    const S* p = probabilities[row];
    S* g = gradient[row];
    double sum = 0;
    for (std::int64_t j = 0; j < gradient.width; ++j) sum += static_cast<double>(widen(p[j]) * widen(g[j]));
    const A mean = static_cast<A>(sum);
    for (std::int64_t j = 0; j < gradient.width; ++j) g[j] = narrow<S>(widen(p[j]) * (widen(g[j]) - mean));
  }
}

template <class S>
void context_forward(const KernelContext& context) {
  using A = Accumulate<S>;
  const auto probabilities = rows<S>(context, 0);
  const auto qkv = rows<S>(context, 1);
  const auto out = rows<S>(context, 2);
  const Layout at = attention_layout(context, qkv.count, qkv.width);
  check_scores_of(probabilities, at);
  CHECK(out.count == qkv.count && out.width == at.heads * at.dim, out.count, out.width);
  std::vector<A> mixed(static_cast<std::size_t>(at.dim));
  for_matrices(at, [&](std::int64_t b, std::int64_t h, std::int64_t first) {
    for (std::int64_t i = 0; i < at.sequence; ++i) {
      std::fill(mixed.begin(), mixed.end(), A(0));
      for (std::int64_t j = 0; j < at.sequence; ++j) {
        add_scaled(at.dim, widen(probabilities[first + i][j]), qkv[at.row(j, b)] + at.value(h / at.group()),
                   mixed.data());
      }
      S* to = out[at.row(i, b)] + at.query(h);
      for (std::int64_t c = 0; c < at.dim; ++c) to[c] = narrow<S>(mixed[static_cast<std::size_t>(c)]);
    }
  });
}

template <class S>
void context_backward(const KernelContext& context) {
  using A = Accumulate<S>;
  const auto dout = rows<S>(context, 0);
  const auto probabilities = rows<S>(context, 1);
  const auto qkv = rows<S>(context, 2);
  const auto dprobabilities = rows<S>(context, 3);
  const auto dqkv = rows<S>(context, 4);
  const Layout at = attention_layout(context, qkv.count, qkv.width);
  check_scores_of(probabilities, at);
  check_scores_of(dprobabilities, at);
  CHECK(dqkv.size() == qkv.size() && dout.count == qkv.count && dout.width == at.heads * at.dim, dout.count);
  std::fill_n(dqkv.data, dqkv.size(), narrow<S>(A(0)));
  const auto size = static_cast<std::size_t>(at.sequence * at.dim);
  for (std::int64_t b = 0; b < at.batch; ++b) {
    for (std::int64_t kv = 0; kv < at.kv_heads; ++kv) {
      std::vector<A> dvalues(size, A(0));
      for (std::int64_t h = kv * at.group(); h < (kv + 1) * at.group(); ++h) {
        for (std::int64_t i = 0; i < at.sequence; ++i) {
          const std::int64_t row = (b * at.heads + h) * at.sequence + i;
          const S* d = dout[at.row(i, b)] + at.query(h);
          for (std::int64_t j = 0; j < at.sequence; ++j) {
            dprobabilities[row][j] = narrow<S>(dot<A>(d, qkv[at.row(j, b)] + at.value(kv), at.dim));
            add_scaled(at.dim, widen(probabilities[row][j]), d, dvalues.data() + j * at.dim);
          }
        }
      }
      add_positions(dvalues, dqkv, at, b, at.value(kv));
    }
  }
}

}  // namespace

void attention_scores_forward(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { scores_forward<S>(context); });
}

void attention_scores_backward(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { scores_backward<S>(context); });
}

void softmax_forward(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { softmax_rows<S>(context); });
}

void softmax_backward(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { softmax_gradient<S>(context); });
}

void attention_context_forward(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { context_forward<S>(context); });
}

void attention_context_backward(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { context_backward<S>(context); });
}

}  // namespace stepcast::kernels::cpu
