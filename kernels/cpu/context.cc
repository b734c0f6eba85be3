// Attention of a share of the queries to keys and values of other shares (ring attention, Liu et al. 2023,
// arXiv:2310.01889; all-gathered keys, Llama team 2024, arXiv:2407.21783, section 3.3.2), and the row copies around it.
//
// Softmax over keys that come block by block: with lse = log(sum of exp(scores)) of each block, two blocks merge into
// lse = log(e^lse1 + e^lse2) and out = out1 e^(lse1 - lse) + out2 e^(lse2 - lse). Backward is FlashAttention's with the
// lse and the output of all keys (Dao et al. 2022, arXiv:2205.14135, algorithm 4), which is a sum over keys: any block
// of them adds its terms.
//
// Rows are position-major, as in attention.cc; a kv row is [k heads | v heads].
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/attention_layout.h"
#include "kernels/cpu/reference.h"
#include "kernels/share.h"

namespace stepcast::kernels::cpu {
namespace {

// Shapes of one call and where its rows are in the whole sequence.
struct Blocks {
  AttentionLayout heads;  // of the queries' rows
  Share queries;
  std::int64_t key_positions;  // of one sequence
  bool gathered;               // keys of all members
  std::int64_t source;         // of the keys, when not gathered

  std::int64_t dim() const { return heads.dim; }
  std::int64_t query_position(std::int64_t row) const { return queries.position(row / heads.batch); }
  std::int64_t key_position(std::int64_t j) const {
    Share keys = queries;
    keys.index = gathered ? j / queries.positions : source;
    return keys.position(j % queries.positions);
  }
  // Columns of a kv row, which begins where the queries of a qkv row end.
  std::int64_t key_column(std::int64_t head) const { return heads.key(head / heads.group()) - heads.key(0); }
  std::int64_t value_column(std::int64_t head) const { return heads.value(head / heads.group()) - heads.key(0); }
};

template <class S>
Blocks blocks_of(const KernelContext& context, const Rows<S>& qkv, const Rows<S>& kv) {
  const AttentionLayout heads = attention_layout(context, qkv.count, qkv.width);
  const std::int64_t members = context.index_count;
  const bool gathered = kv.count != qkv.count;
  CHECK(!gathered || kv.count == members * qkv.count, qkv.count, kv.count, members);
  const Share queries{context.index, members, heads.sequence};
  return {heads, queries, kv.count / heads.batch, gathered,
          program::member_position(context.index - attributes(context).count, members)};
}

// Calls visit(key row, score) for every key that the query at row t sees, of its own sequence.
template <class S, class Visit>
void for_each_key(const Blocks& at, const Rows<S>& qkv, const Rows<S>& kv, std::int64_t t, std::int64_t head,
                  const Visit& visit) {
  using A = Accumulate<S>;
  const S* query = qkv[t] + at.heads.query(head);
  for (std::int64_t j = 0; j < at.key_positions; ++j) {
    if (at.key_position(j) > at.query_position(t)) continue;
    const std::int64_t row = at.heads.row(j, t % at.heads.batch);
    visit(row, scale_of<A>(at.heads) * dot<A>(query, kv[row] + at.key_column(head), at.dim()));
  }
}

// Attention of the query at row t to this call's keys; returns the log-sum-exp, minus infinity when it sees none.
template <class S>
Accumulate<S> attend(const Blocks& at, const Rows<S>& qkv, const Rows<S>& kv, std::int64_t t, std::int64_t head,
                     std::vector<Accumulate<S>>& mixed) {
  using A = Accumulate<S>;
  A largest = -std::numeric_limits<A>::infinity();
  for_each_key(at, qkv, kv, t, head, [&](std::int64_t, A score) { largest = std::max(largest, score); });
  std::fill(mixed.begin(), mixed.end(), A(0));
  A sum = 0;
  for_each_key(at, qkv, kv, t, head, [&](std::int64_t row, A score) {
    const A weight = std::exp(score - largest);
    sum += weight;
    add_scaled(at.dim(), weight, kv[row] + at.value_column(head), mixed.data());
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
  const Blocks at = blocks_of(context, qkv, kv);
  std::vector<A> mixed(static_cast<std::size_t>(at.dim()));
  for (std::int64_t t = 0; t < qkv.count; ++t) {
    for (std::int64_t h = 0; h < at.heads.heads; ++h) {
      const A block = attend(at, qkv, kv, t, h, mixed);
      S* to = out[t] + at.heads.query(h);
      A& total = lse.data[t * at.heads.heads + h];
      if (!context.accumulate) {
        for (std::int64_t c = 0; c < at.dim(); ++c) to[c] = narrow<S>(mixed[static_cast<std::size_t>(c)]);
        total = block;
        continue;
      }
      if (std::isinf(block)) continue;
      const A largest = std::max(total, block);
      const A merged = largest + std::log(std::exp(total - largest) + std::exp(block - largest));
      const A keep = std::exp(total - merged);
      const A take = std::exp(block - merged);
      for (std::int64_t c = 0; c < at.dim(); ++c) {
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
  const S* query = in.qkv[t] + at.heads.query(h);
  const S* dout = in.dout[t] + at.heads.query(h);
  const A delta = dot<A>(dout, in.out[t] + at.heads.query(h), at.dim());
  const A lse = in.lse.data[t * at.heads.heads + h];
  for_each_key(at, in.qkv, in.kv, t, h, [&](std::int64_t row, A score) {
    const S* key = in.kv[row] + at.key_column(h);
    const S* value = in.kv[row] + at.value_column(h);
    const A p = std::exp(score - lse);
    const A ds = p * (dot<A>(dout, value, at.dim()) - delta) * scale_of<A>(at.heads);
    add_scaled(at.dim(), ds, key, dquery.data());
    add_scaled(at.dim(), ds, query, dkv.data() + row * in.kv.width + at.key_column(h));
    add_scaled(at.dim(), p, dout, dkv.data() + row * in.kv.width + at.value_column(h));
  });
}

template <class S>
void backward(const KernelContext& context) {
  using A = Accumulate<S>;
  const BackwardRows<S> in{rows<S>(context, 0), rows<S>(context, 1), rows<S>(context, 2), rows<S>(context, 3),
                           rows<A>(context, 4)};
  const auto dqkv = rows<S>(context, 5);
  const auto dkv = rows<S>(context, 6);
  const Blocks at = blocks_of(context, in.qkv, in.kv);
  std::vector<A> dquery(static_cast<std::size_t>(at.dim()));
  std::vector<A> sums(static_cast<std::size_t>(dkv.size()), A(0));
  for (std::int64_t t = 0; t < in.qkv.count; ++t) {
    for (std::int64_t h = 0; h < at.heads.heads; ++h) {
      std::fill(dquery.begin(), dquery.end(), A(0));
      add_gradients(at, in, t, h, dquery, sums);
      S* to = dqkv[t] + at.heads.query(h);
      for (std::int64_t c = 0; c < at.dim(); ++c) {
        const A added = dquery[static_cast<std::size_t>(c)];
        to[c] = narrow<S>(context.accumulate ? widen(to[c]) + added : added);
      }
    }
    if (context.accumulate) continue;
    std::fill(dqkv[t] + at.heads.key(0), dqkv[t] + dqkv.width, narrow<S>(A(0)));
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
