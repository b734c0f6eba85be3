// One segment of one op per call; equal segments are stored once by the builder.
#include "tests/sim/tiny_program.h"

#include "base/check.h"

namespace stepcast::sim {

using program::Access;
using program::DType;
using program::Op;
using program::Operand;
using program::OpKind;
using program::RankId;
using program::Stream;

TinyProgram::TinyProgram(std::size_t programs, std::vector<std::size_t> program_of_rank)
    : views_(programs), program_of_rank_(std::move(program_of_rank)) {
  for (std::size_t i = 0; i < programs; ++i) programs_.emplace_back("stage" + std::to_string(i));
}

program::ViewId TinyProgram::view(std::size_t program, const std::string& buffer) {
  const auto it = views_[program].find(buffer);
  if (it != views_[program].end()) return it->second;
  const program::ViewId id =
      programs_[program].tensor(buffer, DType::kF32, {kElements}, program::MemoryClass::kActivations, true);
  views_[program].emplace(buffer, id);
  return id;
}

void TinyProgram::add(std::size_t program, OpKind kind, const std::string& name, Stream stream,
                      const std::vector<std::pair<std::string, Access>>& operands, const Change& change) {
  program::SegmentBuilder segment(name);
  std::vector<program::ViewId> args;
  std::vector<Operand> uses;
  for (const auto& [buffer, access] : operands) {
    const program::Ref slot = segment.slot("x" + std::to_string(args.size()), DType::kF32, {kElements});
    uses.push_back(Operand{slot.temp, slot.index, access});
    args.push_back(view(program, buffer));
  }
  Op& op = segment.op(kind, stream, name, {});
  op.operands = uses;
  if (change) change(op);
  program::Tag tag;
  tag.pass = pass_;
  tag.microbatch = programs_[program].call_count();
  programs_[program].call(builder_.segment(segment.take()), args, tag);
}

void TinyProgram::work(std::size_t program, const std::string& name, const std::vector<std::string>& reads,
                       const std::string& write, Stream stream) {
  CHECK(reads.size() <= 2, reads.size());
  const OpKind kind = reads.empty() ? OpKind::kZeroFill : reads.size() == 1 ? OpKind::kCopy : OpKind::kAdd;
  std::vector<std::pair<std::string, Access>> operands;
  for (const std::string& r : reads) operands.emplace_back(r, Access::kRead);
  operands.emplace_back(write, Access::kWrite);
  add(program, kind, name, stream, operands);
}

void TinyProgram::all_reduce(std::size_t program, const std::string& name, const std::string& role,
                             const std::string& buffer, Stream stream) {
  add(program, OpKind::kAllReduce, name, stream, {{buffer, Access::kAccumulate}},
      [&](Op& op) { op.group = builder_.role(role); });
}

void TinyProgram::send(std::size_t program, const std::string& name, const Message& message, Stream stream) {
  add(program, OpKind::kSend, name, stream, {{message.buffer, Access::kRead}}, [&](Op& op) {
    op.parts = {{0, true, builder_.role(message.role), message.offset, message.channel}};
  });
}

void TinyProgram::receive(std::size_t program, const std::string& name, const Message& message, Stream stream) {
  add(program, OpKind::kReceive, name, stream, {{message.buffer, Access::kWrite}}, [&](Op& op) {
    op.parts = {{0, false, builder_.role(message.role), message.offset, message.channel}};
  });
}

void TinyProgram::exchange(std::size_t program, const std::string& name, const std::vector<Message>& messages,
                           Stream stream) {
  std::vector<std::pair<std::string, Access>> operands;
  for (const Message& m : messages) operands.emplace_back(m.buffer, m.send ? Access::kRead : Access::kWrite);
  add(program, OpKind::kExchange, name, stream, operands, [&](Op& op) {
    for (std::uint16_t i = 0; i < messages.size(); ++i) {
      op.parts.push_back(
          {i, messages[i].send, builder_.role(messages[i].role), messages[i].offset, messages[i].channel});
    }
  });
}

void TinyProgram::join(std::size_t program, const std::string& name, Stream stream, Stream joined) {
  add(program, OpKind::kJoin, name, stream, {}, [&](Op& op) { op.attributes.join_stream = joined; });
}

void TinyProgram::host_read(std::size_t program, const std::string& name, const std::string& buffer, Stream stream) {
  add(program, OpKind::kHostRead, name, stream, {{buffer, Access::kRead}});
}

void TinyProgram::group(const std::string& role, const std::vector<std::uint32_t>& members) {
  std::vector<RankId> ranks;
  for (const std::uint32_t m : members) ranks.emplace_back(m);
  groups_.emplace_back(builder_.role(role), std::move(ranks));
}

program::CheckedProgram TinyProgram::checked() {
  std::vector<program::RankProgramId> ids;
  for (program::RankProgramBuilder& r : programs_) ids.push_back(builder_.rank_program(r.take()));
  for (std::size_t rank = 0; rank < program_of_rank_.size(); ++rank) {
    builder_.rank(ids[program_of_rank_[rank]], static_cast<std::int32_t>(rank));
  }
  for (auto& [role, members] : groups_) builder_.group(role, std::move(members));
  return program::CheckedProgram(builder_.take());
}

}  // namespace stepcast::sim
