// See tiny_program.h.
#include "tests/exec/tiny_program.h"

#include "base/random.h"
#include "kernels/element.h"

namespace stepcast::exec::tiny {
namespace {

constexpr double kStd = 0.5;

}  // namespace

World::World(int ranks) : builder_("tiny") {
  builder_.set_seed(kSeed);
  for (int i = 0; i < ranks; ++i) ranks_.emplace_back("rank" + std::to_string(i));
}

program::ViewId World::shard(int rank, const std::string& name, std::int64_t rows, std::int64_t total, std::int64_t row,
                             std::int64_t begin, std::int64_t cols, DType dtype, program::ShardKind kind) {
  const program::ParameterId id =
      builder_.parameter({.name = name, .rows = rows, .cols = total, .init = program::Init::kNormal, .std = kStd});
  const program::MemoryClass memory_class =
      kind == program::ShardKind::kWeight ? program::MemoryClass::kWeights : program::MemoryClass::kGradients;
  const program::ViewId view = at(rank).tensor(name, dtype, {cols}, memory_class, true);
  const program::ShardBlock block{.rows = {.begin = row, .count = 1, .role = {}, .step = 0},
                                  .cols = {.begin = begin, .count = cols, .role = {}, .step = 0}};
  at(rank).add_shard({.parameter = id,
                      .kind = kind,
                      .buffer = at(rank).at(view).buffer,
                      .byte_offset = 0,
                      .dtype = dtype,
                      .blocks = {block},
                      .slice = {}});
  return view;
}

program::ViewId World::scratch(int rank, std::int64_t elements, DType dtype) {
  return at(rank).tensor("scratch", dtype, {elements}, program::MemoryClass::kActivations);
}

void World::call(int rank, OpKind kind, Stream stream, const std::vector<Arg>& args, const std::string& name,
                 const std::function<void(program::Op&)>& adjust) {
  program::SegmentBuilder segment("t");
  std::vector<program::Operand> operands;
  std::vector<program::ViewId> views;
  for (const Arg& arg : args) {
    const program::TensorType& type = at(rank).at(arg.view).type;
    const program::Ref ref = segment.slot("s", type.dtype, type.shape);
    operands.push_back({ref.temp, ref.index, arg.access});
    views.push_back(arg.view);
  }
  program::Op& op = segment.op(kind, stream, name, {});
  op.operands = operands;
  if (adjust) adjust(op);
  const program::SegmentId id = builder_.segment(segment.take());
  program::Tag tag;
  tag.microbatch = at(rank).call_count();
  at(rank).call(id, views, tag);
}

void World::collective(int rank, OpKind kind, Stream stream, const std::vector<Arg>& args, const std::string& name,
                       const std::function<void(program::Op&)>& adjust) {
  call(rank, kind, stream, args, name, [&](program::Op& op) {
    op.group = role();
    if (adjust) adjust(op);
  });
}

program::CheckedProgram World::take() {
  std::vector<program::RankId> members;
  for (program::RankProgramBuilder& rank : ranks_) {
    members.push_back(builder_.rank(builder_.rank_program(rank.take()), static_cast<std::int32_t>(members.size())));
  }
  builder_.group(role(), members);
  return program::CheckedProgram(builder_.take());
}

program::P2pPart part(World& world, std::uint16_t operand, bool send, std::int32_t offset, program::Channel channel) {
  return {.operand = operand, .send = send, .role = world.role(), .offset = offset, .channel = channel};
}

float rounded(float value, DType dtype) {
  return dtype == DType::kBf16 ? kernels::to_float(kernels::to_bf16(value)) : value;
}

float initial(const std::string& name, std::int64_t index, DType dtype) {
  const double value = kStd * RandomStream(kSeed, name).normal_at(static_cast<std::uint64_t>(index));
  return rounded(static_cast<float>(value), dtype);
}

std::vector<float> gathered(const program::CheckedProgram& checked, const StepRunner& runner, const std::string& name,
                            program::ShardKind kind) {
  const auto& parameters = checked.program().parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const program::ParameterId id(i);
    if (parameters[id].name == name) return runner.gather_parameter(id, kind);
  }
  return {};
}

}  // namespace stepcast::exec::tiny
