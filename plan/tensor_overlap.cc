// Chunks are counted in steps round the ring: "the chunk of step s" is that of the member s places before the rank.
#include "plan/tensor_overlap.h"

namespace stepcast::plan {
namespace {

using program::acc;
using program::in;
using program::MatmulForm;
using program::Op;
using program::Operand;
using program::OpKind;
using program::out;
using program::part_of;
using program::Ref;
using program::SegmentBuilder;
using program::Shape;
using program::Stream;

constexpr std::int32_t kByCopyEngines = 0;

class Ring {
 public:
  Ring(SegmentBuilder& b, const SegmentContext& c, const UserBuffer& buffer)
      : b_(b), c_(c), buffer_(buffer), members_(c.scenario.plan.tp) {}

  std::int64_t members() const { return members_; }
  Operand chunk(Operand whole, std::int64_t step) const { return part_of(whole, members_, step); }

  void multiply(MatmulForm form, const std::string& name, std::initializer_list<Operand> operands,
                std::optional<Ref> bias = std::nullopt) {
    Op& op = matmul(b_, form, name, operands, bias);
    op.index_role = c_.roles.tp;
    op.attributes.multiprocessors = buffer_.left_free();
  }

  // To the member `steps` places on, from the member as many places before.
  void exchange(const std::string& name, std::int64_t steps, Operand sent, Operand received) {
    Op& op = b_.op(OpKind::kExchange, Stream::kTp, name, {sent, received});
    const auto offset = static_cast<std::int32_t>(steps);
    op.parts = {{0, true, c_.roles.tp, offset, program::Channel::kActivation},
                {1, false, c_.roles.tp, -offset, program::Channel::kActivation}};
    op.index_role = c_.roles.tp;
    op.attributes.multiprocessors = kByCopyEngines;
  }

 private:
  SegmentBuilder& b_;
  const SegmentContext& c_;
  const UserBuffer& buffer_;
  std::int64_t members_;
};

// Block `number` of `count` blocks of rows, the same for all ranks.
Operand block_of(Operand whole, std::int64_t count, std::int64_t number) {
  return part_of(whole, count, (count - number) % count);
}

void add_pipeline(SegmentBuilder& b, const SegmentContext& c, const std::string& name, const MatmulScatter& m,
                  const UserBuffer& buffer) {
  const Shape block{c.x.tokens, m.width / buffer.splits};
  for (std::int64_t n = 0; n < buffer.splits; ++n) {
    const std::string number = std::to_string(n);
    const Ref product = b.temp("product" + number, c.x.compute, block, kActivations);
    matmul(b, MatmulForm::kNT, name + number, {in(m.a), block_of(in(m.w), buffer.splits, n), out(product)})
        .attributes.multiprocessors = buffer.left_free();
    Op& scatter = tp_collective(b, c, OpKind::kReduceScatter, "scatter" + number,
                                {in(product), n == 0 ? out(m.sum) : acc(m.sum)});
    scatter.attributes.count = n;
    const bool last = n + 1 == buffer.splits;
    scatter.attributes.multiprocessors = last ? kMostUserBufferMultiprocessors : buffer.multiprocessors;
  }
}

void add_ring_scatter(SegmentBuilder& b, const SegmentContext& c, const std::string& name, const MatmulScatter& m,
                      const UserBuffer& buffer) {
  Ring ring(b, c, buffer);
  const Shape shape{c.x.tokens, m.width};
  const Ref product = b.temp("product", c.x.compute, shape, kActivations);
  const Ref arrived = b.temp("arrived", c.x.compute, shape, kActivations);
  for (std::int64_t step = 1; step < ring.members(); ++step) {
    const std::int64_t owner = ring.members() - step;  // `step` places on is as many before
    ring.multiply(MatmulForm::kNT, name + std::to_string(step),
                  {ring.chunk(in(m.a), owner), in(m.w), ring.chunk(out(product), owner)});
    ring.exchange("scatter" + std::to_string(step), step, ring.chunk(in(product), owner),
                  ring.chunk(out(arrived), step));
  }
  ring.multiply(MatmulForm::kNT, name + "0", {ring.chunk(in(m.a), 0), in(m.w), ring.chunk(out(arrived), 0)});
  b.op(OpKind::kSumParts, Stream::kCompute, "sum", {in(arrived), out(m.sum)});
}

}  // namespace

void add_gather_matmul(SegmentBuilder& b, const SegmentContext& c, const std::string& name, const GatherMatmul& m,
                       const UserBuffer& buffer) {
  Ring ring(b, c, buffer);
  b.op(OpKind::kCopy, Stream::kCompute, "own_chunk", {in(m.own), ring.chunk(out(m.gathered), 0)}).index_role =
      c.roles.tp;
  for (std::int64_t step = 0; step < ring.members(); ++step) {
    const Operand rows = ring.chunk(in(m.gathered), step);
    if (step + 1 < ring.members()) {
      ring.exchange("gather" + std::to_string(step + 1), 1, rows, ring.chunk(out(m.gathered), step + 1));
    }
    ring.multiply(m.form, name + std::to_string(step), {rows, in(m.w), ring.chunk(out(m.result), step)}, m.bias);
  }
}

void add_matmul_scatter(SegmentBuilder& b, const SegmentContext& c, const std::string& name, const MatmulScatter& m,
                        const UserBuffer& buffer) {
  if (buffer.method == OverlapMethod::kPipeline) return add_pipeline(b, c, name, m, buffer);
  add_ring_scatter(b, c, name, m, buffer);
}

void gather_by_user_buffers(SegmentBuilder& b, const SegmentContext& c, const std::string& name, Ref own, Ref whole,
                            const UserBuffer& buffer) {
  const program::TensorType& rows = b.type_of(own);
  const Ref copied = b.temp("copied", rows.dtype, rows.shape, kActivations);
  b.op(OpKind::kCopy, Stream::kCompute, "own_rows", {in(own), out(copied)});
  tp_collective(b, c, OpKind::kAllGather, name, {in(copied), out(whole)}).attributes.multiprocessors =
      buffer.multiprocessors;
}

}  // namespace stepcast::plan
