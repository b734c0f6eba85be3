// Rows and columns that move: own shares of rows, columns of k and v, and the parts around all-to-alls and around
// shared key-value heads. Layouts and sources: cpu/context.cc, cpu/context_parts.cc, cpu/own_group.cc. Every element of
// the result asks where it comes from, so results are whole.
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/share.h"

namespace stepcast::kernels::cuda {
namespace {

template <class S>
__global__ void take_share(const S* in, Rows<S> out, Share share, std::int64_t batch) {
  const std::int64_t t = blockIdx.x;
  const S* from = in + (share.position(t / batch) * batch + t % batch) * out.width;
  for (std::int64_t c = threadIdx.x; c < out.width; c += blockDim.x) out[t][c] = from[c];
}

template <class S>
__global__ void take_columns(Rows<S> qkv, std::int64_t begin, Rows<S> kv) {
  const std::int64_t t = blockIdx.x;
  for (std::int64_t c = threadIdx.x; c < kv.width; c += blockDim.x) kv[t][c] = qkv[t][begin + c];
}

template <class S>
__global__ void add_to_columns(Rows<S> dkv, std::int64_t begin, Rows<S> dqkv) {
  const std::int64_t t = blockIdx.x;
  S* to = dqkv[t] + begin;
  for (std::int64_t c = threadIdx.x; c < dkv.width; c += blockDim.x) to[c] = narrow<S>(widen(to[c]) + widen(dkv[t][c]));
}

// One part [members, rows, width] beside its columns in the whole.
template <class S>
struct PartOfWhole {
  Rows<S> part;  // members * rows of them
  Rows<S> whole;
  std::int64_t members = 0;
  std::int64_t rows = 0;    // of each member
  std::int64_t column = 0;  // of the whole, where this part's begin
  std::int64_t batch = 1;
  bool heads = false;   // a member's are columns of the own rows; else rows, its share of whole sequences
  bool splits = false;  // the part is the result

