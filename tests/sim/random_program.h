// Random valid Programs for oracles and properties, and a cost model of hashed costs.
//
// Valid by construction: actions are drawn one after the other and each is appended to the programs of every rank it
// concerns, so that all waiting points forward in that one order and no cycle can arise.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "program/check.h"
#include "sim/cost/cost.h"

namespace stepcast::sim {

enum class Symmetry : std::uint8_t {
  kStages,  // all ranks of a pipeline stage run one program, as in real plans
  kNone,    // every rank runs its own
};

struct RandomProgramOptions {
  std::uint64_t seed = 0;
  Symmetry symmetry = Symmetry::kNone;
  int actions = 40;
};

// Up to 4 x 3 x 4 ranks in roles tp, dp, pp, line (as pp, for exchanges) and world; rank i on device i.
program::CheckedProgram random_program(const RandomProgramOptions& options);

// Costs are functions of (seed, op name, device class, path), many of them zero or equal, so that ties happen. With
// `demands` they also need shares of everything that can be contended for: devices 4n .. 4n+3 are a node, whose traffic
// with others leaves by the links 2n (up) and 2n + 1 (down).
class HashedCosts : public CostModel {
 public:
  explicit HashedCosts(std::uint64_t seed) : seed_(seed) {}

  std::set<std::int32_t> slow_devices;  // three times the cost of others
  bool demands = false;
  std::set<std::int32_t> slow_links;      // with demands: a third of the capacity of others
  std::set<std::int32_t> half_rate_nics;  // with demands: devices, a class of their own
  // Divides the cost of what its name says: local ops, collectives, messages, launches.
  struct Speed {
    std::int64_t local = 1;
    std::int64_t collective = 1;
    std::int64_t message = 1;
    std::int64_t launch = 1;
  } speed;

  DeviceClass device_class(std::int32_t device) const override {
    return (slow_devices.contains(device) ? 1 : 0) + (half_rate_nics.contains(device) ? 2 : 0);
  }
  DeviceLimits limits(DeviceClass device) const override { return {kWhole, device < 2 ? kWhole : kWhole / 2}; }
  std::span<const SharedLink> shared_links() const override;
  void append_crossings(std::span<const std::int32_t> devices, Pattern pattern,
                        std::vector<Crossing>& crossings) const override;
  // Four devices make a node; a path is within one or between several.
  PathClass path_class(std::span<const std::int32_t> devices) const override;
  LocalCost local_cost(const program::Op& op, std::span<const program::TensorType> operands,
                       DeviceClass device) const override;
  TransferCost collective_cost(const program::Op& op, std::span<const program::TensorType> operands, PathClass path,
                               std::int64_t members) const override;
  TransferCost message_cost(Bytes message, PathClass path) const override;
  Duration launch_time(const program::Op& op) const override;
  Duration graph_launch_time() const override { return Duration(4 / speed.launch); }

 private:
  std::int64_t hashed(const std::string& name, std::uint64_t index, std::uint64_t bound) const;

  TransferCost with_demands(Duration time, const std::string& name, PathClass path) const;

  std::uint64_t seed_;
  mutable std::vector<SharedLink> links_;  // made when first asked for
};

}  // namespace stepcast::sim
