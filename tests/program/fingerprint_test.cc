// The fingerprint changes with everything that decides what a Program does, and with nothing else.
#include <gtest/gtest.h>

#include <functional>

#include "tests/program/sample_program.h"

namespace stepcast::program {
namespace {

using testing::sample_program;
using Change = std::function<void(Program&)>;

Segment& segment(Program& p) { return p.segments[SegmentId(0)]; }
Op& op(Program& p) { return segment(p).ops[0]; }
RankProgram& rank_program(Program& p) { return p.rank_programs[RankProgramId(0)]; }

std::uint64_t changed(const Change& change) {
  Program p = sample_program();
  change(p);
  return fingerprint(p);
}

TEST(Fingerprint, IsEqualForEqualPrograms) { EXPECT_EQ(fingerprint(sample_program()), fingerprint(sample_program())); }

TEST(Fingerprint, LeavesOutNamesOfProgramsBuffersSlotsTempsAndDevices) {
  const std::uint64_t original = fingerprint(sample_program());
  EXPECT_EQ(changed([](Program& p) { p.name = "other"; }), original);
  EXPECT_EQ(changed([](Program& p) { rank_program(p).buffers[BufferId(0)].name = "other"; }), original);
  EXPECT_EQ(changed([](Program& p) { segment(p).slots[0].name = "other"; }), original);
  EXPECT_EQ(changed([](Program& p) { segment(p).temps[0].name = "other"; }), original);
  EXPECT_EQ(changed([](Program& p) { p.ranks[RankId(0)].device = 9; }), original);
}

std::vector<Change> changes_outside_ops() {
  return {
      [](Program& p) { p.seed = 1; },
      [](Program& p) { op(p).operands[0].parts = 2; },
      [](Program& p) { op(p).operands[0].before = 1; },
      [](Program& p) { p.roles[RoleId(0)].name = "ep"; },
      [](Program& p) { p.symbols[SymbolId(0)].bound = 1; },
      [](Program& p) { p.parameters[ParameterId(0)].rows = 9; },
      [](Program& p) { p.parameters[ParameterId(0)].std = 0.03; },
      [](Program& p) { p.parameters[ParameterId(1)].init = Init::kNormal; },
      [](Program& p) {
        p.groups[GroupId(0)].members = {RankId(0), RankId(1)};
      },
      [](Program& p) { p.ranks[RankId(0)].program = RankProgramId(1); },
      [](Program& p) { p.ranks[RankId(0)].memberships[0]->index = 0; },
      [](Program& p) { p.ranks[RankId(0)].memberships[0].reset(); },
      [](Program& p) { rank_program(p).name = "x"; },
      [](Program& p) { rank_program(p).buffers[BufferId(0)].bytes = 1; },
      [](Program& p) { rank_program(p).buffers[BufferId(0)].space = Space::kHost; },
      [](Program& p) { rank_program(p).buffers[BufferId(0)].memory_class = MemoryClass::kComm; },
      [](Program& p) { rank_program(p).buffers[BufferId(0)].persistent = false; },
      [](Program& p) { rank_program(p).views[ViewId(0)].byte_offset = 0; },
      [](Program& p) { rank_program(p).views[ViewId(0)].buffer = BufferId(1); },
      [](Program& p) { rank_program(p).calls[0].args[0] = ViewId(1); },
      [](Program& p) { rank_program(p).calls[0].tag.pass = Pass::kForward; },
      [](Program& p) { rank_program(p).calls[0].tag.chunk = 0; },
      [](Program& p) { rank_program(p).calls[0].tag.microbatch.reset(); },
      [](Program& p) { rank_program(p).calls[0].tag.layer = 1; },
      [](Program& p) { rank_program(p).graphs.pop_back(); },
      [](Program& p) { rank_program(p).shards.pop_back(); },
      [](Program& p) { rank_program(p).shards[0].byte_offset = 0; },
      [](Program& p) { rank_program(p).shards[0].blocks[0].rows.step = 1; },
      [](Program& p) { rank_program(p).shards[1].slice->uncut = false; },
      [](Program& p) { rank_program(p).shards[1].slice->offset = 1; },
      [](Program& p) { rank_program(p).loss.reset(); },
  };
}

std::vector<Change> changes_of_segments() {
  return {
      [](Program& p) { segment(p).label = "x"; },
      [](Program& p) { segment(p).slots[1].type.dtype = DType::kF32; },
      [](Program& p) { segment(p).slots[0].type.shape.dims[0].bound = 5; },
      [](Program& p) { segment(p).slots[0].type.shape.dims[0].symbol.reset(); },
      [](Program& p) { segment(p).temps[0].memory_class = MemoryClass::kWeights; },
      [](Program& p) { op(p).name = "x"; },
      [](Program& p) { op(p).kind = OpKind::kJoin; },
      [](Program& p) { op(p).stream = Stream::kTp; },
      [](Program& p) { op(p).operands[0].index = 1; },
      [](Program& p) { op(p).operands[0].temp = true; },
      [](Program& p) { op(p).operands[0].access = Access::kRead; },
      [](Program& p) { op(p).attributes.form = MatmulForm::kNN; },
      [](Program& p) { op(p).attributes.reduce = Reduce::kMax; },
      [](Program& p) { op(p).attributes.join_stream = Stream::kTp; },
      [](Program& p) { op(p).attributes.heads = 1; },
      [](Program& p) { op(p).attributes.kv_heads = 1; },
      [](Program& p) { op(p).attributes.head_dim = 1; },
      [](Program& p) { op(p).attributes.batch = 9; },
      [](Program& p) { op(p).attributes.count = 1; },
      [](Program& p) { op(p).attributes.microbatches = 9; },
      [](Program& p) { op(p).attributes.vocab = 9; },
      [](Program& p) { op(p).attributes.value = 0.5; },
      [](Program& p) { op(p).attributes.learning_rate = 0.5; },
      [](Program& p) { op(p).attributes.beta1 = 0.5; },
      [](Program& p) { op(p).attributes.beta2 = 0.5; },
      [](Program& p) { op(p).attributes.eps = 0.5; },
      [](Program& p) { op(p).group = RoleId(0); },
      [](Program& p) { op(p).channel = Channel::kGradient; },
      [](Program& p) { op(p).member_counts = {1}; },
      [](Program& p) { op(p).parts = {{}}; },
      [](Program& p) {
        op(p).parts = {{0, true, RoleId(0), 0, Channel::kActivation}};
      },
      [](Program& p) {
        op(p).parts = {{0, false, RoleId(0), 1, Channel::kActivation}};
      },
      [](Program& p) {
        op(p).parts = {{0, false, RoleId(0), 0, Channel::kGradient}};
      },
      [](Program& p) { op(p).index_role = RoleId(0); },
      [](Program& p) { op(p).sample_role = RoleId(0); },
      [](Program& p) { op(p).timing_index = true; },
      [](Program& p) { op(p).symbol = SymbolId(0); },
  };
}

TEST(Fingerprint, SeesEveryOtherField) {
  std::vector<Change> changes = changes_outside_ops();
  for (const Change& change : changes_of_segments()) changes.push_back(change);
  std::vector<std::uint64_t> seen = {fingerprint(sample_program())};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const std::uint64_t value = changed(changes[i]);
    for (const std::uint64_t other : seen) EXPECT_NE(value, other) << "change " << i;
    seen.push_back(value);
  }
}

}  // namespace
}  // namespace stepcast::program