  // Of row r of the part, in the whole.
  constexpr S* in_whole(std::int64_t r) const {
    const std::int64_t member = r / rows;
    const std::int64_t row = r % rows;
    if (heads) return whole[row] + column + member * part.width;
    const Share share{member, members, rows / batch};
    return whole[share.position(row / batch) * batch + row % batch] + column;
  }
};

template <class S>
__global__ void move_rows(PartOfWhole<S> at) {
  const std::int64_t r = blockIdx.x;
  S* whole = at.in_whole(r);
  S* part = at.part[r];
  for (std::int64_t c = threadIdx.x; c < at.part.width; c += blockDim.x) {
    if (at.splits) {
      part[c] = whole[c];
    } else {
      whole[c] = part[c];
    }
  }
}

// The whole is the first operand of a split and the last of a join; columns of it are taken by one part after the
// other.
void move_parts(const KernelContext& context, bool splits, bool heads) {
  const std::size_t operands = context.operands.size();
  CHECK(operands == 2 || operands == 4, operands);
  for_device_storage(dtype(context, 0), [&]<class S>() {
    PartOfWhole<S> at{.part = {},
                      .whole = rows<S>(context, splits ? 0 : operands - 1),
                      .batch = attributes(context).batch,
                      .heads = heads,
                      .splits = splits};
    for (std::size_t i = splits ? 1 : 0; i < (splits ? operands : operands - 1); ++i) {
      const program::Shape& shape = operand(context, i).type.shape;
      CHECK(shape.rank == 3, shape.rank);
      at.part = rows<S>(context, i);
      at.members = shape.extent(0);
      at.rows = shape.extent(1);
      CHECK(at.whole.count == (heads ? at.rows : at.members * at.rows), at.whole.count, at.members, at.rows);
      CHECK(heads || at.rows % at.batch == 0, at.rows, at.batch);
      launch_rows(context, at.part.count, at.part.width, &move_rows<S>, at);
      at.column += heads ? at.members * at.part.width : at.part.width;
    }
    CHECK(at.column == at.whole.width, at.column, at.whole.width);
  });
}

// Columns of a group's qkv row [queries | key | value] and of a member's part [queries | 1/g of the key | of the
// value].
template <class S>
struct Group {
  Rows<S> parts;  // members * tokens rows
  Rows<S> qkv;
  std::int64_t queries = 0;
  std::int64_t head = 0;   // columns of k, and of v
  std::int64_t share = 0;  // of them in each part
  std::int64_t first = 0;  // member of the group
  std::int64_t own = 0;
};

template <class S>
Group<S> group_of(const KernelContext& context, std::size_t parts, std::size_t qkv) {
  const program::Attributes& a = attributes(context);
  Group<S> g{.parts = rows<S>(context, parts), .qkv = rows<S>(context, qkv)};
  CHECK(a.count > 0, a.count);
  g.queries = std::int64_t{a.heads} * a.head_dim;
  g.head = a.head_dim;
  g.share = a.head_dim / a.count;
  g.own = context.index;
  g.first = context.index / a.count * a.count;
  CHECK(g.parts.count == context.index_count * g.qkv.count, g.parts.count, context.index_count, g.qkv.count);
  CHECK(g.qkv.width == g.queries + 2 * g.head && g.parts.width == g.queries + 2 * g.share, g.qkv.width, g.parts.width);
  return g;
}

template <class S>
__global__ void put_together(Group<S> g) {
  const std::int64_t row = blockIdx.x;
  for (std::int64_t c = threadIdx.x; c < g.qkv.width; c += blockDim.x) {
    if (c < g.queries) {
      g.qkv[row][c] = g.parts[g.own * g.qkv.count + row][c];
      continue;
    }
    const std::int64_t of_value = (c - g.queries) / g.head;  // 0: of the key
    const std::int64_t channel = (c - g.queries) % g.head;
    const std::int64_t member = g.first + channel / g.share;
    g.qkv[row][c] = g.parts[member * g.qkv.count + row][g.queries + of_value * g.share + channel % g.share];
  }
}

// What is another group's, or another member's queries, is zero.
template <class S>
__global__ void take_apart(Group<S> g) {
  const std::int64_t member = blockIdx.x / g.qkv.count;
  const std::int64_t row = blockIdx.x % g.qkv.count;
  const std::int64_t place = member - g.first;
  const bool in_group = place >= 0 && place * g.share < g.head;
  S* to = g.parts[blockIdx.x];
  for (std::int64_t c = threadIdx.x; c < g.parts.width; c += blockDim.x) {
    if (c < g.queries) {
      to[c] = member == g.own ? g.qkv[row][c] : S{};
      continue;
    }
    const std::int64_t of_value = (c - g.queries) / g.share;
    const std::int64_t channel = place * g.share + (c - g.queries) % g.share;
    to[c] = in_group ? g.qkv[row][g.queries + of_value * g.head + channel] : S{};
  }
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
  launch_rows(context, out.count, out.width, &take_share<S>, in.data, out, share, batch);
}

// The first column of k; `kv` has the columns of k and v.
template <class S>
std::int64_t kv_begin(const KernelContext& context, const Rows<S>& qkv, const Rows<S>& kv) {
  const program::Attributes& a = attributes(context);
  const std::int64_t begin = std::int64_t{a.heads} * a.head_dim;
  CHECK(qkv.count == kv.count && qkv.width == begin + kv.width, qkv.count, kv.count, qkv.width, kv.width);
  return begin;
}

}  // namespace

void own_rows(const KernelContext& context) {
  if (dtype(context, 0) == program::DType::kI32) return take_own_rows<std::int32_t>(context);
  for_device_storage(dtype(context, 0), [&]<class S>() { take_own_rows<S>(context); });
}

void kv_extract(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() {
    const auto qkv = rows<S>(context, 0);
    const auto kv = rows<S>(context, 1);
    launch_rows(context, kv.count, kv.width, &take_columns<S>, qkv, kv_begin(context, qkv, kv), kv);
  });
}

void kv_accumulate(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() {
    const auto dkv = rows<S>(context, 0);
    const auto dqkv = rows<S>(context, 1);
    launch_rows(context, dkv.count, dkv.width, &add_to_columns<S>, dkv, kv_begin(context, dqkv, dkv), dqkv);
  });
}

void heads_split(const KernelContext& context) { move_parts(context, true, true); }
void heads_join(const KernelContext& context) { move_parts(context, false, true); }
void shares_join(const KernelContext& context) { move_parts(context, false, false); }
void shares_split(const KernelContext& context) { move_parts(context, true, false); }

void own_group(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() {
    const auto g = group_of<S>(context, 0, 1);
    launch_rows(context, g.qkv.count, g.qkv.width, &put_together<S>, g);
  });
}

void own_group_backward(const KernelContext& context) {
  for_device_storage(dtype(context, 0), [&]<class S>() {
    const auto g = group_of<S>(context, 1, 0);
    launch_rows(context, g.parts.count, g.parts.width, &take_apart<S>, g);
  });
}

}  // namespace stepcast::kernels::cuda
