// Small Programs written op by op, one call per op, for timelines that can be worked out by hand; and a cost model that
// looks costs up by op name.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "program/builder.h"
#include "program/check.h"
#include "sim/cost/cost.h"

namespace stepcast::sim {

// One message of an exchange.
struct Message {
  bool send = false;
  std::string role;
  std::int32_t offset = 0;
  std::string buffer;
  program::Channel channel = program::Channel::kActivation;
};

// Buffers are named, persistent, f32 and made on first use, with kElements elements.
class TinyProgram {
 public:
  static constexpr std::int64_t kElements = 16;

  // `programs` rank programs named stage0, stage1, ...; rank i runs program_of_rank[i] on device i.
  TinyProgram(std::size_t programs, std::vector<std::size_t> program_of_rank);

  // A local op with one output and up to two inputs.
  void work(std::size_t program, const std::string& name, const std::vector<std::string>& reads,
            const std::string& write, program::Stream stream = program::Stream::kCompute);
  void all_reduce(std::size_t program, const std::string& name, const std::string& role, const std::string& buffer,
                  program::Stream stream);
  void send(std::size_t program, const std::string& name, const Message& message, program::Stream stream);
  void receive(std::size_t program, const std::string& name, const Message& message, program::Stream stream);
  void exchange(std::size_t program, const std::string& name, const std::vector<Message>& messages,
                program::Stream stream);
  void join(std::size_t program, const std::string& name, program::Stream stream, program::Stream joined);
  void host_read(std::size_t program, const std::string& name, const std::string& buffer, program::Stream stream);
  // The pass of the calls that follow.
  void set_pass(program::Pass pass) { pass_ = pass; }
  // Calls made so far, for mark_graph.
  std::uint32_t calls(std::size_t program) const { return programs_[program].call_count(); }
  void mark_graph(std::size_t program, std::uint32_t begin) {
    programs_[program].mark_graph({begin, programs_[program].call_count()});
  }
  void group(const std::string& role, const std::vector<std::uint32_t>& members);

  program::CheckedProgram checked();

 private:
  using Change = std::function<void(program::Op&)>;
  void add(std::size_t program, program::OpKind kind, const std::string& name, program::Stream stream,
           const std::vector<std::pair<std::string, program::Access>>& operands, const Change& change = {});
  program::ViewId view(std::size_t program, const std::string& buffer);

  program::ProgramBuilder builder_{"tiny"};
  std::vector<program::RankProgramBuilder> programs_;
  std::vector<std::map<std::string, program::ViewId>> views_;
  std::vector<std::size_t> program_of_rank_;
  std::vector<std::pair<program::RoleId, std::vector<program::RankId>>> groups_;
  program::Pass pass_ = program::Pass::kForward;
};

// Costs in picoseconds by op name; a name not listed costs nothing. Launches cost `launch`.
class TableCosts : public CostModel {
 public:
  explicit TableCosts(std::map<std::string, std::int64_t> costs) : costs_(std::move(costs)) {}

  std::int64_t launch = 0;
  std::int64_t graph_launch = 0;
  std::int64_t message = 0;                       // p2p transfer
  std::map<std::int32_t, std::int64_t> slowness;  // device -> factor on its local ops (also its class)

  DeviceClass device_class(std::int32_t device) const override {
    const auto it = slowness.find(device);
    return it == slowness.end() ? 1 : static_cast<DeviceClass>(it->second);
  }
  PathClass path_class(std::span<const std::int32_t>) const override { return 0; }
  LocalCost local_cost(const program::Op& op, std::span<const program::TensorType>, DeviceClass device) const override {
    return Duration(cost(op.name) * device);
  }
  TransferCost collective_cost(const program::Op& op, std::span<const program::TensorType>, PathClass,
                               std::int64_t) const override {
    return Duration(cost(op.name));
  }
  TransferCost message_cost(Bytes, PathClass) const override { return Duration(message); }
  Duration launch_time(const program::Op&) const override { return Duration(launch); }
  Duration graph_launch_time() const override { return Duration(graph_launch); }

 private:
  std::int64_t cost(const std::string& name) const {
    const auto it = costs_.find(name);
    return it == costs_.end() ? 0 : it->second;
  }

  std::map<std::string, std::int64_t> costs_;
};

}  // namespace stepcast::sim
