// Checks again what the schema's field rules state, because a message may be made without the binder, and what single
// fields cannot state: relations between them.
#include "topology/cluster_reader.h"

#include <cmath>
#include <string_view>

#include "topology/cluster.pb.h"
#include "topology/network_reader.h"

namespace stepcast::topology {
namespace {

// Device numbers are int32 and plans are limited to 2^24 ranks.
constexpr std::int32_t kMaxDevicesPerNode = 65536;

class ClusterReader {
 public:
  explicit ClusterReader(const FieldLocator& locate) : locate_(locate) {}

  void add(ErrorKind kind, const std::string& field, std::string message, std::vector<std::string> help = {}) {
    problems_.add(kind, std::move(message), locate_(field), std::move(help));
  }

  double rate(const std::string& field, double value) {
    if (!(std::isfinite(value) && value >= 1.0 && value <= kMaxRate)) {
      add(ErrorKind::kInput, field, "is not a rate from 1 to 9e18 per second");
    }
    return value;
  }

  double above_zero(const std::string& field, double value) {
    if (!(std::isfinite(value) && value > 0)) add(ErrorKind::kInput, field, "is not a number above 0");
    return value;
  }

  template <class Integer>
  Integer at_least_one(const std::string& field, Integer value) {
    if (value < 1) add(ErrorKind::kInput, field, "is " + std::to_string(value) + ", not at least 1");
    return value;
  }

  ProblemList& problems() { return problems_; }

 private:
  const FieldLocator& locate_;
  ProblemList problems_;
};

DeviceSpec device_of(const proto::Device& message, ClusterReader& reader) {
  DeviceSpec device;
  device.name = message.name();
  if (device.name.empty()) reader.add(ErrorKind::kInput, "gpu.name", "is missing");
  if (message.has_kind() && message.kind() != "gpu" && message.kind() != "cpu") {
    reader.add(ErrorKind::kInput, "gpu.kind", "is neither gpu nor cpu");
  }
  device.kind = message.kind() == "cpu" ? DeviceKind::kCpu : DeviceKind::kGpu;
  device.peak_bf16 = FlopsPerSecond(reader.rate("gpu.peak_bf16", message.peak_bf16()));
  device.peak_fp32 = FlopsPerSecond(reader.rate("gpu.peak_fp32", message.peak_fp32()));
  device.memory_bandwidth = BytesPerSecond(reader.rate("gpu.hbm_bandwidth", message.hbm_bandwidth()));
  device.memory = Bytes(reader.at_least_one("gpu.memory", message.memory()));
  device.memory_visible = message.has_memory_visible() ? Bytes(message.memory_visible()) : device.memory;
  if (device.memory_visible.count < 1 || device.memory_visible > device.memory) {
    reader.add(ErrorKind::kInput, "gpu.memory_visible",
               "is " + std::to_string(device.memory_visible.count) + " bytes, not between 1 and gpu.memory");
  }
  device.architecture = message.architecture();
  if (message.has_peak_fp8()) device.peak_fp8 = FlopsPerSecond(reader.rate("gpu.peak_fp8", message.peak_fp8()));
  if (message.has_peak_fp4()) device.peak_fp4 = FlopsPerSecond(reader.rate("gpu.peak_fp4", message.peak_fp4()));
  if (message.has_power_limit()) device.power_limit = reader.above_zero("gpu.power_limit", message.power_limit());
  if (message.has_clock()) device.clock = reader.above_zero("gpu.clock", message.clock());
  device.multiprocessors = reader.at_least_one("gpu.multiprocessors", message.multiprocessors());
  return device;
}

ScaleUpSpec scale_up_of(const proto::ScaleUp& message, std::int32_t devices, ClusterReader& reader) {
  ScaleUpSpec scale_up;
  scale_up.bandwidth = BytesPerSecond(reader.rate("scale_up.bandwidth", message.bandwidth()));
  scale_up.in_switch_reduction = message.sharp();
  scale_up.domain = message.has_domain() ? message.domain() : devices;
  if (reader.at_least_one("scale_up.domain", scale_up.domain) < 1 || devices < 1) return scale_up;
  const std::string text = "domain of " + std::to_string(scale_up.domain) + " devices";
  if (scale_up.domain > devices && scale_up.domain % devices != 0) {
    reader.add(ErrorKind::kInput, "scale_up.domain", "a " + text + " is not whole nodes of " + std::to_string(devices),
               {"use a multiple of gpus_per_node, or a divisor"});
  } else if (scale_up.domain <= devices && devices % scale_up.domain != 0) {
    reader.add(ErrorKind::kInput, "scale_up.domain",
               "a node of " + std::to_string(devices) + " devices does not divide into a " + text,
               {"use a divisor of gpus_per_node"});
  }
  return scale_up;
}

}  // namespace

Cluster cluster_of(const proto::Cluster& message, const FieldLocator& locate) {
  ClusterReader reader(locate);
  Cluster cluster;
  cluster.name = message.name().empty() ? "custom" : message.name();
  cluster.node.name = cluster.name;
  cluster.node.device = device_of(message.gpu(), reader);
  cluster.node.devices = message.gpus_per_node();
  if (cluster.node.devices < 1 || cluster.node.devices > kMaxDevicesPerNode) {
    reader.add(
        ErrorKind::kInput, "gpus_per_node",
        "is " + std::to_string(cluster.node.devices) + ", not between 1 and " + std::to_string(kMaxDevicesPerNode));
  }
  cluster.node.scale_up = scale_up_of(message.scale_up(), cluster.node.devices, reader);
  cluster.node.host_link = BytesPerSecond(reader.rate("host.pcie", message.host().pcie()));
  if (message.host().has_c2c()) cluster.node.host_link = BytesPerSecond(reader.rate("host.c2c", message.host().c2c()));
  cluster.sources.assign(message.sources().begin(), message.sources().end());
  read_network(message, locate, reader.problems(), cluster);
  reader.problems().throw_if_any();
  return cluster;
}

}  // namespace stepcast::topology
