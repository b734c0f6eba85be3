// Seconds in double, turned into whole picoseconds, rounded up, in one place.
#include "sim/cost/analytic.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "program/ops/rules.h"
#include "sim/cost/kernel_time.h"
#include "sim/cost/user_buffers.h"

namespace stepcast::sim {
namespace {

using program::DType;
using program::Op;
using program::OpKind;
using program::Stream;
using program::TensorType;

double count_of(Bytes b) { return static_cast<double>(b.count); }

bool is_host_stream(Stream s) { return s == Stream::kD2h || s == Stream::kH2d; }

CollectiveOp collective_op(OpKind kind) {
  switch (kind) {
    case OpKind::kAllReduce:
      return CollectiveOp::kAllReduce;
    case OpKind::kAllGather:
      return CollectiveOp::kAllGather;
    case OpKind::kReduceScatter:
      return CollectiveOp::kReduceScatter;
    case OpKind::kBroadcast:
      return CollectiveOp::kBroadcast;
    case OpKind::kAllToAll:
      return CollectiveOp::kAllToAll;
    default:
      CHECK(false, "no collective", program::to_string(kind));
  }
}

// Capacities in shares of one undamaged device's NICs.
std::vector<SharedLink> links_of(const topology::Network& network) {
  std::vector<SharedLink> links;
  for (const topology::SharedLink& link : network.shared_links()) {
    const Share capacity = share_of(link.capacity.value, network.nominal_nic().value);
    links.push_back({capacity, std::string(topology::to_string(link.tier)), link.name});
  }
  return links;
}

// Of devices of several nodes.
std::int32_t count_nodes(const topology::Cluster& cluster, std::span<const std::int32_t> devices) {
  if (devices.size() == 2) return 2;
  std::vector<std::int32_t> nodes;
  nodes.reserve(devices.size());
  for (const std::int32_t device : devices) nodes.push_back(topology::node_of(cluster, device));
  std::sort(nodes.begin(), nodes.end());
  return static_cast<std::int32_t>(std::unique(nodes.begin(), nodes.end()) - nodes.begin());
}

auto key_of(const GroupPath& path) {
  const topology::GroupShape& s = path.shape;
  return std::tie(path.nodes, s.tier, s.members, s.domains, s.most_per_domain, s.fewest_per_domain, s.port, s.nic,
                  s.latency, s.spread);
}

}  // namespace

bool AnalyticCostModel::PathOrder::operator()(const GroupPath& a, const GroupPath& b) const {
  return key_of(a) < key_of(b);
}

AnalyticCostModel::Speed AnalyticCostModel::speed_of(const topology::DeviceOverride& change) {
  for (const double factor : {change.compute_time, change.memory_bandwidth, change.nic_bandwidth}) {
    CHECK(std::isfinite(factor) && factor > 0, change.device, factor);
  }
  // A device whose NIC is down uses another's, whole: what they share is a link of the network.
  const double nic = change.nic_down ? 1 : change.nic_bandwidth;
  return {change.compute_time, change.memory_bandwidth, share_of(nic, 1)};
}

AnalyticCostModel::AnalyticCostModel(topology::Cluster cluster, Calibration calibration,
                                     const std::map<std::string, std::string>& environment, const PinLocations& pins_at)
    : network_(std::move(cluster)),
      calibration_(std::move(calibration)),
      pins_(parse_nccl_pins(environment, pins_at)),
      links_(links_of(network_)),
      speeds_{Speed{}} {
  for (const auto& [device, change] : topology::changed_devices(this->cluster())) {
    const Speed speed = speed_of(change);
    const auto known = std::find(speeds_.begin(), speeds_.end(), speed);
    class_of_device_[device] = static_cast<DeviceClass>(known - speeds_.begin());
    if (known == speeds_.end()) speeds_.push_back(speed);
  }
}

DeviceClass AnalyticCostModel::device_class(std::int32_t device) const {
  const auto it = class_of_device_.find(device);
  return it == class_of_device_.end() ? 0 : it->second;
}

DeviceLimits AnalyticCostModel::limits(DeviceClass device) const {
  CHECK(device < speeds_.size(), device, speeds_.size());
  return {kWhole, speeds_[device].nic};
}

VendorRates AnalyticCostModel::vendor_rates() const {
  const topology::NodeSpec& node = cluster().node;
  const BytesPerSecond nic = node.nic.per_device_rate();
  return {node.scale_up.bandwidth, nic, nominal_port(cluster(), calibration_),
          BytesPerSecond(nic.value * node.nic.efficiency)};
}

GroupPath AnalyticCostModel::path_of(std::span<const std::int32_t> devices) const {
  // A pair is a message's, or a group of two: between them both look the same.
  GroupPath path;
  path.shape = devices.size() == 2 ? network_.shape_between(devices[0], devices[1]) : network_.shape_of(devices);
  if (path.shape.tier < topology::Tier::kLeaf) return path;
  const topology::NodeSpec& node = cluster().node;
  path.nodes = node.scale_up.domain >= node.devices ? path.shape.domains : count_nodes(cluster(), devices);
  return path;
}

PathClass AnalyticCostModel::path_class(std::span<const std::int32_t> devices) const {
  const GroupPath path = path_of(devices);
  const auto [it, is_new] = class_of_path_.try_emplace(path, static_cast<PathClass>(paths_.size()));
  if (is_new) paths_.push_back(path);
  return it->second;
}

void AnalyticCostModel::append_crossings(std::span<const std::int32_t> devices, Pattern pattern,
                                         std::vector<Crossing>& crossings) const {
  if (!links_.empty()) network_.append_uses(devices, pattern, crossings);
}

double AnalyticCostModel::peak_of(DType dtype) const {
  const topology::DeviceSpec& device = cluster().node.device;
  // Double precision exists for finite differences of kernels only; it is taken at half the fp32 rate.
  if (dtype == DType::kF64) return device.peak_fp32.value / 2;
  if (dtype == DType::kNvF4) return device.peak_fp4.value;
  if (program::is_quantised(dtype)) return device.peak_fp8.value;
  const bool half = dtype == DType::kBf16 || dtype == DType::kF16;
  return half ? device.peak_bf16.value : device.peak_fp32.value;
}

MatmulRate AnalyticCostModel::matmul_rate(DType dtype) const {
  const Calibration& c = calibration_;
  const bool narrow = dtype == DType::kF8 || dtype == DType::kF8Block || dtype == DType::kMxF8;
  if (dtype == DType::kF8Block && c.matmul_fp8_block) return *c.matmul_fp8_block;
  if (narrow && c.matmul_fp8) return *c.matmul_fp8;
  const bool wide = dtype == DType::kF32 || dtype == DType::kF64;
  return {wide ? c.matmul_fp32 : c.matmul_bf16, c.matmul_k_half};
}

double AnalyticCostModel::memory_rate(const Speed& speed) const {
  return cluster().node.device.memory_bandwidth.value * speed.memory_bandwidth;
}

// Fitted constants of 8-bit operands hold for the plain form alone: what refines it was fitted with 16-bit ones.
bool AnalyticCostModel::refines(DType dtype) const {
  const bool narrow = dtype == DType::kF8 || dtype == DType::kF8Block || dtype == DType::kMxF8;
  return !narrow || !calibration_.matmul_fp8;
}

double AnalyticCostModel::matmul_seconds(const Op& op, std::span<const TensorType> operands, const Speed& speed) const {
  const program::Work work = program::work_of(op, operands);
  const DType dtype = operands[0].dtype;
  const double share = multiprocessor_share(op);
  const std::int32_t all = cluster().node.device.multiprocessors;
  MatmulShape shape = {work.m, work.n, work.k, work.flops.count, count_of(work.read + work.written), false};
  if (op.kind == OpKind::kMatmul) shape.accumulates = op.operands[2].access == program::Access::kAccumulate;
  const KernelRates rates = {peak_of(dtype), memory_rate(speed), static_cast<std::int32_t>(std::lround(share * all)),
                             share};
  return sim::matmul_seconds(shape, matmul_rate(dtype), calibration_.matmul_memory,
                             refines(dtype) ? calibration_.matmul_refinement : MatmulRefinement{}, rates);
}

// Of the device's, what a matmul runs on.
double AnalyticCostModel::multiprocessor_share(const Op& op) const {
  const std::int32_t all = cluster().node.device.multiprocessors;
  const std::int32_t left_out = op.attributes.multiprocessors;
  if (op.kind != OpKind::kMatmul || left_out <= 0 || all <= 0) return 1;
  return static_cast<double>(std::max(1, all - left_out)) / all;
}

double AnalyticCostModel::attention_seconds(const Op& op, std::span<const TensorType> operands) const {
  const program::AttentionOperands at = program::attention_operands(op.kind);
  const AttentionConstants& c = at.forward ? calibration_.attention_forward : calibration_.attention_backward;
  const TensorType& qkv = operands[at.queries];
  const program::Attributes& a = op.attributes;
  // The causal mask halves the mean number of keys a query sees.
  const double sequence = static_cast<double>(operands[at.keys].shape.extent(0)) / static_cast<double>(a.batch) / 2;
  const std::int64_t queries = qkv.shape.extent(0) / a.batch;
  const std::int64_t tiles = a.heads * a.batch * query_tiles(queries);
  // Of shares under context parallelism only each one's own lies on the diagonal.
  const bool masked = op.kind == OpKind::kAttentionForward || op.kind == OpKind::kAttentionBackward;
  const double slowdown =
      attention_slowdown(c, static_cast<double>(a.head_dim), sequence, static_cast<double>(tiles), masked);
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
    case OpKind::kLayerNormForward:
    case OpKind::kLayerNormBackwardInput:
    case OpKind::kLayerNormBackwardWeight:
    case OpKind::kQkNormForward:
    case OpKind::kQkNormBackwardInput:
    case OpKind::kQkNormBackwardWeight:
      return c.norm;
    case OpKind::kSwiGluForward:
    case OpKind::kSwiGluBackward:
    case OpKind::kGeluForward:
    case OpKind::kGeluBackward:
    case OpKind::kSquaredReluForward:
    case OpKind::kSquaredReluBackward:
      return c.activation;
    case OpKind::kRotaryForward:
    case OpKind::kRotaryBackward:
      return c.rotary;
    case OpKind::kEmbeddingForward:
    case OpKind::kEmbeddingBackward:
    case OpKind::kPositionForward:
    case OpKind::kPositionBackward:
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
  CHECK(device < speeds_.size(), device, speeds_.size());
  const Speed& speed = speeds_[device];
  const program::Work work = program::work_of(op, operands);
  // Whatever runs on a host stream crosses the host link, which a slow device does not slow down. A copy reads and
  // writes the same bytes; a token load only writes.
  if (op.kind == OpKind::kHostRead || is_host_stream(op.stream)) {
    return duration_rounded_up(copy_seconds(count_of(std::max(work.read, work.written))));
  }
  const bool matmul = op.kind == OpKind::kMatmul || program::is_attention_matmul(op.kind);
  const bool attention = !matmul && program::category_of(op.kind) == program::OpCategory::kAttention;
  const double bytes = count_of(work.read + work.written);
  double seconds = 0;
  if (matmul) {
    seconds = matmul_seconds(op, operands, speed);
  } else if (attention) {
    seconds = attention_seconds(op, operands);
  } else {
    seconds = bytes / (memory_share(op.kind) * memory_rate(speed));
  }
  const Duration start = matmul ? calibration_.matmul_start.value_or(calibration_.kernel_gap) : calibration_.kernel_gap;
  const double total = speed.compute_time * (seconds + start.seconds());
  const double multiprocessors = matmul || attention ? multiprocessor_share(op) : calibration_.multiprocessors;
  const Share memory = total > 0 ? share_of(bytes / total, memory_rate(speed)) : 0;
  return {duration_rounded_up(total), std::min(kWhole, share_of(multiprocessors, 1)), std::min(kWhole, memory)};
}

TransferCost AnalyticCostModel::collective_cost(const Op& op, std::span<const TensorType> operands, PathClass path,
                                                std::int64_t members) const {
  CHECK(path < paths_.size() && members >= 1, path, paths_.size(), members);
  // A group of one sends nothing; what is left is its kernel.
  if (members == 1) return calibration_.kernel_gap;
  const CollectiveOp kind = collective_op(op.kind);
  const Bytes message = program::work_of(op, operands).message;
  const std::int32_t multiprocessors = op.attributes.multiprocessors;
  if (multiprocessors <= 0) return collective(kind, message, path).cost;
  return price_user_buffers(context(), kind, message, paths_[path], multiprocessors).cost;
}

PricedTransfer AnalyticCostModel::collective(CollectiveOp op, Bytes size, PathClass path) const {
  CHECK(path < paths_.size(), path, paths_.size());
  return price_collective(context(), op, size, paths_[path]);
}

TransferCost AnalyticCostModel::message_cost(Bytes message, PathClass path) const {
  CHECK(path < paths_.size(), path, paths_.size());
  if (paths_[path].shape.tier != topology::Tier::kNone) return price_message(context(), message, paths_[path]).cost;
  // A message to oneself stays in the device's memory: it is read and written there.
  const double rate = calibration_.elementwise * cluster().node.device.memory_bandwidth.value;
  return duration_rounded_up(calibration_.p2p.latency.seconds() + 2 * count_of(message) / rate);
}

TransferCost AnalyticCostModel::peer_copy_cost(Bytes message, PathClass path) const {
  CHECK(path < paths_.size(), path, paths_.size());
  if (paths_[path].shape.tier == topology::Tier::kNone) return message_cost(message, path);
  return price_peer_copy(context(), message, paths_[path]).cost;
}

Duration AnalyticCostModel::launch_time(const Op& op) const {
  return op.kind == OpKind::kJoin ? calibration_.sync_launch : calibration_.launch;
}

}  // namespace stepcast::sim
