// See collective.h.
#include "exec/collective.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "kernels/element.h"

namespace stepcast::exec {
namespace {

// An i32 is only compared, so it stays one.
std::int32_t accumulated(std::int32_t x) { return x; }
template <class Stored>
auto accumulated(Stored x) {
  return kernels::widen(x);
}
template <class Stored, class Sum>
Stored stored(Sum value) {
  return kernels::narrow<Stored>(value);
}

// Elements [begin, begin + count) of all members' inputs, reduced in member order.
template <class Stored, class Combine, class Write>
void reduce_range(std::span<const MemberBuffers> members, std::int64_t begin, std::int64_t count, Combine combine,
                  Write write) {
  for (std::int64_t i = begin; i < begin + count; ++i) {
    auto value = accumulated(static_cast<const Stored*>(members[0].in)[i]);
    for (const MemberBuffers& member : members.subspan(1)) {
      value = combine(value, accumulated(static_cast<const Stored*>(member.in)[i]));
    }
    write(i, stored<Stored>(value));
  }
}

// Where the n-th element of a member's part lies in its `out`.
std::int64_t place_of(const CollectiveSpec& spec, std::int64_t n) {
  if (spec.columns == 0) return n;
  return n / spec.columns * spec.row_columns + spec.first_column + n % spec.columns;
}

template <class Stored, class Combine>
void reduce_with(const CollectiveSpec& spec, std::span<const MemberBuffers> members, Combine combine) {
  if (spec.kind == program::OpKind::kAllReduce) {
    reduce_range<Stored>(members, 0, spec.elements, combine, [&](std::int64_t i, Stored v) {
      for (const MemberBuffers& member : members) static_cast<Stored*>(member.out)[i] = v;
    });
    return;
  }
  std::int64_t begin = 0;
  for (std::size_t m = 0; m < members.size(); ++m) {
    auto* out = static_cast<Stored*>(members[m].out);
    reduce_range<Stored>(members, begin, spec.counts[m], combine,
                         [&](std::int64_t i, Stored v) { out[place_of(spec, i - begin)] = v; });
    begin += spec.counts[m];
  }
}

template <class Stored>
void reduce_as(const CollectiveSpec& spec, std::span<const MemberBuffers> members) {
  if (spec.reduce == program::Reduce::kMax) {
    // A NaN on either side wins, so that uninitialised memory shows.
    reduce_with<Stored>(spec, members,
                        [](auto a, auto b) { return (b > a || std::isnan(static_cast<double>(b))) ? b : a; });
  } else {
    reduce_with<Stored>(spec, members, [](auto a, auto b) { return a + b; });
  }
}

void reduce(const CollectiveSpec& spec, std::span<const MemberBuffers> members) {
  switch (spec.dtype) {
    case program::DType::kF32:
      return reduce_as<float>(spec, members);
    case program::DType::kBf16:
      return reduce_as<kernels::Bf16>(spec, members);
    case program::DType::kF64:
      return reduce_as<double>(spec, members);
    case program::DType::kI32:
      if (spec.reduce == program::Reduce::kMax) return reduce_as<std::int32_t>(spec, members);
      break;
    case program::DType::kU8:
    case program::DType::kF16:
    case program::DType::kF8:
    case program::DType::kF8Block:
    case program::DType::kMxF8:
    case program::DType::kNvF4:
      break;
  }
  throw Error(ErrorKind::kExecution, "cannot sum elements of type " + std::string(program::to_string(spec.dtype)));
}

void gather(const CollectiveSpec& spec, std::span<const MemberBuffers> members) {
  const std::int64_t size = program::size_of(spec.dtype);
  std::int64_t begin = 0;
  for (std::size_t from = 0; from < members.size(); ++from) {
    const auto bytes = static_cast<std::size_t>(spec.counts[from] * size);
    for (const MemberBuffers& to : members) {
      // A member may gather in place: its own part is then already where it belongs.
      void* part = static_cast<std::byte*>(to.out) + begin * size;
      if (part != members[from].in && bytes > 0) std::memcpy(part, members[from].in, bytes);
    }
    begin += spec.counts[from];
  }
}

void exchange_parts(const CollectiveSpec& spec, std::span<const MemberBuffers> members) {
  const auto count = static_cast<std::int64_t>(members.size());
  CHECK(spec.elements % count == 0, spec.elements, count);
  const std::int64_t part = spec.elements / count * program::size_of(spec.dtype);
  for (std::int64_t from = 0; from < count; ++from) {
    const auto* in = static_cast<const std::byte*>(members[static_cast<std::size_t>(from)].in);
    for (std::int64_t to = 0; to < count; ++to) {
      auto* out = static_cast<std::byte*>(members[static_cast<std::size_t>(to)].out);
      if (part > 0) std::memcpy(out + from * part, in + to * part, static_cast<std::size_t>(part));
    }
  }
}

void broadcast(const CollectiveSpec& spec, std::span<const MemberBuffers> members) {
  const MemberBuffers& root = members[static_cast<std::size_t>(spec.root)];
  const auto bytes = static_cast<std::size_t>(spec.elements * program::size_of(spec.dtype));
  for (const MemberBuffers& to : members) {
    if (&to != &root && bytes > 0) std::memcpy(to.out, root.in, bytes);
  }
}

void set_columns(CollectiveSpec& spec, const program::Op& op, std::span<const program::TensorType> operands) {
  if (program::column_blocks(operands[0].shape, operands[1].shape) == 1) return;
  spec.columns = operands[0].shape.extent(1);
  spec.row_columns = operands[1].shape.extent(1);
  spec.first_column = op.attributes.count * spec.columns;
}

}  // namespace

CollectiveSpec collective_spec(const program::Op& op, std::span<const program::TensorType> operands,
                               std::int64_t members) {
  CHECK(!operands.empty() && members >= 1, operands.size(), members);
  CollectiveSpec spec;
  spec.kind = op.kind;
  spec.dtype = operands[0].dtype;
  spec.reduce = op.attributes.reduce;
  spec.elements = operands[0].shape.elements();
  if (op.kind == program::OpKind::kAllReduce && op.index_role) spec.elements /= op.attributes.count;
  if (op.kind == program::OpKind::kBroadcast) spec.root = op.attributes.count;
  if (op.kind == program::OpKind::kAllGather && operands.size() == 2) spec.elements = operands[1].shape.elements();
  if (op.kind != program::OpKind::kAllGather && op.kind != program::OpKind::kReduceScatter) return spec;
  if (op.kind == program::OpKind::kReduceScatter && operands.size() == 2) set_columns(spec, op, operands);
  spec.counts = op.member_counts;
  if (spec.counts.empty()) spec.counts.assign(static_cast<std::size_t>(members), spec.elements / members);
  return spec;
}

void perform_collective(const CollectiveSpec& spec, std::span<const MemberBuffers> members) {
  CHECK(!members.empty());
  if (!spec.counts.empty()) {
    CHECK(spec.counts.size() == members.size(), spec.counts.size(), members.size());
    const std::int64_t total = std::accumulate(spec.counts.begin(), spec.counts.end(), std::int64_t{0});
    CHECK(total == spec.elements, total, spec.elements);
  }
  switch (spec.kind) {
    case program::OpKind::kAllReduce:
    case program::OpKind::kReduceScatter:
      return reduce(spec, members);
    case program::OpKind::kAllGather:
      return gather(spec, members);
    case program::OpKind::kBroadcast:
      CHECK(spec.root >= 0 && spec.root < static_cast<std::int64_t>(members.size()), spec.root, members.size());
      return broadcast(spec, members);
    case program::OpKind::kAllToAll:
      return exchange_parts(spec, members);
    default:
      CHECK(false, program::to_string(spec.kind));
  }
}

}  // namespace stepcast::exec
