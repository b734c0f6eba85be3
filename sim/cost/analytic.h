// The analytic cost model: closed forms over a cluster's vendor rates and a calibration's constants.
//
// Matmul: [ (2MNK(1 + K0/K) / (peak e))^4 + (bytes / (f HBM))^4 ]^(1/4) + gap, a smooth roofline; rounding up to whole
// waves of tiles predicts measured tables worse than no rounding. Attention: FLOPs over a rate that saturates in head
// dimension, sequence and heads. Everything else on the device is bound by memory traffic, and on the host streams
// (copies, token loads, host reads) by the host link. Collectives: latency by ring steps, then bus bytes over the
// group's path with NCCL's bus factors (NVIDIA/nccl-tests doc/PERFORMANCE.md).
//
// More bandwidth, a higher peak or a smaller compute-time factor never makes an op slower: every term falls in each
// rate.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sim/cost/calibration.h"
#include "sim/cost/cost.h"
#include "topology/cluster.h"
#include "topology/network.h"

namespace stepcast::sim {

// Numbers path classes as they are first asked for; not for use by several threads at once.
class AnalyticCostModel : public CostModel {
 public:
  AnalyticCostModel(topology::Cluster cluster, Calibration calibration);

  DeviceClass device_class(std::int32_t device) const override;
  // Throws Error (kUnsupported) for a group that no path of the cluster joins.
  PathClass path_class(std::span<const std::int32_t> devices) const override;
  LocalCost local_cost(const program::Op& op, std::span<const program::TensorType> operands,
                   DeviceClass device) const override;
  TransferCost collective_cost(const program::Op& op, std::span<const program::TensorType> operands, PathClass path,
                           std::int64_t members) const override;
  TransferCost message_cost(Bytes message, PathClass path) const override;
  Duration launch_time(const program::Op& op) const override;
  Duration graph_launch_time() const override { return calibration_.graph_launch; }

  const Calibration& calibration() const { return calibration_; }
  const topology::Cluster& cluster() const { return network_.cluster(); }

 private:
  double matmul_seconds(const program::Op& op, std::span<const program::TensorType> operands) const;
  double attention_seconds(const program::Op& op, std::span<const program::TensorType> operands) const;
  double copy_seconds(double bytes) const;
  double memory_share(program::OpKind kind) const;
  double peak_of(program::DType dtype) const;

  topology::Network network_;
  Calibration calibration_;
  std::map<std::int32_t, DeviceClass> class_of_device_;  // devices with an override
  std::vector<double> compute_time_;                     // by device class; class 0 is nominal
  mutable std::vector<topology::GroupShape> paths_;            // by path class
};

}  // namespace stepcast::sim
