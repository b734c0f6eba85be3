// Builds the segments over flat element ranges.
#include "plan/flat_calls.h"

#include "base/check.h"

namespace stepcast::plan {
namespace {

using program::acc;
using program::DType;
using program::in;
using program::MemoryClass;
using program::Op;
using program::OpKind;
using program::out;
using program::Ref;
using program::SegmentBuilder;
using program::SegmentId;
using program::Stream;

void set_collective(Op& op, const CollectiveSpec& c) {
  op.group = c.group;
  op.channel = c.channel;
}

SegmentId in_place(program::ProgramBuilder& b, OpKind kind, const CollectiveSpec& c, DType t, std::int64_t n) {
  SegmentBuilder s(c.label);
  const Ref flat = s.slot("flat", t, {n});
  set_collective(s.op(kind, c.stream, c.name, {acc(flat)}), c);
  return b.segment(s.take());
}

}  // namespace

SegmentId zero_segment(program::ProgramBuilder& b, const std::string& label, DType t, std::int64_t n) {
  SegmentBuilder s(label);
  const Ref flat = s.slot("flat", t, {n});
  s.op(OpKind::kZeroFill, Stream::kCompute, "zero", {out(flat)});
  return b.segment(s.take());
}

SegmentId cast_segment(program::ProgramBuilder& b, const std::string& label, DType from, DType to, std::int64_t n) {
  SegmentBuilder s(label);
  const Ref narrow = s.slot("from", from, {n});
  const Ref wide = s.slot("to", to, {n});
  s.op(OpKind::kCast, Stream::kCompute, "cast", {in(narrow), out(wide)});
  return b.segment(s.take());
}

SegmentId all_reduce_segment(program::ProgramBuilder& b, const CollectiveSpec& c, DType t, std::int64_t n,
                             std::optional<OwnPart> own, program::Reduce reduce) {
  SegmentBuilder s(c.label);
  const Ref flat = s.slot("flat", t, {n});
  Op& op = s.op(OpKind::kAllReduce, c.stream, c.name, {acc(flat)});
  set_collective(op, c);
  op.attributes.reduce = reduce;
  if (own) {
    op.index_role = own->role;
    op.attributes.count = own->parts;
  }
  return b.segment(s.take());
}

SegmentId reduce_scatter_in_place_segment(program::ProgramBuilder& b, const CollectiveSpec& c, DType t,
                                          std::int64_t n) {
  return in_place(b, OpKind::kReduceScatter, c, t, n);
}

SegmentId all_gather_in_place_segment(program::ProgramBuilder& b, const CollectiveSpec& c, DType t, std::int64_t n) {
  return in_place(b, OpKind::kAllGather, c, t, n);
}

SegmentId all_gather_segment(program::ProgramBuilder& b, const CollectiveSpec& c, DType held, DType t,
                             std::int64_t chunk, std::int64_t parts) {
  SegmentBuilder s(c.label);
  const Ref shard = s.slot("shard", held, {chunk});
  const Ref whole = s.slot("whole", t, {chunk * parts});
  Ref sent = shard;
  if (held != t) {
    sent = s.temp("cast", t, {chunk}, MemoryClass::kComm);
    s.op(OpKind::kCast, c.stream, c.name + "_cast", {in(shard), out(sent)});
  }
  set_collective(s.op(OpKind::kAllGather, c.stream, c.name, {in(sent), out(whole)}), c);
  return b.segment(s.take());
}

SegmentId reduce_scatter_accumulate_segment(program::ProgramBuilder& b, const CollectiveSpec& c,
                                            const std::optional<CollectiveSpec>& copies, DType t, DType sum,
                                            std::int64_t chunk, std::int64_t parts) {
  SegmentBuilder s(c.label);
  const Ref whole = s.slot("whole", t, {chunk * parts});
  const Ref shard = s.slot("shard", sum, {chunk});
  const Ref staging = s.temp("staging", t, {chunk}, MemoryClass::kComm);
  set_collective(s.op(OpKind::kReduceScatter, c.stream, c.name, {in(whole), out(staging)}), c);
  if (copies) set_collective(s.op(OpKind::kAllReduce, copies->stream, copies->name, {acc(staging)}), *copies);
  s.op(OpKind::kAccumulate, c.stream, "accumulate", {in(staging), acc(shard)});
  return b.segment(s.take());
}

SegmentId join_segment(program::ProgramBuilder& b, const std::string& label, Stream stream, Stream joined) {
  SegmentBuilder s(label);
  s.op(OpKind::kJoin, stream, "join", {}).attributes.join_stream = joined;
  return b.segment(s.take());
}

SegmentId sum_squares_segment(program::ProgramBuilder& b, DType t, std::int64_t n, double scale,
                              std::optional<OwnPart> own) {
  SegmentBuilder s("norm");
  const Ref gradients = s.slot("gradients", t, {n});
  const Ref sumsq = s.slot("sumsq", DType::kF32, {1});
  Op& op = s.op(OpKind::kSumSquares, Stream::kCompute, "sum_squares", {in(gradients), acc(sumsq)});
  op.attributes.value = scale;
  if (own) {
    op.index_role = own->role;
    op.attributes.count = own->parts;
  }
  return b.segment(s.take());
}

SegmentId unscale_segment(program::ProgramBuilder& b, const UnscaleSpec& u) {
  SegmentBuilder s("gradients");
  const Ref gradients = s.slot("gradients", u.gradient, {u.elements});
  Op& op = s.op(OpKind::kUnscale, Stream::kCompute, "unscale", {});
  if (u.copied > 0) {
    op.operands = {in(gradients), out(s.slot("copy", DType::kF32, {u.copied}))};
  } else {
    op.operands = {acc(gradients)};
  }
  op.operands.push_back(acc(s.slot("found", DType::kF32, {1})));
  op.attributes.value = 1;
  if (u.own) {
    op.index_role = u.own->role;
    op.attributes.count = u.own->parts;
  }
  return b.segment(s.take());
}

SegmentId host_read_segment(program::ProgramBuilder& b, const std::string& label, DType t) {
  SegmentBuilder s(label);
  const Ref value = s.slot(label, t, {1});
  s.op(OpKind::kHostRead, Stream::kD2h, "read", {in(value)});
  return b.segment(s.take());
}

SegmentId clip_segment(program::ProgramBuilder& b, double max_norm) {
  SegmentBuilder s("norm");
  const Ref sumsq = s.slot("sumsq", DType::kF32, {1});
  const Ref factor = s.slot("factor", DType::kF32, {1});
  s.op(OpKind::kClipFactor, Stream::kCompute, "clip", {in(sumsq), out(factor)}).attributes.value = max_norm;
  return b.segment(s.take());
}

SegmentId adam_segment(program::ProgramBuilder& b, const AdamSpec& a) {
  CHECK(a.elements > 0, a.elements);
  SegmentBuilder s("adam");
  const Ref grad = s.slot("grad", a.gradient, {a.gradient_elements});
  const Ref factor = s.slot("factor", DType::kF32, {1});
  const Ref m = s.slot("m", a.moments, {a.elements});
  const Ref v = s.slot("v", a.moments, {a.elements});
  Op* op = nullptr;
  if (a.master) {
    const Ref master = s.slot("master", DType::kF32, {a.elements});
    const Ref weight = s.slot("weight", a.weight, {a.weight_elements});
    op = &s.op(OpKind::kAdam, Stream::kCompute, "update",
               {in(grad), in(factor), acc(m), acc(v), acc(master), out(weight)});
  } else {
    const Ref weight = s.slot("weight", DType::kF32, {a.weight_elements});
    op = &s.op(OpKind::kAdam, Stream::kCompute, "update", {in(grad), in(factor), acc(m), acc(v), acc(weight)});
  }
  op->index_role = a.part_of;
  op->attributes.learning_rate = a.settings.learning_rate;
  op->attributes.beta1 = a.settings.beta1;
  op->attributes.beta2 = a.settings.beta2;
  op->attributes.eps = a.settings.eps;
  return b.segment(s.take());
}

}  // namespace stepcast::plan
