// See shards.h.
#include "exec/shards.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/random.h"
#include "exec/elements.h"

namespace stepcast::exec {
namespace {

std::int64_t index_in(const program::Rank& rank, program::RoleId role) {
  CHECK(role.value < rank.memberships.size() && rank.memberships[role.value], role.value);
  return rank.memberships[role.value]->index;
}

std::int64_t begin_of(const program::AxisRule& rule, const program::Rank& rank) {
  return rule.begin + (rule.role ? rule.step * index_in(rank, *rule.role) : 0);
}

// Elements of the local tensor that are the rank's own: all, or those of its slice. Stored element 0 is local element
// `origin`, which lies before the tensor where the slice, or the uncut flat buffer, starts in an earlier parameter.
struct LocalRange {
  std::int64_t begin = 0;
  std::int64_t end = std::numeric_limits<std::int64_t>::max();
  std::int64_t origin = 0;
};

LocalRange local_range(const program::ParameterShard& shard, const program::Rank& rank) {
  if (!shard.slice) return {};
  const program::FlatSlice& slice = *shard.slice;
  const std::int64_t own = index_in(rank, slice.role) * slice.chunk - slice.offset;
  return {std::max<std::int64_t>(own, 0), own + slice.chunk, slice.uncut ? -slice.offset : own};
}

}  // namespace

void visit_elements(const program::Parameter& parameter, const program::ParameterShard& shard,
                    const program::Rank& rank, const std::function<void(std::int64_t, std::int64_t)>& visit) {
  const LocalRange range = local_range(shard, rank);
  std::int64_t row_begin = 0;  // in elements of the local tensor
  for (const program::ShardBlock& block : shard.blocks) {
    const std::int64_t row0 = begin_of(block.rows, rank);
    const std::int64_t col0 = begin_of(block.cols, rank);
    const std::int64_t cols = block.cols.count;
    CHECK(row0 >= 0 && row0 + block.rows.count <= parameter.rows, parameter.name, row0, block.rows.count);
    CHECK(col0 >= 0 && col0 + cols <= parameter.cols, parameter.name, col0, cols);
    for (std::int64_t r = row0; r < row0 + block.rows.count; ++r, row_begin += cols) {
      const std::int64_t first = std::max(range.begin, row_begin);
      const std::int64_t last = std::min(range.end, row_begin + cols);
      for (std::int64_t local = first; local < last; ++local) {
        visit(r * parameter.cols + col0 + (local - row_begin), local - range.origin);
      }
    }
  }
}

void fill_shard(const program::Program& p, const program::ParameterShard& shard, const program::Rank& rank,
                std::byte* buffer, std::int64_t buffer_bytes) {
  if (shard.kind != program::ShardKind::kWeight && shard.kind != program::ShardKind::kMaster) return;
  const program::Parameter& parameter = p.parameters[shard.parameter];
  const RandomStream random(p.seed, parameter.name);
  const std::int64_t size = program::size_of(shard.dtype);
  visit_elements(parameter, shard, rank, [&](std::int64_t global, std::int64_t stored) {
    CHECK(shard.byte_offset + (stored + 1) * size <= buffer_bytes, parameter.name, stored, buffer_bytes);
    const double value = parameter.init == program::Init::kNormal
                             ? parameter.std * random.normal_at(static_cast<std::uint64_t>(global))
                         : parameter.init == program::Init::kOnes ? 1.0
                                                                  : 0.0;
    // A bf16 weight starts as its f32 master rounded, hence the step through binary32 for every type.
    store_element(buffer + shard.byte_offset, shard.dtype, stored, static_cast<float>(value));
  });
}

std::vector<float> gather_shards(const program::Program& p, std::span<const program::RankId> ranks,
                                 program::ParameterId parameter, program::ShardKind kind, const ReadBuffer& read) {
  const program::Parameter& what = p.parameters[parameter];
  const auto elements = static_cast<std::size_t>(what.rows * what.cols);
  std::vector<float> whole(elements, std::numeric_limits<float>::quiet_NaN());
  std::vector<bool> held(elements, false);
  for (const program::RankId id : ranks) {
    const program::Rank& rank = p.ranks[id];
    for (const program::ParameterShard& shard : p.rank_programs[rank.program].shards) {
      if (shard.parameter != parameter || shard.kind != kind) continue;
      const std::byte* data = read(id, shard.buffer) + shard.byte_offset;
      visit_elements(what, shard, rank, [&](std::int64_t global, std::int64_t stored) {
        const auto g = static_cast<std::size_t>(global);
        if (!held[g]) whole[g] = static_cast<float>(load_element(data, shard.dtype, stored));
        held[g] = true;
      });
    }
  }
  return whole;
}

std::optional<double> read_loss(const program::Program& p, std::span<const program::RankId> ranks,
                                const ReadBuffer& read) {
  for (const program::RankId rank : ranks) {
    const program::RankProgram& r = p.rank_programs[p.ranks[rank].program];
    if (!r.loss) continue;
    const program::View& view = r.views[*r.loss];
    return load_element(read(rank, view.buffer) + view.byte_offset, view.type.dtype, 0);
  }
  return std::nullopt;
}

}  // namespace stepcast::exec
