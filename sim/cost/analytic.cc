// Seconds in double, turned into whole picoseconds, rounded up, in one place. Powers of four and their roots are
// products and square roots, which IEEE 754 rounds correctly: equal inputs give equal times on every machine.
#include "sim/cost/analytic.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "program/ops/rules.h"

namespace stepcast::sim {
namespace {

using program::DType;
using program::Op;
using program::OpKind;
using program::Stream;
using program::TensorType;

double fourth_power(double x) { return (x * x) * (x * x); }

double count_of(Bytes b) { return static_cast<double>(b.count); }

bool is_host_stream(Stream s) { return s == Stream::kD2h || s == Stream::kH2d; }

}  // namespace

AnalyticCostModel::AnalyticCostModel(topology::Cluster cluster, Calibration calibration)
    : network_(std::move(cluster)), calibration_(std::move(calibration)), compute_time_{1.0} {
  for (const topology::DeviceOverride& o : this->cluster().overrides) {
    const double factor = topology::compute_time_factor(this->cluster(), o.device);
    CHECK(std::isfinite(factor) && factor > 0, o.device, factor);
    const auto known = std::find(compute_time_.begin(), compute_time_.end(), factor);
    class_of_device_[o.device] = static_cast<DeviceClass>(known - compute_time_.begin());
    if (known == compute_time_.end()) compute_time_.push_back(factor);
  }
}

DeviceClass AnalyticCostModel::device_class(std::int32_t device) const {
  const auto it = class_of_device_.find(device);
  return it == class_of_device_.end() ? 0 : it->second;
}

PathClass AnalyticCostModel::path_class(std::span<const std::int32_t> devices) const {
  // A message to oneself names one device twice.
  const bool to_self = devices.size() == 2 && devices[0] == devices[1];
  const topology::GroupShape path = network_.shape_of(to_self ? devices.first(1) : devices);
  const auto known = std::find(paths_.begin(), paths_.end(), path);
  const auto number = static_cast<PathClass>(known - paths_.begin());
  if (known == paths_.end()) paths_.push_back(path);
  return number;
}

double AnalyticCostModel::peak_of(DType dtype) const {
  const topology::DeviceSpec& device = cluster().node.device;
  // Double precision exists for finite differences of kernels only; it is taken at half the fp32 rate.
  if (dtype == DType::kF64) return device.peak_fp32.value / 2;
  return dtype == DType::kBf16 ? device.peak_bf16.value : device.peak_fp32.value;
}

double AnalyticCostModel::matmul_seconds(const Op& op, std::span<const TensorType> operands) const {
  const program::Work work = program::work_of(op, operands);
  const DType dtype = operands[0].dtype;
  const double efficiency = dtype == DType::kBf16 ? calibration_.matmul_bf16 : calibration_.matmul_fp32;
  const double ramp = 1 + calibration_.matmul_k_half / static_cast<double>(std::max<std::int64_t>(1, work.k));
  const double arithmetic = work.flops.count * ramp / (peak_of(dtype) * efficiency);
  const double bytes = count_of(work.read + work.written);
  const double memory = bytes / (calibration_.matmul_memory * cluster().node.device.memory_bandwidth.value);
  return std::sqrt(std::sqrt(fourth_power(arithmetic) + fourth_power(memory)));
}

double AnalyticCostModel::attention_seconds(const Op& op, std::span<const TensorType> operands) const {
  const bool forward = op.kind == OpKind::kAttentionForward;
  const AttentionConstants& c = forward ? calibration_.attention_forward : calibration_.attention_backward;
  const TensorType& qkv = operands[forward ? 0 : 1];
  const program::Attributes& a = op.attributes;
  // The causal mask halves the mean number of keys a query sees.
  const double sequence = static_cast<double>(qkv.shape.extent(0)) / static_cast<double>(a.batch) / 2;
  const double parallel = static_cast<double>(a.heads) * static_cast<double>(a.batch);
  const double slowdown = (1 + c.head_dim_half / static_cast<double>(a.head_dim)) * (1 + c.sequence_half / sequence) *
                          (1 + calibration_.attention_heads_half / parallel);
  return program::work_of(op, operands).flops.count * slowdown / (peak_of(qkv.dtype) * c.efficiency);
}

double AnalyticCostModel::copy_seconds(double bytes) const {
  return calibration_.copy.latency.seconds() + bytes / (calibration_.copy.bandwidth * cluster().node.host_link.value);
}

double AnalyticCostModel::memory_share(OpKind kind) const {
  const Calibration& c = calibration_;
  switch (kind) {
    case OpKind::kRmsNormForward:
    case OpKind::kRmsNormBackwardInput:
    case OpKind::kRmsNormBackwardWeight:
      return c.norm;
    case OpKind::kSwiGluForward:
    case OpKind::kSwiGluBackward:
      return c.activation;
    case OpKind::kRotaryForward:
    case OpKind::kRotaryBackward:
      return c.rotary;
    case OpKind::kEmbeddingForward:
    case OpKind::kEmbeddingBackward:
      return c.embedding;
    case OpKind::kCrossEntropyMax:
    case OpKind::kCrossEntropySum:
    case OpKind::kCrossEntropyLoss:
    case OpKind::kCrossEntropyBackward:
      return c.loss;
    case OpKind::kAdam:
      return c.optimizer;
    default:
      return c.elementwise;
  }
}

LocalCost AnalyticCostModel::local_cost(const Op& op, std::span<const TensorType> operands, DeviceClass device) const {
  CHECK(!program::is_communication(op.kind) && op.kind != OpKind::kJoin, op.name);
  CHECK(device < compute_time_.size(), device, compute_time_.size());
  // Whatever runs on a host stream crosses the host link, which a slow device does not slow down. A copy reads and
  // writes the same bytes; a token load only writes.
  if (op.kind == OpKind::kHostRead || is_host_stream(op.stream)) {
    const program::Work work = program::work_of(op, operands);
    return duration_rounded_up(copy_seconds(count_of(std::max(work.read, work.written))));
  }
  double seconds = 0;
  if (op.kind == OpKind::kMatmul) {
    seconds = matmul_seconds(op, operands);
  } else if (op.kind == OpKind::kAttentionForward || op.kind == OpKind::kAttentionBackward) {
    seconds = attention_seconds(op, operands);
  } else {
    const program::Work work = program::work_of(op, operands);
    const double rate = memory_share(op.kind) * cluster().node.device.memory_bandwidth.value;
    seconds = count_of(work.read + work.written) / rate;
  }
  return duration_rounded_up(compute_time_[device] * (seconds + calibration_.kernel_gap.seconds()));
}

TransferCost AnalyticCostModel::collective_cost(const Op& op, std::span<const TensorType> operands, PathClass path,
                                            std::int64_t members) const {
  CHECK(path < paths_.size() && members >= 1, path, paths_.size(), members);
  // A group of one sends nothing; what is left is its kernel.
  if (members == 1) return calibration_.kernel_gap;
  const double n = static_cast<double>(members);
  const bool all_reduce = op.kind == OpKind::kAllReduce;
  const double steps = all_reduce ? 2 * (n - 1) : n - 1;
  const double factor = op.kind == OpKind::kBroadcast ? 1 : steps / n;
  const double bytes = count_of(program::work_of(op, operands).message);
  const CollectiveConstants& c = calibration_.collective;
  // S (1 + sqrt(S0 / S)) written so that S = 0 is no special case.
  const double effective = bytes + std::sqrt(c.half_size * bytes);
  return duration_rounded_up(c.base_latency.seconds() + steps * c.step_latency.seconds() +
                             effective * factor / (c.bandwidth * paths_[path].port.value));
}

TransferCost AnalyticCostModel::message_cost(Bytes message, PathClass path) const {
  CHECK(path < paths_.size(), path, paths_.size());
  const TransferConstants& c = calibration_.p2p;
  const double bandwidth = paths_[path].port.value;
  // A message to oneself stays in the device's memory: it is read and written there.
  const double seconds =
      bandwidth > 0 ? count_of(message) / (c.bandwidth * bandwidth)
                    : 2 * count_of(message) / (calibration_.elementwise * cluster().node.device.memory_bandwidth.value);
  return duration_rounded_up(c.latency.seconds() + seconds);
}

Duration AnalyticCostModel::launch_time(const Op& op) const {
  return op.kind == OpKind::kJoin ? calibration_.sync_launch : calibration_.launch;
}

}  // namespace stepcast::sim
