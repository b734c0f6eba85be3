// Hand-made programs of a few ops for the executor's tests: all ranks are members of one group, "world", in rank order.
//
// Data goes in as initial values of parameters and comes out through gather_parameter, so tests use the public
// interface alone. Parameter "x" has one row per rank; each rank holds its row.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "exec/executor.h"
#include "program/builder.h"

namespace stepcast::exec::tiny {

using program::Access;
using program::DType;
using program::OpKind;
using program::Stream;

inline constexpr std::uint64_t kSeed = 7;

struct Arg {
  program::ViewId view;
  Access access = Access::kRead;
};

class World {
 public:
  explicit World(int ranks);

  int size() const { return static_cast<int>(ranks_.size()); }
  program::RoleId role() { return builder_.role("world"); }
  program::RankProgramBuilder& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  // A persistent tensor of `rank` that holds columns [begin, begin + cols) of row `row` of parameter `name`
  // [rows, total], as a weight (with initial values) or as a gradient (zero).
  program::ViewId shard(int rank, const std::string& name, std::int64_t rows, std::int64_t total, std::int64_t row,
                        std::int64_t begin, std::int64_t cols, DType dtype = DType::kF32,
                        program::ShardKind kind = program::ShardKind::kWeight);
  // A tensor that lives from first to last use.
  program::ViewId scratch(int rank, std::int64_t elements, DType dtype = DType::kF32);

  // Appends a call of a segment with one op, named `name`, to the rank's list; its path is "F.m<call>.t.<name>".
  void call(int rank, OpKind kind, Stream stream, const std::vector<Arg>& args, const std::string& name = "op",
            const std::function<void(program::Op&)>& adjust = {});
  // The same with an op of the whole world.
  void collective(int rank, OpKind kind, Stream stream, const std::vector<Arg>& args, const std::string& name = "op",
                  const std::function<void(program::Op&)>& adjust = {});

  // Checks the program; the world is used up.
  program::CheckedProgram take();

 private:
  program::ProgramBuilder builder_;
  std::vector<program::RankProgramBuilder> ranks_;
};

// One message of an exchange, send or receive, with operand `operand`.
program::P2pPart part(World& world, std::uint16_t operand, bool send, std::int32_t offset,
                      program::Channel channel = program::Channel::kActivation);

// The initial value of element `index` of a parameter made by World::shard, rounded to `dtype`.
float initial(const std::string& name, std::int64_t index, DType dtype = DType::kF32);
float rounded(float value, DType dtype);

// The parameter of that name, gathered.
std::vector<float> gathered(const program::CheckedProgram& checked, const StepRunner& runner, const std::string& name,
                            program::ShardKind kind);

}  // namespace stepcast::exec::tiny
