// A cost model of made-up but physical shape: local ops by their bytes and FLOPs, communication by latency and bytes.
#pragma once

#include <optional>
#include <span>

#include "program/ops/rules.h"
#include "sim/cost/cost.h"

namespace stepcast::testing {

class SimpleCosts : public sim::CostModel {
 public:
  explicit SimpleCosts(std::optional<std::int32_t> slow_device = std::nullopt) : slow_device_(slow_device) {}

  sim::DeviceClass device_class(std::int32_t device) const override { return slow_device_ == device ? 1 : 0; }
  sim::PathClass path_class(std::span<const std::int32_t>) const override { return 0; }
  sim::LocalCost local_cost(const program::Op& op, std::span<const program::TensorType> t,
                            sim::DeviceClass d) const override {
    const program::Work w = program::work_of(op, t);
    const auto flops = static_cast<std::int64_t>(w.flops.count);
    const Duration time(1000 + (w.read.count + w.written.count) * 3 + flops / 5);
    return d == 1 ? time * 2 : time;
  }
  sim::TransferCost collective_cost(const program::Op& op, std::span<const program::TensorType> t, sim::PathClass,
                                    std::int64_t members) const override {
    if (members == 1) return Duration(0);
    return Duration(50'000 + program::work_of(op, t).message.count * (members - 1));
  }
  sim::TransferCost message_cost(Bytes message, sim::PathClass) const override {
    return Duration(20'000 + message.count * 7);
  }
  Duration launch_time(const program::Op&) const override { return Duration(700); }
  Duration graph_launch_time() const override { return Duration(5000); }

 private:
  std::optional<std::int32_t> slow_device_;
};

}  // namespace stepcast::testing
