// Builds the segments. In the ring, what a step sends is read by the attention beside it, and two buffers take turns: a
// block may be received once the attention to the one before the last is done.
#include "plan/context_segments.h"

#include <array>
#include <string>

#include "plan/segment_context.h"

namespace stepcast::plan {
namespace {

using program::acc;
using program::Channel;
using program::DType;
using program::in;
using program::Op;
using program::OpKind;
using program::out;
using program::Ref;
using program::SegmentBuilder;
using program::Stream;

using Turns = std::array<Ref, 2>;

class Builder {
 public:
  Builder(const SegmentContext& c, SegmentBuilder& segment) : roles_(c.roles), x_(c.x), s_(segment) {}

  // Keys and values, or their gradients, of `members` shares.
  Ref kv(const std::string& name, std::int64_t members = 1) {
    return s_.temp(name, x_.compute, {members * x_.tokens, x_.qkv - x_.q}, kActivations);
  }

  Op& local(OpKind kind, const std::string& name, std::initializer_list<program::Operand> operands) {
    Op& op = s_.op(kind, Stream::kCompute, name, operands);
    set_heads(op, x_);
    return op;
  }

  Op& context(OpKind kind, const std::string& name, std::int64_t steps,
              std::initializer_list<program::Operand> operands) {
    Op& op = local(kind, name, operands);
    op.index_role = roles_.cp;
    op.attributes.count = steps;
    return op;
  }

  // To the next member of the ring, from the one before.
  void pass_on(const std::string& name, Channel channel, Ref sent, Ref received) {
    Op& op = s_.op(OpKind::kExchange, Stream::kCp, name, {in(sent), out(received)});
    op.parts = {{0, true, roles_.cp, 1, channel}, {1, false, roles_.cp, -1, channel}};
  }

  void collective(OpKind kind, const std::string& name, Ref from, Ref to) {
    s_.op(kind, Stream::kCp, name, {in(from), out(to)}).group = roles_.cp;
  }

  void ring_forward() {
    const CoreSlots a = add_core_slots(s_, x_, true);
    const Turns keys{kv("kv0"), kv("kv1")};
    local(OpKind::kKvExtract, "kv", {in(a.qkv), out(keys[0])});
    pass_on("pass_kv1", Channel::kActivation, keys[0], keys[1]);
    local(OpKind::kAttentionForward, "core", {in(a.qkv), out(a.out), out(a.lse)});
    for (std::int64_t step = 1; step < x_.context; ++step) {
      pass_keys_on(step, keys);
      context(OpKind::kShareAttentionForward, "core" + std::to_string(step), step,
              {in(a.qkv), in(turn(keys, step)), acc(a.out), acc(a.lse)});
    }
  }

  void ring_backward() {
    const CoreSlots a = add_core_slots(s_, x_, false);
    const Turns keys{kv("kv0"), kv("kv1")};
    const Turns sums{kv("dkv0"), kv("dkv1")};
    const Turns arrived{kv("arrived0"), kv("arrived1")};
    local(OpKind::kKvExtract, "kv", {in(a.qkv), out(keys[0])});
    pass_on("pass_kv1", Channel::kActivation, keys[0], keys[1]);
    local(OpKind::kAttentionBackward, "core", {in(a.dout), in(a.qkv), in(a.out), in(a.lse), out(a.dqkv)});
    const auto pass_sums_on = [&](std::int64_t step) {
      pass_on("pass_dkv" + std::to_string(step), Channel::kGradient, turn(sums, step), turn(arrived, step + 1));
    };
    for (std::int64_t step = 1; step < x_.context; ++step) {
      const std::string number = std::to_string(step);
      pass_keys_on(step, keys);
      if (step > 1) pass_sums_on(step - 1);
      context(OpKind::kShareAttentionBackward, "core" + number, step,
              {in(a.dout), in(a.qkv), in(turn(keys, step)), in(a.out), in(a.lse), acc(a.dqkv), out(turn(sums, step))});
      if (step > 1) {
        s_.op(OpKind::kAccumulate, Stream::kCompute, "sum" + number, {in(turn(arrived, step)), acc(turn(sums, step))});
      }
    }
    pass_sums_on(x_.context - 1);
    local(OpKind::kKvAccumulate, "dkv", {in(turn(arrived, x_.context)), acc(a.dqkv)});
  }

  void gathered_forward() {
    const CoreSlots a = add_core_slots(s_, x_, true);
    const Ref own = kv("kv");
    const Ref all = kv("all_kv", x_.context);
    local(OpKind::kKvExtract, "kv", {in(a.qkv), out(own)});
    collective(OpKind::kAllGather, "gather_kv", own, all);
    context(OpKind::kShareAttentionForward, "core", 0, {in(a.qkv), in(all), out(a.out), out(a.lse)});
  }

  void gathered_backward() {
    const CoreSlots a = add_core_slots(s_, x_, false);
    const Ref own = kv("kv");
    const Ref all = kv("all_kv", x_.context);
    const Ref all_gradients = kv("all_dkv", x_.context);
    const Ref sum = kv("dkv");
    local(OpKind::kKvExtract, "kv", {in(a.qkv), out(own)});
    collective(OpKind::kAllGather, "gather_kv", own, all);
    context(OpKind::kShareAttentionBackward, "core", 0,
            {in(a.dout), in(a.qkv), in(all), in(a.out), in(a.lse), out(a.dqkv), out(all_gradients)});
    collective(OpKind::kReduceScatter, "scatter_dkv", all_gradients, sum);
    local(OpKind::kKvAccumulate, "dkv", {in(sum), acc(a.dqkv)});
  }

 private:
  static Ref turn(const Turns& turns, std::int64_t step) { return turns[static_cast<std::size_t>(step % 2)]; }

  // Beside the attention to the keys of `step`, those of the next step arrive.
  void pass_keys_on(std::int64_t step, const Turns& keys) {
    if (step + 1 == x_.context) return;
    pass_on("pass_kv" + std::to_string(step + 1), Channel::kActivation, turn(keys, step), turn(keys, step + 1));
  }

  const Roles& roles_;
  const Shapes& x_;
  SegmentBuilder& s_;
};

}  // namespace

DecoderSegments::Core build_context_attention(const SegmentContext& c) {
  if (c.scenario.plan.cp_comm == ContextComm::kAllToAll) return build_exchanged_attention(c);
  SegmentBuilder forward("attn");
  SegmentBuilder backward("attn");
  Builder f(c, forward);
  Builder i(c, backward);
  if (c.scenario.plan.cp_comm == ContextComm::kP2p) {
    f.ring_forward();
    i.ring_backward();
  } else {
    f.gathered_forward();
    i.gathered_backward();
  }
  const program::SegmentId first = c.store(forward);
  return {first, c.store(backward)};
}

program::SegmentId build_own_tokens(program::ProgramBuilder& b, const Roles& roles, const Shapes& x) {
  SegmentBuilder s("data");
  for (const std::string name : {"tokens", "targets"}) {
    const Ref whole = s.slot(name, DType::kI32, {x.context * x.tokens});
    const Ref own = s.slot("own_" + name, DType::kI32, {x.tokens});
    Op& op = s.op(OpKind::kOwnRows, Stream::kCompute, "own_" + name, {in(whole), out(own)});
    op.index_role = roles.cp;
    op.attributes.batch = x.batch;
  }
  return b.segment(s.take());
}

}  // namespace stepcast::plan
