// Chunks are counted in steps round the ring: "the chunk of step s" is that of the member s places before the rank.
#include "plan/tensor_overlap.h"

namespace stepcast::plan {
namespace {

using program::in;
using program::Op;
using program::Operand;
using program::OpKind;
using program::out;
using program::part_of;
using program::Ref;
using program::SegmentBuilder;
using program::Stream;

class Ring {
 public:
  Ring(SegmentBuilder& b, const SegmentContext& c) : b_(b), c_(c), members_(c.scenario.plan.tp) {}

  std::int64_t members() const { return members_; }
  Operand chunk(Operand whole, std::int64_t step) const { return part_of(whole, members_, step); }

  void multiply(program::MatmulForm form, const std::string& name, std::initializer_list<Operand> operands,
                std::optional<Ref> bias = std::nullopt) {
    Op& op = b_.op(OpKind::kMatmul, Stream::kCompute, name, operands);
    op.attributes.form = form;
    op.index_role = c_.roles.tp;
    if (bias) op.operands.push_back(in(*bias));
  }

  // To the member `steps` places on, from the member as many places before.
  void exchange(const std::string& name, std::int64_t steps, Operand sent, Operand received) {
    Op& op = b_.op(OpKind::kExchange, Stream::kTp, name, {sent, received});
    const auto offset = static_cast<std::int32_t>(steps);
    op.parts = {{0, true, c_.roles.tp, offset, program::Channel::kActivation},
                {1, false, c_.roles.tp, -offset, program::Channel::kActivation}};
    op.index_role = c_.roles.tp;
  }

 private:
  SegmentBuilder& b_;
  const SegmentContext& c_;
  std::int64_t members_;
};

}  // namespace

void add_gather_matmul(SegmentBuilder& b, const SegmentContext& c, const std::string& name, const GatherMatmul& m) {
  Ring ring(b, c);
  for (std::int64_t step = 0; step < ring.members(); ++step) {
    const Operand rows = step == 0 ? in(m.own) : ring.chunk(in(m.gathered), step);
    if (step + 1 < ring.members()) {
      ring.exchange("gather" + std::to_string(step + 1), 1, rows, ring.chunk(out(m.gathered), step + 1));
    }
    ring.multiply(m.form, name + std::to_string(step), {rows, in(m.w), ring.chunk(out(m.result), step)}, m.bias);
  }
}

void add_matmul_scatter(SegmentBuilder& b, const SegmentContext& c, const std::string& name, const MatmulScatter& m) {
  Ring ring(b, c);
  const program::Shape shape{c.x.tokens, m.width};
  const Ref product = b.temp("product", c.x.compute, shape, kActivations);
  const Ref arrived = b.temp("arrived", c.x.compute, shape, kActivations);
  for (std::int64_t step = 1; step < ring.members(); ++step) {
    const std::int64_t owner = ring.members() - step;  // `step` places on is as many before
    ring.multiply(program::MatmulForm::kNT, name + std::to_string(step),
                  {ring.chunk(in(m.a), owner), in(m.w), ring.chunk(out(product), owner)});
    ring.exchange("scatter" + std::to_string(step), step, ring.chunk(in(product), owner),
                  ring.chunk(out(arrived), step));
  }
  ring.multiply(program::MatmulForm::kNT, name + "0", {ring.chunk(in(m.a), 0), in(m.w), ring.chunk(out(arrived), 0)});
  b.op(OpKind::kSumParts, Stream::kCompute, "sum", {in(arrived), out(m.sum)});
}

}  // namespace stepcast::plan
