// Helpers that write Programs: a segment op by op, a rank program call by call. Equal segments, views and rank programs
// are stored once.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "program/program.h"

namespace stepcast::program {

// A slot or temp of the segment under construction.
struct Ref {
  bool temp = false;
  std::uint16_t index = 0;
};
inline Operand in(Ref r) { return Operand{r.temp, r.index, Access::kRead}; }
inline Operand out(Ref r) { return Operand{r.temp, r.index, Access::kWrite}; }
inline Operand acc(Ref r) { return Operand{r.temp, r.index, Access::kAccumulate}; }
// Of the rows of `o`, cut into equal `parts`, those of the member `before` places before the rank (see Operand).
inline Operand part_of(Operand o, std::int64_t parts, std::int64_t before) {
  o.parts = static_cast<std::uint16_t>(parts);
  o.before = static_cast<std::uint16_t>(before);
  return o;
}

class SegmentBuilder {
 public:
  explicit SegmentBuilder(std::string label) { segment_.label = std::move(label); }

  Ref slot(std::string name, DType dtype, Shape shape);
  Ref temp(std::string name, DType dtype, Shape shape, MemoryClass memory_class);
  // Appends an op and returns it, for its attributes, group, parts.
  Op& op(OpKind kind, Stream stream, std::string name, std::initializer_list<Operand> operands);
  const TensorType& type_of(Ref r) const { return segment_.whole_type_of(in(r)); }
  Segment take() { return std::move(segment_); }

 private:
  Segment segment_;
};

class RankProgramBuilder {
 public:
  explicit RankProgramBuilder(std::string name) { program_.name = std::move(name); }

  BufferId buffer(std::string name, std::int64_t bytes, MemoryClass memory_class, bool persistent = false,
                  Space space = Space::kDevice);
  // A buffer that holds exactly one tensor, and the view of all of it.
  ViewId tensor(std::string name, DType dtype, Shape shape, MemoryClass memory_class, bool persistent = false);
  ViewId view(BufferId buffer, std::int64_t byte_offset, DType dtype, Shape shape);
  const View& at(ViewId v) const { return program_.views[v]; }
  void call(SegmentId segment, std::vector<ViewId> args, Tag tag);
  void add_shard(ParameterShard shard) { program_.shards.push_back(std::move(shard)); }
  void set_loss(ViewId v) { program_.loss = v; }
  void mark_graph(CallRange range) { program_.graphs.push_back(range); }
  std::uint32_t call_count() const { return static_cast<std::uint32_t>(program_.calls.size()); }
  RankProgram take() { return std::move(program_); }

 private:
  // The place of an equal view, or a free one (zero) where it belongs.
  std::uint32_t& place_of(const View& v);
  void grow_view_places();

  RankProgram program_;
  std::vector<ViewId> known_views_;
  std::vector<std::uint32_t> view_places_;  // open addressing, a power of two: positions in known_views_ plus one
};

class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::string name) { program_.name = std::move(name); }

  RoleId role(const std::string& name);       // the same name gives the same id
  SegmentId segment(Segment s);               // the same content gives the same id
  RankProgramId rank_program(RankProgram r);  // likewise
  ParameterId parameter(Parameter p);         // the same name gives the same id (CHECKs that the rest agrees)
  SymbolId symbol(Symbol s) { return program_.symbols.push(std::move(s)); }
  RankId rank(RankProgramId program, std::int32_t device);
  GroupId group(RoleId role, std::vector<RankId> members);  // sets the members' memberships
  void set_seed(std::uint64_t seed) { program_.seed = seed; }
  const Program& program() const { return program_; }
  Program take();  // fills memberships up to the number of roles

 private:
  Program program_;
  std::unordered_multimap<std::uint64_t, SegmentId> known_segments_;
  std::unordered_map<std::string, ParameterId> known_parameters_;  // by name; for look-up alone, never iterated
};

}  // namespace stepcast::program
