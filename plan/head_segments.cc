// Attention under context parallelism by all-to-all (Ulysses). Before it the members exchange rows for heads: each ends
// up with all rows of the sequences and 1/cp of the heads, and attends as if alone; behind it rows come back. Backward
// the reverse: the output's gradient goes there, those of queries, keys and values come back.
//
// As Transformer Engine has it (AttnFuncWithCPAndQKVOA2A; flash_attn_a2a_communicate, which sends q, k and v one by one
// and orders the zigzag shares while the next one moves): 4 all-to-alls each way, of q, k, v and of the output. Kept
// for the backward pass are queries, keys, values and, since 2.8, the output as the attention saw them; the output in
// the own rows is kept by the projection behind it.
//
// Slots: forward qkv[T,qkv] out[T,q] lse[cp*T,heads/cp] exchanged_qkv[cp*T,qkv/cp] exchanged_out[cp*T,q/cp];
// input_grad dout exchanged_qkv exchanged_out lse dqkv.
#include <string>
#include <vector>

#include "plan/segment_context.h"

namespace stepcast::plan {
namespace {

using program::DType;
using program::in;
using program::Op;
using program::OpKind;
using program::out;
using program::Ref;
using program::SegmentBuilder;
using program::Stream;

// The parts [cp,T,width/cp] of one tensor for every member, and those of every member.
struct Parts {
  std::string name;
  Ref sent, received;
};

class ExchangeBuilder {
 public:
  ExchangeBuilder(const SegmentContext& c, SegmentBuilder& segment) : roles_(c.roles), x_(c.x), s_(segment) {}

  Parts parts(const std::string& name, std::int64_t width) {
    const program::Shape shape{x_.context, x_.tokens, width / x_.context};
    return {name, s_.temp(name + "_sent", x_.compute, shape, kActivations),
            s_.temp(name + "_received", x_.compute, shape, kActivations)};
  }
  // Of q, k and v, or of their gradients.
  std::vector<Parts> qkv_parts(const std::string& prefix) {
    const std::int64_t kv = x_.kv_heads * x_.head_dim;
    return {parts(prefix + "q", x_.q), parts(prefix + "k", kv), parts(prefix + "v", kv)};
  }

  void split(OpKind kind, const std::string& name, Ref whole, const std::vector<Parts>& parts) {
    Op& op = s_.op(kind, Stream::kCompute, name, {in(whole)});
    op.attributes.batch = x_.batch;
    for (const Parts& p : parts) op.operands.push_back(out(p.sent));
  }
  void exchange(const std::vector<Parts>& parts) {
    for (const Parts& p : parts) {
      s_.op(OpKind::kAllToAll, Stream::kCp, "exchange_" + p.name, {in(p.sent), out(p.received)}).group = roles_.cp;
    }
  }
  void join(OpKind kind, const std::string& name, const std::vector<Parts>& parts, Ref whole) {
    Op& op = s_.op(kind, Stream::kCompute, name, {});
    op.attributes.batch = x_.batch;
    for (const Parts& p : parts) op.operands.push_back(in(p.received));
    op.operands.push_back(out(whole));
  }
  void attend(OpKind kind, std::initializer_list<program::Operand> operands) {
    Op& op = s_.op(kind, Stream::kCompute, "core", operands);
    set_heads(op, x_);
    op.attributes.heads /= static_cast<std::int32_t>(x_.context);
    op.attributes.kv_heads /= static_cast<std::int32_t>(x_.context);
  }

  void forward() {
    const Ref qkv = s_.slot("qkv", x_.compute, {x_.tokens, x_.qkv});
    const Ref o = s_.slot("out", x_.compute, {x_.tokens, x_.q});
    const Ref lse = s_.slot("lse", DType::kF32, x_.exchanged_lse());
    const Ref all_qkv = s_.slot("exchanged_qkv", x_.compute, x_.exchanged_qkv());
    const Ref all_out = s_.slot("exchanged_out", x_.compute, x_.exchanged_q());
    const std::vector<Parts> there = qkv_parts("");
    const std::vector<Parts> back{parts("out", x_.q)};
    split(OpKind::kHeadsSplit, "split_heads", qkv, there);
    exchange(there);
    join(OpKind::kSharesJoin, "join_rows", there, all_qkv);
    attend(OpKind::kAttentionForward, {in(all_qkv), out(all_out), out(lse)});
    split(OpKind::kSharesSplit, "split_rows", all_out, back);
    exchange(back);
    join(OpKind::kHeadsJoin, "join_heads", back, o);
  }

  void backward() {
    const Ref dout = s_.slot("dout", x_.compute, {x_.tokens, x_.q});
    const Ref all_qkv = s_.slot("exchanged_qkv", x_.compute, x_.exchanged_qkv());
    const Ref all_out = s_.slot("exchanged_out", x_.compute, x_.exchanged_q());
    const Ref lse = s_.slot("lse", DType::kF32, x_.exchanged_lse());
    const Ref dqkv = s_.slot("dqkv", x_.compute, {x_.tokens, x_.qkv});
    const Ref all_dout = s_.temp("exchanged_dout", x_.compute, x_.exchanged_q(), kActivations);
    const Ref all_dqkv = s_.temp("exchanged_dqkv", x_.compute, x_.exchanged_qkv(), kActivations);
    const std::vector<Parts> there{parts("dout", x_.q)};
    const std::vector<Parts> back = qkv_parts("d");
    split(OpKind::kHeadsSplit, "split_heads", dout, there);
    exchange(there);
    join(OpKind::kSharesJoin, "join_rows", there, all_dout);
    attend(OpKind::kAttentionBackward, {in(all_dout), in(all_qkv), in(all_out), in(lse), out(all_dqkv)});
    split(OpKind::kSharesSplit, "split_rows", all_dqkv, back);
    exchange(back);
    join(OpKind::kHeadsJoin, "join_heads", back, dqkv);
  }

 private:
  const Roles& roles_;
  const Shapes& x_;
  SegmentBuilder& s_;
};

}  // namespace

DecoderSegments::Core build_exchanged_attention(const SegmentContext& c) {
  SegmentBuilder forward("attn");
  SegmentBuilder backward("attn");
  ExchangeBuilder(c, forward).forward();
  ExchangeBuilder(c, backward).backward();
  const program::SegmentId first = c.store(forward);
  return {first, c.store(backward)};
}

}  // namespace stepcast::plan
