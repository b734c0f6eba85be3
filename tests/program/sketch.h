// A short hand for test programs: every op is a call of its own segment, with the buffers it touches.
#pragma once

#include <string>
#include <vector>

#include "program/builder.h"

namespace stepcast::program::testing {

struct Use {
  ViewId view;
  Access access = Access::kRead;
  std::uint16_t parts = 1;
  std::uint16_t before = 0;
};

class Sketch {
 public:
  Sketch(ProgramBuilder& program, std::string name) : program_(program), builder_(std::move(name)) {}

  RankProgramBuilder& builder() { return builder_; }
  // A buffer of `elements` f32 and the view of it.
  ViewId tensor(const std::string& name, std::int64_t elements = 4, bool persistent = true) {
    return builder_.tensor(name, DType::kF32, {elements}, MemoryClass::kActivations, persistent);
  }
  // Elements [begin, begin + count) of a tensor made above.
  ViewId part(ViewId whole, std::int64_t begin, std::int64_t count) {
    return builder_.view(builder_.at(whole).buffer, begin * 4, DType::kF32, {count});
  }

  // Calls a segment `name` of one op, "op"; the path is F.name.op.
  void op(const std::string& name, OpKind kind, Stream stream, const std::vector<Use>& uses, Op form = {}) {
    Segment s;
    s.label = name;
    form.name = "op";
    form.kind = kind;
    form.stream = stream;
    std::vector<ViewId> args;
    for (const Use& use : uses) {
      form.operands.push_back({false, static_cast<std::uint16_t>(args.size()), use.access, use.parts, use.before});
      s.slots.push_back({"x", builder_.at(use.view).type});
      args.push_back(use.view);
    }
    s.ops.push_back(std::move(form));
    builder_.call(program_.segment(std::move(s)), std::move(args), {});
  }

  void fill(const std::string& name, ViewId v, Stream stream = Stream::kCompute) {
    op(name, OpKind::kZeroFill, stream, {{v, Access::kWrite}});
  }
  void copy(const std::string& name, ViewId from, ViewId to, Stream stream = Stream::kCompute) {
    op(name, OpKind::kCopy, stream, {{from, Access::kRead}, {to, Access::kWrite}});
  }
  void send(const std::string& name, Stream stream, ViewId v, std::int32_t offset, Channel channel) {
    Op form;
    form.parts = {{0, true, program_.role("pp"), offset, channel}};
    op(name, OpKind::kSend, stream, {{v, Access::kRead}}, form);
  }
  void receive(const std::string& name, Stream stream, ViewId v, std::int32_t offset, Channel channel) {
    Op form;
    form.parts = {{0, false, program_.role("pp"), offset, channel}};
    op(name, OpKind::kReceive, stream, {{v, Access::kWrite}}, form);
  }
  // Sends `from` to one neighbour and receives `to` from another, grouped.
  void exchange(const std::string& name, Stream stream, ViewId from, P2pPart send, ViewId to, P2pPart receive) {
    Op form;
    send.send = true;
    receive.operand = 1;
    form.parts = {send, receive};
    op(name, OpKind::kExchange, stream, {{from, Access::kRead}, {to, Access::kWrite}}, form);
  }
  P2pPart to(std::int32_t offset, Channel channel) { return {0, false, program_.role("pp"), offset, channel}; }
  void all_reduce(const std::string& name, Stream stream, ViewId v, const std::string& role,
                  Reduce reduce = Reduce::kSum) {
    Op form;
    form.group = program_.role(role);
    form.attributes.reduce = reduce;
    op(name, OpKind::kAllReduce, stream, {{v, Access::kAccumulate}}, form);
  }
  void host_read(const std::string& name, ViewId v) { op(name, OpKind::kHostRead, Stream::kD2h, {{v, Access::kRead}}); }

  RankId add_rank() { return program_.rank(program_.rank_program(builder_.take()), 0); }

 private:
  ProgramBuilder& program_;
  RankProgramBuilder builder_;
};

}  // namespace stepcast::program::testing
