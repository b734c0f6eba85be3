// Shards: every block lies within its parameter whatever the rank's index, and what is stored within its buffer.
// Extents come from a file, so that no sum or product here may overflow.
#include "program/check_parts.h"

namespace stepcast::program {
namespace {

// begin + step * index + count within [0, extent].
bool fits(const AxisRule& axis, std::int64_t index, std::int64_t extent) {
  std::int64_t shift = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  if (__builtin_mul_overflow(axis.step, index, &shift) || __builtin_add_overflow(axis.begin, shift, &begin) ||
      __builtin_add_overflow(begin, axis.count, &end))
    return false;
  return begin >= 0 && end <= extent;
}

class ShardCheck {
 public:
  ShardCheck(const Program& p, RankProgramId id, const GroupSizes& sizes, ProblemList& problems)
      : p_(p), r_(p.rank_programs[id]), sizes_(sizes[id.value]), problems_(problems) {}

  void run() {
    for (number_ = 0; number_ < r_.shards.size(); ++number_) check(r_.shards[number_]);
  }

 private:
  void fail(const ParameterShard& shard, const std::string& message) {
    problems_.add(ErrorKind::kInput, "rank program " + r_.name + ", shard " + std::to_string(number_) + " of " +
                                         p_.parameters[shard.parameter].name + ": " + message);
  }

  // A rule is linear in the index: where the first and the last member fit, all do.
  bool axis_fits(const AxisRule& axis, std::int64_t extent) const {
    if (!axis.role) return fits(axis, 0, extent);
    for (const std::int64_t members : sizes_[axis.role->value]) {
      if (!fits(axis, members - 1, extent)) return false;
    }
    return fits(axis, 0, extent);
  }

  void check(const ParameterShard& shard) {
    const Parameter& parameter = p_.parameters[shard.parameter];
    std::int64_t local = 0;
    for (const ShardBlock& block : shard.blocks) {
      if (!axis_fits(block.rows, parameter.rows) || !axis_fits(block.cols, parameter.cols)) {
        return fail(shard, "a block leaves the " + std::to_string(parameter.rows) + " rows or " +
                               std::to_string(parameter.cols) + " columns of the parameter");
      }
      // The product is at most the parameter's elements.
      if (__builtin_add_overflow(local, block.rows.count * block.cols.count, &local))
        return fail(shard, "has too many elements");
    }
    if (!shard.slice) return check_storage(shard, local);
    for (const std::int64_t members : sizes_[shard.slice->role.value]) check_slice(shard, local, members);
  }

  void check_slice(const ParameterShard& shard, std::int64_t local, std::int64_t members) {
    const FlatSlice& slice = *shard.slice;
    std::int64_t whole = 0;
    std::int64_t end = 0;
    if (__builtin_mul_overflow(slice.chunk, members, &whole) || __builtin_add_overflow(slice.offset, local, &end) ||
        end > whole) {
      return fail(shard, std::to_string(local) + " elements at " + std::to_string(slice.offset) + " leave " +
                             std::to_string(members) + " chunks of " + std::to_string(slice.chunk));
    }
    check_storage(shard, slice.uncut ? whole : slice.chunk);
  }

  void check_storage(const ParameterShard& shard, std::int64_t elements) {
    const Buffer& buffer = r_.buffers[shard.buffer];
    std::int64_t bytes = 0;
    std::int64_t end = 0;
    if (!__builtin_mul_overflow(elements, size_of(shard.dtype), &bytes) &&
        !__builtin_add_overflow(shard.byte_offset, bytes, &end) && end <= buffer.bytes)
      return;
    fail(shard, std::to_string(elements) + " " + std::string(to_string(shard.dtype)) + " at byte " +
                    std::to_string(shard.byte_offset) + " leave buffer " + buffer.name + " of " +
                    std::to_string(buffer.bytes));
  }

  const Program& p_;
  const RankProgram& r_;
  const std::vector<std::vector<std::int64_t>>& sizes_;  // by RoleId
  ProblemList& problems_;
  std::size_t number_ = 0;
};

}  // namespace

void find_shard_problems(const Program& p, RankProgramId r, const GroupSizes& sizes, ProblemList& problems) {
  ShardCheck(p, r, sizes, problems).run();
}

}  // namespace stepcast::program
