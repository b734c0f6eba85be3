// Attention of a share of the queries to keys and values of other shares (ring attention, Liu et al. 2023,
// arXiv:2310.01889; all-gathered keys, Llama team 2024, arXiv:2407.21783, section 3.3.2), and the row copies around it.
//
// Softmax over keys that come block by block: with lse = log(sum of exp(scores)) of each block, two blocks merge into
// lse = log(e^lse1 + e^lse2) and out = out1 e^(lse1 - lse) + out2 e^(lse2 - lse). Backward is FlashAttention's with the
// lse and the output of all keys (Dao et al. 2022, arXiv:2205.14135, algorithm 4), which is a sum over keys: any block
// of them adds its terms.
//
// Rows are position-major, as in attention.cc; a kv row is [k heads | v heads].
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/access.h"
#include "kernels/cpu/reference.h"
#include "kernels/share.h"

namespace stepcast::kernels::cpu {
namespace {

// Shapes of one call and where its rows are in the whole sequence.
struct Blocks {
  std::int64_t batch, heads, kv_heads, dim;
  Share queries;
  std::int64_t key_positions;  // of one sequence
  bool gathered;               // keys of all members
  std::int64_t source;         // of the keys, when not gathered

  std::int64_t query_position(std::int64_t own) const { return queries.position(own); }
  std::int64_t key_position(std::int64_t j) const {
    Share keys = queries;
    keys.index = gathered ? j / queries.positions : source;
    return keys.position(j % queries.positions);
  }
  std::int64_t kv_head(std::int64_t head) const { return head / (heads / kv_heads); }
  std::int64_t key_column(std::int64_t head) const { return kv_head(head) * dim; }
  std::int64_t value_column(std::int64_t head) const { return (kv_heads + kv_head(head)) * dim; }
};

Blocks blocks_of(const KernelContext& context, std::int64_t query_rows, std::int64_t key_rows) {
  const program::Attributes& a = attributes(context);
  CHECK(a.batch > 0 && a.kv_heads > 0 && a.heads % a.kv_heads == 0 && a.head_dim > 0, a.batch, a.heads, a.kv_heads);
  const std::int64_t members = context.index_count;
  const bool gathered = key_rows != query_rows;
  CHECK(query_rows % a.batch == 0 && (!gathered || key_rows == members * query_rows), query_rows, key_rows, members);
  const Share queries{context.index, members, query_rows / a.batch};
  return {a.batch,    a.heads,
          a.kv_heads, a.head_dim,
          queries,    key_rows / a.batch,
          gathered,   program::member_position(context.index - a.count, members)};
}

template <class A, class S>
A dot(const S* x, const S* y, std::int64_t n) {
  A sum = 0;
  for (std::int64_t c = 0; c < n; ++c) sum += widen(x[c]) * widen(y[c]);
  return sum;
}

// Calls visit(key row, score) for every key of sequence b that the query at row t sees.
template <class S, class Visit>
void for_each_key(const Blocks& at, const S* query, std::int64_t position, std::int64_t b, std::int64_t head,
                  const Rows<S>& kv, const Visit& visit) {
  using A = Accumulate<S>;
  const A scale = static_cast<A>(1.0 / std::sqrt(static_cast<double>(at.dim)));
  for (std::int64_t j = 0; j < at.key_positions; ++j) {
    if (at.key_position(j) > position) continue;
    const std::int64_t row = j * at.batch + b;
    visit(row, scale * dot<A>(query, kv[row] + at.key_column(head), at.dim));
  }
}

// Attention of one query to this call's keys; returns the log-sum-exp, minus infinity when it sees none.
template <class S>
Accumulate<S> attend(const Blocks& at, const S* query, std::int64_t position, std::int64_t b, std::int64_t head,
                     const Rows<S>& kv, std::vector<Accumulate<S>>& mixed) {
  using A = Accumulate<S>;
  A largest = -std::numeric_limits<A>::infinity();
  for_each_key(at, query, position, b, head, kv, [&](std::int64_t, A score) { largest = std::max(largest, score); });
  std::fill(mixed.begin(), mixed.end(), A(0));
  A sum = 0;
  for_each_key(at, query, position, b, head, kv, [&](std::int64_t row, A score) {
    const A weight = std::exp(score - largest);
    sum += weight;
    add_scaled(at.dim, weight, kv[row] + at.value_column(head), mixed.data());
  });
  if (sum == 0) return largest;
  for (A& channel : mixed) channel /= sum;
  return largest + std::log(sum);
}

template <class S>
void forward(const KernelContext& context) {
  using A = Accumulate<S>;
  const auto qkv = rows<S>(context, 0);
  const auto kv = rows<S>(context, 1);
  const auto out = rows<S>(context, 2);
  const auto lse = rows<A>(context, 3);
  const Blocks at = blocks_of(context, qkv.count, kv.count);
  std::vector<A> mixed(static_cast<std::size_t>(at.dim));
  for (std::int64_t t = 0; t < qkv.count; ++t) {
    for (std::int64_t h = 0; h < at.heads; ++h) {
      const A block = attend(at, qkv[t] + h * at.dim, at.query_position(t / at.batch), t % at.batch, h, kv, mixed);
      S* to = out[t] + h * at.dim;
      A& total = lse.data[t * at.heads + h];
      if (!context.accumulate) {
        for (std::int64_t c = 0; c < at.dim; ++c) to[c] = narrow<S>(mixed[static_cast<std::size_t>(c)]);
        total = block;
        continue;
      }
      if (std::isinf(block)) continue;
      const A largest = std::max(total, block);
      const A merged = largest + std::log(std::exp(total - largest) + std::exp(block - largest));
      const A keep = std::exp(total - merged);
      const A take = std::exp(block - merged);
      for (std::int64_t c = 0; c < at.dim; ++c) {
        to[c] = narrow<S>(widen(to[c]) * keep + mixed[static_cast<std::size_t>(c)] * take);
      }
      total = merged;
    }
  }
}

template <class S>
struct BackwardRows {
  Rows<S> dout, qkv, kv, out;
  Rows<Accumulate<S>> lse;
};

// Adds one query's terms to dquery [dim] and to dkv [key rows, 2 * kv_heads * dim].
template <class S>
void add_gradients(const Blocks& at, const BackwardRows<S>& in, std::int64_t t, std::int64_t h,
                   std::vector<Accumulate<S>>& dquery, std::vector<Accumulate<S>>& dkv) {
  using A = Accumulate<S>;
  const S* query = in.qkv[t] + h * at.dim;
  const S* dout = in.dout[t] + h * at.dim;
  const A scale = static_cast<A>(1.0 / std::sqrt(static_cast<double>(at.dim)));
  const A delta = dot<A>(dout, in.out[t] + h * at.dim, at.dim);
  const A lse = in.lse.data[t * at.heads + h];
  for_each_key(at, query, at.query_position(t / at.batch), t % at.batch, h, in.kv, [&](std::int64_t row, A score) {
    const S* key = in.kv[row] + at.key_column(h);
    const S* value = in.kv[row] + at.value_column(h);
    const A p = std::exp(score - lse);
    const A ds = p * (dot<A>(dout, value, at.dim) - delta) * scale;
    add_scaled(at.dim, ds, key, dquery.data());
    add_scaled(at.dim, ds, query, dkv.data() + row * in.kv.width + at.key_column(h));
    add_scaled(at.dim, p, dout, dkv.data() + row * in.kv.width + at.value_column(h));
  });
}

template <class S>
void backward(const KernelContext& context) {
  using A = Accumulate<S>;
  const BackwardRows<S> in{rows<S>(context, 0), rows<S>(context, 1), rows<S>(context, 2), rows<S>(context, 3),
                           rows<A>(context, 4)};
  const auto dqkv = rows<S>(context, 5);
  const auto dkv = rows<S>(context, 6);
  const Blocks at = blocks_of(context, in.qkv.count, in.kv.count);
  std::vector<A> dquery(static_cast<std::size_t>(at.dim));
  std::vector<A> sums(static_cast<std::size_t>(dkv.size()), A(0));
  for (std::int64_t t = 0; t < in.qkv.count; ++t) {
    for (std::int64_t h = 0; h < at.heads; ++h) {
      std::fill(dquery.begin(), dquery.end(), A(0));
      add_gradients(at, in, t, h, dquery, sums);
      S* to = dqkv[t] + h * at.dim;
      for (std::int64_t c = 0; c < at.dim; ++c) {
        const A added = dquery[static_cast<std::size_t>(c)];
        to[c] = narrow<S>(context.accumulate ? widen(to[c]) + added : added);
      }
    }
    if (context.accumulate) continue;
    std::fill(dqkv[t] + at.heads * at.dim, dqkv[t] + dqkv.width, narrow<S>(A(0)));
  }
  for (std::int64_t i = 0; i < dkv.size(); ++i) dkv.data[i] = narrow<S>(sums[static_cast<std::size_t>(i)]);
}

// The first column of k and the columns of k and v together, of a qkv row.
template <class S>
std::int64_t kv_begin(const KernelContext& context, const Rows<S>& qkv, const Rows<S>& kv) {
  const program::Attributes& a = attributes(context);
  const std::int64_t begin = std::int64_t{a.heads} * a.head_dim;
  CHECK(qkv.count == kv.count && qkv.width == begin + kv.width, qkv.count, kv.count, qkv.width, kv.width);
  return begin;
}

// Rows are counted along the first extent: tokens have no other.
template <class S>
Rows<S> by_first_extent(const KernelContext& context, std::size_t position) {
  Rows<S> r = rows<S>(context, position);
  const std::int64_t elements = r.size();
  r.count = operand(context, position).type.shape.extent(0);
  r.width = elements / r.count;
  return r;
}

template <class S>
void take_own_rows(const KernelContext& context) {
  const auto in = by_first_extent<S>(context, 0);
  const auto out = by_first_extent<S>(context, 1);
  const std::int64_t batch = attributes(context).batch;
  CHECK(in.count == context.index_count * out.count && in.width == out.width && out.count % batch == 0, in.count,
        out.count, context.index_count, batch);
  const Share share{context.index, context.index_count, out.count / batch};
  for (std::int64_t t = 0; t < out.count; ++t) {
    const S* from = in[share.position(t / batch) * batch + t % batch];
    std::copy_n(from, in.width, out[t]);
  }
}

}  // namespace

void own_rows(const KernelContext& context) {
  if (dtype(context, 0) == program::DType::kI32) return take_own_rows<std::int32_t>(context);
  for_storage(dtype(context, 0), [&]<class S>() { take_own_rows<S>(context); });
}

void kv_extract(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() {
    const auto qkv = rows<S>(context, 0);
    const auto kv = rows<S>(context, 1);
    const std::int64_t begin = kv_begin(context, qkv, kv);
    for (std::int64_t t = 0; t < kv.count; ++t) std::copy_n(qkv[t] + begin, kv.width, kv[t]);
  });
}

void kv_accumulate(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() {
    const auto dkv = rows<S>(context, 0);
    const auto dqkv = rows<S>(context, 1);
    const std::int64_t begin = kv_begin(context, dqkv, dkv);
    for (std::int64_t t = 0; t < dkv.count; ++t) {
      S* to = dqkv[t] + begin;
      for (std::int64_t c = 0; c < dkv.width; ++c) to[c] = narrow<S>(widen(to[c]) + widen(dkv[t][c]));
    }
  });
}

void share_attention_forward(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { forward<S>(context); });
}

void share_attention_backward(const KernelContext& context) {
  for_storage(dtype(context, 1), [&]<class S>() { backward<S>(context); });
}

}  // namespace stepcast::kernels::cpu
