// Asks the cost model once per distinct (segment op, device class), (segment op, path class, members) and (message,
// path class), and keeps the answers: a step repeats the same few segments thousands of times.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "base/units.h"
#include "program/program.h"
#include "sim/cost/cost.h"

namespace stepcast::sim {

class PriceCache {
 public:
  PriceCache(const program::Program& p, const CostModel& costs);

  Duration local(program::SegmentId segment, std::uint32_t op, DeviceClass device);
  Duration collective(program::SegmentId segment, std::uint32_t op, PathClass path, std::int64_t members);
  Duration message(Bytes bytes, PathClass path);
  Duration launch(program::SegmentId segment, std::uint32_t op);

 private:
  std::size_t index_of(program::SegmentId segment, std::uint32_t op) const { return first_[segment.value] + op; }
  std::vector<program::TensorType> operand_types(program::SegmentId segment, std::uint32_t op) const;

  const program::Program& program_;
  const CostModel& costs_;
  std::vector<std::size_t> first_;  // of a segment's ops among all segments' ops; one past the end
  std::vector<Duration> launch_;    // by segment op; kUnknown until asked
  std::map<DeviceClass, std::vector<Duration>> local_;
  std::map<std::tuple<std::size_t, PathClass, std::int64_t>, Duration> collective_;
  std::map<std::pair<std::int64_t, PathClass>, Duration> message_;
};

}  // namespace stepcast::sim
