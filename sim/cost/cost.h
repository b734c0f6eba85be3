// The interface between the engine and what prices ops. The engine asks once per distinct (segment op, device class,
// path class) and keeps the answers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "program/program.h"

namespace stepcast::sim {

// Interned by the cost model: devices of equal speed share a DeviceClass; groups whose members reach each other over
// equal paths (tier, bandwidth, members per node) share a PathClass. Equal numbers mean equal costs, so folding
// compares them.
using DeviceClass = std::uint32_t;
using PathClass = std::uint32_t;

class CostModel {
 public:
  virtual ~CostModel() = default;

  virtual DeviceClass device_class(std::int32_t device) const = 0;
  // Path class of a group of devices (collectives) or of a pair (p2p).
  virtual PathClass path_class(std::span<const std::int32_t> devices) const = 0;

  // Time on its stream of a local op. Not called for communication, join or host_read without copy cost.
  virtual Duration op_time(const program::Op& op, std::span<const program::TensorType> operands,
                           DeviceClass device) const = 0;
  // From the latest member's start to the common end. `members` is the group's size.
  virtual Duration collective_time(const program::Op& op, std::span<const program::TensorType> operands, PathClass path,
                                   std::int64_t members) const = 0;
  // From the later partner's start to the common end of one message (an exchange has several).
  virtual Duration p2p_time(Bytes message, PathClass path) const = 0;
  // Host time to issue one op, or one graph of calls.
  virtual Duration launch_time(const program::Op& op) const = 0;
  virtual Duration graph_launch_time() const = 0;
};

}  // namespace stepcast::sim
