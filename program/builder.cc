// Builders: append, and look equal parts up by content hash; equality decides, the hash only finds.
#include "program/builder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "program/hasher.h"

namespace stepcast::program {
namespace {

std::uint16_t short_index(std::size_t n) {
  CHECK(n <= std::numeric_limits<std::uint16_t>::max(), n);
  return static_cast<std::uint16_t>(n);
}

// The id under `hash` whose item equals `item`, or a new one.
template <class IdType, class T>
IdType store_once(Table<IdType, T>& table, std::unordered_multimap<std::uint64_t, IdType>& known, std::uint64_t hash,
                  T item) {
  const auto [begin, end] = known.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (std::as_const(table)[it->second] == item) return it->second;
  }
  const IdType id = table.push(std::move(item));
  known.emplace(hash, id);
  return id;
}

}  // namespace

Ref SegmentBuilder::slot(std::string name, DType dtype, Shape shape) {
  segment_.slots.push_back({std::move(name), {dtype, shape}});
  return Ref{false, short_index(segment_.slots.size() - 1)};
}

Ref SegmentBuilder::temp(std::string name, DType dtype, Shape shape, MemoryClass memory_class) {
  segment_.temps.push_back({std::move(name), {dtype, shape}, memory_class});
  return Ref{true, short_index(segment_.temps.size() - 1)};
}

Op& SegmentBuilder::op(OpKind kind, Stream stream, std::string name, std::initializer_list<Operand> operands) {
  Op op;
  op.name = std::move(name);
  op.kind = kind;
  op.stream = stream;
  op.operands = operands;
  segment_.ops.push_back(std::move(op));
  return segment_.ops.back();
}

BufferId RankProgramBuilder::buffer(std::string name, std::int64_t bytes, MemoryClass memory_class, bool persistent,
                                    Space space) {
  return program_.buffers.push({std::move(name), bytes, space, memory_class, persistent});
}

ViewId RankProgramBuilder::tensor(std::string name, DType dtype, Shape shape, MemoryClass memory_class,
                                  bool persistent) {
  const TensorType type{dtype, shape};
  const BufferId id = buffer(std::move(name), type.bytes(), memory_class, persistent);
  return program_.views.push({id, 0, type});  // no other view of a new buffer can be equal
}

ViewId RankProgramBuilder::view(BufferId buffer, std::int64_t byte_offset, DType dtype, Shape shape) {
  const View view{buffer, byte_offset, {dtype, shape}};
  if (2 * known_views_.size() >= view_places_.size()) grow_view_places();
  std::uint32_t& place = place_of(view);
  if (place != 0) return known_views_[place - 1];
  const ViewId id = program_.views.push(view);
  known_views_.push_back(id);
  place = static_cast<std::uint32_t>(known_views_.size());
  return id;
}

std::uint32_t& RankProgramBuilder::place_of(const View& v) {
  // Offset and bound tell most views of a buffer apart; the multiplier is that of Fibonacci hashing (Knuth 6.4).
  std::uint64_t h = (static_cast<std::uint64_t>(v.buffer.value) << 32) + static_cast<std::uint64_t>(v.byte_offset);
  h = (h ^ (h >> 29)) * 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(v.type.shape.dims[0].bound);
  std::size_t at = ((h ^ (h >> 32)) * 0x9e3779b97f4a7c15ULL >> 32) & (view_places_.size() - 1);
  while (view_places_[at] != 0 && std::as_const(program_.views)[known_views_[view_places_[at] - 1]] != v) {
    at = (at + 1) & (view_places_.size() - 1);
  }
  return view_places_[at];
}

void RankProgramBuilder::grow_view_places() {
  constexpr std::size_t kFewest = 64;
  view_places_.assign(std::max(kFewest, 2 * view_places_.size()), 0);
  for (std::uint32_t i = 0; i < known_views_.size(); ++i) place_of(at(known_views_[i])) = i + 1;
}

void RankProgramBuilder::call(SegmentId segment, std::vector<ViewId> args, Tag tag) {
  program_.calls.push_back({segment, std::move(args), tag});
}

RoleId ProgramBuilder::role(const std::string& name) {
  if (const std::optional<RoleId> known = find_role(program_, name)) return *known;
  return program_.roles.push({name});
}

SegmentId ProgramBuilder::segment(Segment s) {
  Hasher h;
  add(h, s, true);
  return store_once(program_.segments, known_segments_, h.value(), std::move(s));
}

RankProgramId ProgramBuilder::rank_program(RankProgram r) {
  // Few and large: comparing them outright ends at the first difference, hashing them would not.
  for (std::size_t i = 0; i < program_.rank_programs.size(); ++i) {
    if (program_.rank_programs[RankProgramId(i)] == r) return RankProgramId(i);
  }
  return program_.rank_programs.push(std::move(r));
}

ParameterId ProgramBuilder::parameter(Parameter p) {
  const auto [it, is_new] = known_parameters_.try_emplace(p.name, ParameterId(program_.parameters.size()));
  if (is_new) return program_.parameters.push(std::move(p));
  CHECK(std::as_const(program_).parameters[it->second] == p, p.name, p.rows, p.cols);
  return it->second;
}

RankId ProgramBuilder::rank(RankProgramId program, std::int32_t device) {
  return program_.ranks.push({program, device, {}});
}

GroupId ProgramBuilder::group(RoleId role, std::vector<RankId> members) {
  CHECK(role.value < program_.roles.size(), role.value);
  const GroupId id(program_.groups.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    auto& memberships = program_.ranks[members[i]].memberships;
    if (memberships.size() <= role.value) memberships.resize(role.value + 1);
    CHECK(!memberships[role.value], "rank is already in a group of the role", members[i].value, role.value);
    memberships[role.value] = Membership{id, static_cast<std::uint32_t>(i)};
  }
  return program_.groups.push({role, std::move(members)});
}

Program ProgramBuilder::take() {
  for (Rank& rank : program_.ranks) rank.memberships.resize(program_.roles.size());
  return std::move(program_);
}

}  // namespace stepcast::program
