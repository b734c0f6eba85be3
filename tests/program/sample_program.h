// A Program that uses every field once: two ranks, every op kind, symbols, shards, graphs, a loss. Not meant to pass
// program/check as a whole; meant for the text form and the fingerprint.
#pragma once

#include "tests/program/sample_ops.h"

namespace stepcast::program::testing {

inline Segment segment_of_all_kinds() {
  Segment s;
  s.label = "all \"kinds\"\n\xc3\xa9 # \\";
  for (SampleOp& sample : all_samples()) {
    for (std::size_t i = 0; i < sample.types.size(); ++i) {
      sample.op.operands[i].index = static_cast<std::uint16_t>(s.slots.size());
      s.slots.push_back({sample.op.name + std::to_string(i), sample.types[i]});
    }
    s.ops.push_back(std::move(sample.op));
  }
  s.temps.push_back({"t", {DType::kF64, {2, 3, 4}}, MemoryClass::kComm});
  s.ops[0].operands.push_back({true, 0, Access::kAccumulate});
  s.slots[0].type.shape.dims[0].symbol = SymbolId(1);
  Op& gather = s.ops.back();
  gather.member_counts = {3, 0, 5};
  gather.channel = Channel::kWeights;
  gather.index_role = RoleId(1);
  gather.sample_role = RoleId(1);
  gather.timing_index = true;
  gather.operands[0].parts = 8;
  gather.operands[0].before = 3;
  gather.symbol = SymbolId(0);
  gather.attributes.form = MatmulForm::kTN;
  gather.attributes.reduce = Reduce::kMax;
  gather.attributes.beta1 = 0.1;  // has no exact binary form
  gather.attributes.beta2 = 1.0 / 3.0;
  gather.attributes.eps = 5e-324;  // the smallest double
  return s;
}

inline RankProgram sample_rank_program(SegmentId segment) {
  RankProgram r;
  r.name = "stage0";
  const BufferId w = r.buffers.push({"w", 1000, Space::kDevice, MemoryClass::kWeights, true});
  r.buffers.push({"h", 64, Space::kHost, MemoryClass::kOptimizer, false});
  const ViewId v = r.views.push({w, 16, {DType::kBf16, {4, 6}}});
  const ViewId scalar = r.views.push({w, 0, {DType::kF32, {}}});
  r.calls.push_back({segment, {v, scalar, v}, Tag{Pass::kInputGrad, 2, 7, 31}});
  r.calls.push_back({segment, {}, Tag{Pass::kOptimizer, {}, {}, {}}});
  r.graphs = {{0, 1}, {1, 2}};
  ParameterShard blocks;
  blocks.kind = ShardKind::kMoment2;
  blocks.buffer = w;
  blocks.byte_offset = 8;
  blocks.blocks = {{{0, 2, RoleId(1), 2}, {1, 5, {}, 0}}, {{4, 1, {}, 3}, {0, 6, RoleId(0), 0}}};
  ParameterShard slice;
  slice.kind = ShardKind::kGradient;
  slice.dtype = DType::kBf16;
  slice.slice = FlatSlice{RoleId(1), 12, 30, true};
  r.shards = {blocks, slice};
  r.loss = scalar;
  return r;
}

inline Program sample_program() {
  Program p;
  p.name = "sample";
  p.seed = 0xffffffffffffffffULL;
  p.roles.push({"tp"});
  p.roles.push({"dp"});
  p.symbols.push({"tokens", 128});
  p.symbols.push({"rows", 4});
  p.parameters.push({"layers.0.wqkv", 8, 6, Init::kNormal, 0.02});
  p.parameters.push({"layers.0.norm", 1, 6, Init::kOnes, 0});
  p.parameters.push({"layers.0.norm_bias", 1, 6, Init::kZeros, 0});
  const SegmentId segment = p.segments.push(segment_of_all_kinds());
  const RankProgramId r = p.rank_programs.push(sample_rank_program(segment));
  p.rank_programs.push({});
  p.ranks.push({r, 3, {Membership{GroupId(0), 1}, std::nullopt}});
  p.ranks.push({RankProgramId(1), 0, {Membership{GroupId(0), 0}, std::nullopt}});
  p.groups.push({RoleId(0), {RankId(1), RankId(0)}});
  return p;
}

}  // namespace stepcast::program::testing
