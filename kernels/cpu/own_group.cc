// Key-value heads that several tensor-parallel ranks share: each has its own queries and an equal part of the columns
// of its group's key and value (program/ops: own_group). The gradients that come back hold zeros for what is another's,
// so that their sum over the ranks is that of the whole.
#include <algorithm>
#include <cstdint>

#include "kernels/cpu/access.h"
#include "kernels/cpu/reference.h"

namespace stepcast::kernels::cpu {
namespace {

template <class S>
struct Group {
  Rows<S> parts;  // members * tokens rows
  Rows<S> qkv;
  std::int64_t queries = 0;  // columns of q
  std::int64_t head = 0;     // columns of k, and of v
  std::int64_t share = 0;    // of them in each part
  std::int64_t first = 0;    // member of the group
  std::int64_t own = 0;

  S* part(std::int64_t member, std::int64_t row) const { return parts[member * qkv.count + row]; }
  // Calls visit(columns in the part, columns in qkv, width) for what a member's part has of the own row.
  template <class Visit>
  void for_each_range(std::int64_t member, const Visit& visit) const {
    if (member == own) visit(0, 0, queries);
    const std::int64_t place = member - first;
    if (place < 0 || place * share >= head) return;
    visit(queries, queries + place * share, share);
    visit(queries + share, queries + head + place * share, share);
  }
};

template <class S>
Group<S> group_of(const KernelContext& context, std::size_t parts, std::size_t qkv) {
  const program::Attributes& a = attributes(context);
  Group<S> g{rows<S>(context, parts), rows<S>(context, qkv)};
  g.queries = std::int64_t{a.heads} * a.head_dim;
  g.head = a.head_dim;
  g.share = a.head_dim / a.count;
  g.own = context.index;
  g.first = context.index / a.count * a.count;
  CHECK(g.parts.count == context.index_count * g.qkv.count, g.parts.count, context.index_count, g.qkv.count);
  CHECK(g.qkv.width == g.queries + 2 * g.head && g.parts.width == g.queries + 2 * g.share, g.qkv.width, g.parts.width);
  return g;
}

}  // namespace

void own_group(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() {
    const auto g = group_of<S>(context, 0, 1);
    for (std::int64_t member = 0; member < context.index_count; ++member) {
      for (std::int64_t row = 0; row < g.qkv.count; ++row) {
        g.for_each_range(member, [&](std::int64_t from, std::int64_t to, std::int64_t width) {
          std::copy_n(g.part(member, row) + from, width, g.qkv[row] + to);
        });
      }
    }
  });
}

void own_group_backward(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() {
    const auto g = group_of<S>(context, 1, 0);
    std::fill_n(g.parts.data, g.parts.size(), S{});
    for (std::int64_t member = 0; member < context.index_count; ++member) {
      for (std::int64_t row = 0; row < g.qkv.count; ++row) {
        g.for_each_range(member, [&](std::int64_t to, std::int64_t from, std::int64_t width) {
          std::copy_n(g.qkv[row] + from, width, g.part(member, row) + to);
        });
      }
    }
  });
}

}  // namespace stepcast::kernels::cpu
