// The analytic cost model: closed forms over a cluster's vendor rates and a calibration's constants.
//
// Matmul: a smooth roofline and a start (kernel_time.h); in full, rounding up to whole waves of tiles predicts measured
// tables worse than no rounding. Attention: FLOPs over a rate that saturates in head dimension, sequence and heads;
// where its scores are materialised, its matmuls are priced as one each, and softmax and dropout by their bytes.
// Everything else on the device is bound by memory traffic, and on the host streams (copies, token loads, host reads)
// by the host link. Collectives and messages: sim/cost/collective_time.
//
// Needs of a local op at full speed: a matmul or attention all multiprocessors, a kernel bound by memory as many as
// fill the memory system, both their bytes over their time; a copy across the host link none. A matmul that leaves
// multiprocessors to communication takes as much longer and needs so many fewer.
//
// A higher peak, more memory bandwidth or a smaller compute-time factor never makes an op slower: every term falls in
// each rate. A faster link never makes a transfer slower unless NCCL, which goes by vendor rates, changes the
// algorithm.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sim/cost/calibration.h"
#include "sim/cost/collective_time.h"
#include "sim/cost/cost.h"
#include "topology/cluster.h"
#include "topology/network.h"

namespace stepcast::sim {

// Numbers path classes as they are first asked for; not for use by several threads at once.
class AnalyticCostModel : public CostModel {
 public:
  // Pins of NCCL are taken from `environment`, given at `pins_at`. Throws Error (kInput, kUnsupported) for bad pins and
  // fabrics.
  AnalyticCostModel(topology::Cluster cluster, Calibration calibration,
                    const std::map<std::string, std::string>& environment = {}, const PinLocations& pins_at = {});

  DeviceClass device_class(std::int32_t device) const override;
  DeviceLimits limits(DeviceClass device) const override;
  VendorRates vendor_rates() const override;
  // Throws Error (kUnsupported) for a group that no path of the cluster joins.
  PathClass path_class(std::span<const std::int32_t> devices) const override;
  std::span<const SharedLink> shared_links() const override { return links_; }
  void append_crossings(std::span<const std::int32_t> devices, Pattern pattern,
                        std::vector<Crossing>& crossings) const override;
  LocalCost local_cost(const program::Op& op, std::span<const program::TensorType> operands,
                       DeviceClass device) const override;
  // Throws Error (kInput) when the pins leave no algorithm for the group.
  TransferCost collective_cost(const program::Op& op, std::span<const program::TensorType> operands, PathClass path,
                               std::int64_t members) const override;
  TransferCost message_cost(Bytes message, PathClass path) const override;
  TransferCost peer_copy_cost(Bytes message, PathClass path) const override;
  Duration launch_time(const program::Op& op) const override;
  Duration graph_launch_time() const override { return calibration_.graph_launch; }

  // As collective_cost, for any collective of nccl-tests and a group of at least two.
  PricedTransfer collective(CollectiveOp op, Bytes size, PathClass path) const;

  const Calibration& calibration() const { return calibration_; }
  const topology::Cluster& cluster() const { return network_.cluster(); }

 private:
  struct Speed {
    double compute_time = 1;
    double memory_bandwidth = 1;
    Share nic = kWhole;
    bool operator==(const Speed&) const = default;
  };
  struct PathOrder {
    bool operator()(const GroupPath& a, const GroupPath& b) const;
  };

  static Speed speed_of(const topology::DeviceOverride& change);
  GroupPath path_of(std::span<const std::int32_t> devices) const;
  CollectiveContext context() const { return {cluster(), calibration_, pins_, network_.nominal_nic()}; }
  double memory_rate(const Speed& speed) const;
  double matmul_seconds(const program::Op& op, std::span<const program::TensorType> operands, const Speed& speed) const;
  double multiprocessor_share(const program::Op& op) const;
  double attention_seconds(const program::Op& op, std::span<const program::TensorType> operands) const;
  double copy_seconds(double bytes) const;
  double memory_share(program::OpKind kind) const;
  double peak_of(program::DType dtype) const;
  MatmulRate matmul_rate(program::DType dtype) const;
  bool refines(program::DType dtype) const;

  topology::Network network_;
  Calibration calibration_;
  NcclPins pins_;
  std::vector<SharedLink> links_;
  std::map<std::int32_t, DeviceClass> class_of_device_;  // devices with an override
  std::vector<Speed> speeds_;                            // by device class; class 0 is nominal
  mutable std::vector<GroupPath> paths_;                 // by path class
  mutable std::map<GroupPath, PathClass, PathOrder> class_of_path_;
};

}  // namespace stepcast::sim
