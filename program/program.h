// The Program: one instruction list per kind of rank, over shared segments. All of it is indices in vectors.
//
// Issue order: one host thread per rank issues its calls in list order, op by op. Dependences, lifetimes and peaks are
// derived from operands (resolve.h, lifetimes.h), never written. Groups and peers are named by role, so that ranks with
// equal work share one RankProgram. A Program describes one training step; persistent buffers live on between steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "program/memberships.h"
#include "program/ops/op.h"
#include "program/types.h"

namespace stepcast::program {

struct Buffer {
  std::string name;
  std::int64_t bytes = 0;
  Space space = Space::kDevice;
  MemoryClass memory_class = MemoryClass::kActivations;
  bool persistent = false;  // exists before the first call and after the last
  bool operator==(const Buffer&) const = default;
};

// A contiguous tensor in a buffer.
struct View {
  BufferId buffer;
  std::int64_t byte_offset = 0;
  TensorType type;
  bool operator==(const View&) const = default;
};

struct Slot {
  std::string name;
  TensorType type;
  bool operator==(const Slot&) const = default;
};

// Exists from the first to the last op of one call that touches it.
struct Temp {
  std::string name;
  TensorType type;
  MemoryClass memory_class = MemoryClass::kActivations;
  bool operator==(const Temp&) const = default;
};

// A basic block, stored once: formal operands, temps, ops. `label` is the readable part of a path ("attn", "mlp").
struct Segment {
  std::string label;
  std::vector<Slot> slots;
  std::vector<Temp> temps;
  std::vector<Op> ops;
  bool operator==(const Segment&) const = default;

  // The tensor of an operand, and what the op sees of it: the whole, or a part of its rows.
  const TensorType& whole_type_of(const Operand& o) const { return o.temp ? temps[o.index].type : slots[o.index].type; }
  TensorType type_of(const Operand& o) const {
    TensorType type = whole_type_of(o);
    if (o.is_part()) type.shape.dims[0].bound /= o.parts;
    return type;
  }
};

// Where a call belongs. Parts that do not apply are empty. `layer` is the global layer, or the bucket in
// comm and opt calls outside a microbatch ("comm.b2.bucket.reduce").
struct Tag {
  Pass pass = Pass::kForward;
  std::optional<std::uint16_t> chunk;
  std::optional<std::uint32_t> microbatch;
  std::optional<std::uint32_t> layer;
  bool operator==(const Tag&) const = default;
};

struct Call {
  SegmentId segment;
  std::vector<ViewId> args;  // one per slot; types must equal the slots'
  Tag tag;
  bool operator==(const Call&) const = default;
};

// Calls [begin, end) whose host cost is one launch.
struct CallRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  bool operator==(const CallRange&) const = default;
};

// Which elements of a parameter a buffer holds. The local tensor is the blocks stacked along rows; a block is a range
// of rows times a range of columns of the global [rows, cols] parameter, shifted by the rank's index in a role.
struct AxisRule {
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::optional<RoleId> role;
  std::int64_t step = 0;  // begin + step * index(role)
  bool operator==(const AxisRule&) const = default;
};
struct ShardBlock {
  AxisRule rows;
  AxisRule cols;
  bool operator==(const ShardBlock&) const = default;
};
// A flat unit or bucket is cut into equal chunks; member i of `role` holds elements [i*chunk, (i+1)*chunk) of it, and
// the parameter's local tensor starts at element `offset` of the uncut flat buffer. Storage is the member's own chunk,
// or, when `uncut`, the whole flat buffer of which only the own chunk is meaningful (byte_offset is then that of flat
// element 0).
struct FlatSlice {
  RoleId role;
  std::int64_t chunk = 0;
  std::int64_t offset = 0;
  bool uncut = false;
  bool operator==(const FlatSlice&) const = default;
};
enum class ShardKind : std::uint8_t { kWeight, kMaster, kMoment1, kMoment2, kGradient };
inline constexpr int kShardKindCount = 5;

struct ParameterShard {
  ParameterId parameter;
  ShardKind kind = ShardKind::kWeight;
  BufferId buffer;               // persistent
  std::int64_t byte_offset = 0;  // of the local tensor's element 0; with a slice, of the slice's element 0
  DType dtype = DType::kF32;
  std::vector<ShardBlock> blocks;
  std::optional<FlatSlice> slice;
  bool operator==(const ParameterShard&) const = default;
};

struct RankProgram {
  std::string name;  // "stage0"
  Table<BufferId, Buffer> buffers;
  Table<ViewId, View> views;
  std::vector<Call> calls;
  std::vector<CallRange> graphs;  // disjoint, ascending
  std::vector<ParameterShard> shards;
  std::optional<ViewId> loss;  // f32 [1], persistent: the step's summed loss, where this rank holds it
  bool operator==(const RankProgram&) const = default;
};

struct Role {
  std::string name;  // tp, dp, pp, model (tp x pp), world, embedding
  bool operator==(const Role&) const = default;
};

struct Group {
  RoleId role;
  std::vector<RankId> members;
  bool operator==(const Group&) const = default;
};

struct Rank {
  RankProgramId program;
  std::int32_t device = 0;  // global device number
  Memberships memberships;  // by RoleId; empty where the rank is in no group of the role
  bool operator==(const Rank&) const = default;
};

enum class Init : std::uint8_t { kNormal, kOnes, kZeros };
inline constexpr int kInitCount = 3;

// A named trainable tensor. Element (r, c) starts as a function of (seed, name, r * cols + c), whatever the plan.
struct Parameter {
  std::string name;  // layers.3.wqkv
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  Init init = Init::kNormal;
  double std = 0;  // of kNormal
  bool operator==(const Parameter&) const = default;
};

struct Symbol {
  std::string name;
  std::int64_t bound = 0;
  bool operator==(const Symbol&) const = default;
};

struct Program {
  std::string name;
  std::uint64_t seed = 0;  // of initial values and tokens
  Table<RoleId, Role> roles;
  Table<SegmentId, Segment> segments;
  Table<RankProgramId, RankProgram> rank_programs;
  Table<RankId, Rank> ranks;
  Table<GroupId, Group> groups;
  Table<ParameterId, Parameter> parameters;
  Table<SymbolId, Symbol> symbols;
  bool operator==(const Program&) const = default;
};

// "F.c0.m3.L12.attn.qkv": pass, chunk, microbatch, layer (or "b2": bucket), segment label, op name.
std::string op_path(const Program& p, const RankProgram& r, std::uint32_t call, std::uint32_t op);

// Group of `rank` in `role`; CHECKs that there is one.
inline const Membership& membership(const Program& p, RankId rank, RoleId role) {
  const Memberships& own = p.ranks[rank].memberships;
  CHECK(role.value < own.size() && own[role.value], rank.value, role.value);
  return *own[role.value];
}
// The rank that `part` of an op on `rank` talks to: the member at (own index + offset) mod size of the role's group.
inline RankId peer_of(const Program& p, RankId rank, const P2pPart& part) {
  const Membership& own = membership(p, rank, part.role);
  const std::vector<RankId>& members = p.groups[own.group].members;
  const auto size = static_cast<std::int64_t>(members.size());
  return members[static_cast<std::size_t>(member_position(std::int64_t{own.index} + part.offset, size))];
}
std::optional<RoleId> find_role(const Program& p, std::string_view name);

// Covers everything but devices and the names of the program, buffers, slots and temps: equal programs have equal
// fingerprints, whatever file they came from.
std::uint64_t fingerprint(const Program& p);

}  // namespace stepcast::program
