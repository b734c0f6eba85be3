// Rows and columns of queries, keys and values around the all-to-alls of context parallelism (Jacobs et al. 2023,
// DeepSpeed Ulysses, arXiv:2309.14509; flash_attn_a2a_communicate of Transformer Engine): a part [n,T,W] holds, for
// each of n members, its group of heads of the own rows, or its rows of the own heads. Copies only: a join is the
// inverse of its split.
#include <algorithm>
#include <cstddef>

#include "kernels/cpu/access.h"
#include "kernels/cpu/reference.h"
#include "kernels/share.h"

namespace stepcast::kernels::cpu {
namespace {

// One part beside its columns in the whole.
template <class S>
struct PartOfWhole {
  S* part = nullptr;
  Rows<S> whole;
  std::int64_t members = 0;
  std::int64_t rows = 0;    // of each member
  std::int64_t width = 0;   // of each member
  std::int64_t column = 0;  // of the whole, where this part's begin

  S* of(std::int64_t member, std::int64_t row) const { return part + (member * rows + row) * width; }
};

// Calls visit(part) for each part of the whole, which is the first operand of a split and the last of a join; columns
// of the whole are taken by one part after the other, `spread` of them for each column of a part.
template <class S, class Visit>
void for_each_part(const KernelContext& context, bool splits, bool heads, const Visit& visit) {
  const std::size_t operands = context.operands.size();
  CHECK(operands == 2 || operands == 4, operands);
  PartOfWhole<S> at;
  at.whole = rows<S>(context, splits ? 0 : operands - 1);
  for (std::size_t i = splits ? 1 : 0; i < (splits ? operands : operands - 1); ++i) {
    const program::Shape& shape = operand(context, i).type.shape;
    CHECK(shape.rank == 3, shape.rank);
    at.part = rows<S>(context, i).data;
    at.members = shape.extent(0);
    at.rows = shape.extent(1);
    at.width = shape.extent(2);
    visit(at);
    at.column += heads ? at.members * at.width : at.width;
  }
  CHECK(at.column == at.whole.width, at.column, at.whole.width);
}

template <class S>
void copy_row(bool splits, std::int64_t width, S* whole, S* part) {
  std::copy_n(splits ? whole : part, width, splits ? part : whole);
}

void move_heads(const KernelContext& context, bool splits) {
  for_storage(dtype(context, 0), [&]<class S>() {
    for_each_part<S>(context, splits, true, [&](const PartOfWhole<S>& at) {
      CHECK(at.whole.count == at.rows, at.whole.count, at.rows);
      for (std::int64_t member = 0; member < at.members; ++member) {
        for (std::int64_t row = 0; row < at.rows; ++row) {
          copy_row(splits, at.width, at.whole[row] + at.column + member * at.width, at.of(member, row));
        }
      }
    });
  });
}

void move_shares(const KernelContext& context, bool splits) {
  const std::int64_t batch = attributes(context).batch;
  for_storage(dtype(context, 0), [&]<class S>() {
    for_each_part<S>(context, splits, false, [&](const PartOfWhole<S>& at) {
      CHECK(at.whole.count == at.members * at.rows && at.rows % batch == 0, at.whole.count, at.members, at.rows);
      for (std::int64_t member = 0; member < at.members; ++member) {
        const Share share{member, at.members, at.rows / batch};
        for (std::int64_t row = 0; row < at.rows; ++row) {
          const std::int64_t in_whole = share.position(row / batch) * batch + row % batch;
          copy_row(splits, at.width, at.whole[in_whole] + at.column, at.of(member, row));
        }
      }
    });
  });
}

}  // namespace

void heads_split(const KernelContext& context) { move_heads(context, true); }
void heads_join(const KernelContext& context) { move_heads(context, false); }
void shares_join(const KernelContext& context) { move_shares(context, false); }
void shares_split(const KernelContext& context) { move_shares(context, true); }

}  // namespace stepcast::kernels::cpu
