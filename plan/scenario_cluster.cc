// The cluster of a scenario: its own keys over those of a preset or file, bound with the cluster file's schema.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/quantity.h"
#include "config/document.h"
#include "config/text.h"
#include "plan/cluster_reader.h"
#include "plan/scenario_draft.h"
#include "topology/cluster.pb.h"
#include "topology/cluster_reader.h"
#include "topology/fabric_layout.h"
#include "topology/network.h"

namespace stepcast::plan {
namespace {

using config::Node;

struct UnusedFigure {
  const char* key;
  Dimension dimension;
};

// Figures of a device that are stated but change nothing yet: an override would promise an effect.
constexpr std::array kUnusedFigures =
    std::to_array<UnusedFigure>({{"power_limit", Dimension::kPower}, {"clock", Dimension::kFrequency}});

const Node* figure_of(const Node& cluster, const char* key) {
  const Node* gpu = cluster.find("gpu");
  return gpu == nullptr || gpu->kind != Node::Kind::kMap ? nullptr : gpu->find(key);
}

void refuse_unused_figures(ScenarioDraft& draft, const Node& preset, const Node& own) {
  for (const UnusedFigure& figure : kUnusedFigures) {
    const Node* given = figure_of(own, figure.key);
    if (given == nullptr || given->kind != Node::Kind::kScalar) continue;
    const Node* stated = figure_of(preset, figure.key);
    const bool has_stated = stated != nullptr && stated->kind == Node::Kind::kScalar;
    const QuantityResult wanted = parse_quantity(given->text, figure.dimension);
    if (!wanted.ok()) continue;  // the binder says so
    if (has_stated && parse_quantity(stated->text, figure.dimension).value == wanted.value) continue;
    const std::string field = std::string("cluster.gpu.") + figure.key;
    draft.problems.add(ErrorKind::kUnsupported, field + ": " + config::printable(given->text),
                       {given->where.file, given->where.line, field},
                       {has_stated ? "the only value so far is the preset's " + stated->text : "leave it out"});
  }
}

// A preset's routing efficiency is that of its own routing: with another one it is derived anew.
void drop_stale_efficiency(Node& preset, const Node& own) {
  const Node* change = own.find("fabric");
  Node* fabric = preset.find("fabric");
  if (change == nullptr || change->kind != Node::Kind::kMap) return;
  if (fabric == nullptr || fabric->kind != Node::Kind::kMap) return;
  if (change->find("routing") == nullptr && change->find("qps_per_connection") == nullptr) return;
  fabric->erase("routing_efficiency");
}

// What the driver reports of a preset's memory is not what it reports of another.
void drop_stale_visible_memory(Node& preset, const Node& own) {
  if (figure_of(own, "memory") == nullptr || figure_of(own, "memory_visible") != nullptr) return;
  Node* gpu = preset.find("gpu");
  if (gpu != nullptr && gpu->kind == Node::Kind::kMap) gpu->erase("memory_visible");
}

// Shows a value as it was written where it was given, else as resolved.
class Recorder {
 public:
  explicit Recorder(ScenarioDraft& draft) : draft_(draft) {}

  void text(const char* key, std::string resolved, const std::string& otherwise = "default") {
    const std::string field = std::string("cluster.") + key;
    for (const config::BoundValue& value : draft_.bound) {
      if (value.field == field) resolved = config::printable(value.value);
    }
    draft_.record(field, std::move(resolved), otherwise);
  }
  void quantity(const char* key, double value, Dimension dimension, const std::string& otherwise = "default") {
    text(key, format_quantity(value, dimension, 4), otherwise);
  }
  // Only where there is such a figure.
  void stated(const char* key, double value, Dimension dimension) {
    if (value > 0) quantity(key, value, dimension);
  }
  void count(const char* key, std::int64_t value, const std::string& otherwise = "default") {
    text(key, std::to_string(value), otherwise);
  }
  // As written, and only where it is.
  void given(const char* key) {
    if (draft_.given(std::string("cluster.") + key)) text(key, "", "");
  }
  void ratio(const char* key, double value) { text(key, config::number_text(value)); }

 private:
  ScenarioDraft& draft_;
};

void record_node(Recorder& show, const topology::NodeSpec& node) {
  const topology::DeviceSpec& device = node.device;
  show.text("gpu.name", config::printable(device.name));
  show.text("gpu.kind", device.kind == topology::DeviceKind::kCpu ? "cpu" : "gpu");
  if (!device.architecture.empty()) show.text("gpu.architecture", config::printable(device.architecture));
  show.quantity("gpu.peak_bf16", device.peak_bf16.value, Dimension::kFlopRate);
  show.quantity("gpu.peak_fp32", device.peak_fp32.value, Dimension::kFlopRate);
  show.stated("gpu.peak_fp8", device.peak_fp8.value, Dimension::kFlopRate);
  show.stated("gpu.peak_fp4", device.peak_fp4.value, Dimension::kFlopRate);
  show.quantity("gpu.memory", static_cast<double>(device.memory.count), Dimension::kBytes);
  show.quantity("gpu.memory_visible", static_cast<double>(topology::usable_memory(device).count), Dimension::kBytes,
                "derived: as memory");
  show.quantity("gpu.hbm_bandwidth", device.memory_bandwidth.value, Dimension::kByteRate);
  show.count("gpu.multiprocessors", device.multiprocessors);
  show.stated("gpu.power_limit", device.power_limit, Dimension::kPower);
  show.stated("gpu.clock", device.clock, Dimension::kFrequency);
  show.count("gpus_per_node", node.devices);
  show.quantity("scale_up.bandwidth", node.scale_up.bandwidth.value, Dimension::kByteRate);
  show.count("scale_up.domain", node.scale_up.domain, "derived: gpus_per_node");
  show.text("scale_up.sharp", bool_text(node.scale_up.in_switch_reduction));
  for (const char* key : {"host.pcie", "host.c2c", "host.nvme", "host.dram"}) show.given(key);
  if (node.nic.rate.value <= 0) return;
  show.quantity("nic.rate", node.nic.rate.value, Dimension::kByteRate);
  show.ratio("nic.per_gpu", node.nic.per_device);
  show.text("nic.kind", std::string(topology::to_string(node.nic.kind)));
  show.ratio("nic.efficiency", node.nic.efficiency);
  show.quantity("nic.latency", node.nic.latency.seconds(), Dimension::kTime);
}

void record_fabric(Recorder& show, const topology::FabricSpec& fabric) {
  if (fabric.kind == topology::FabricKind::kNone) {
    show.text("fabric.kind", "none");
    return;
  }
  show.text("fabric.kind", std::string(topology::to_string(fabric.kind)));
  if (fabric.kind == topology::FabricKind::kCustom) {
    show.count("fabric.cables", static_cast<std::int64_t>(fabric.cables.size()));
    return;
  }
  const std::string routing = "derived: by nic.kind";
  show.count("fabric.unit_nodes", fabric.unit_nodes);
  show.text("fabric.pod_nodes", fabric.pod_nodes == 0 ? "all" : std::to_string(fabric.pod_nodes));
  show.text("fabric.oversubscription", "[" + config::number_text(fabric.leaf_oversubscription) + ", " +
                                           config::number_text(fabric.spine_oversubscription) + "]");
  show.text("fabric.routing", std::string(topology::to_string(fabric.routing)), routing);
  show.count("fabric.qps_per_connection", fabric.queue_pairs, routing);
  show.text("fabric.routing_efficiency", config::number_text(fabric.routing_efficiency),
            "derived: by routing and queue pairs");
  show.quantity("fabric.hop_latency", fabric.hop_latency.seconds(), Dimension::kTime);
}

}  // namespace

void lay_cluster(ScenarioDraft& draft, Node& root) {
  Node* own = root.find("cluster");
  if (own == nullptr) return;
  if (own->kind == Node::Kind::kScalar) {
    Node wrapped = config::make_map(own->where);
    wrapped.set("base", *own);
    *own = std::move(wrapped);
  }
  if (own->kind != Node::Kind::kMap) return;  // the binder says what it should be
  const Node* base = own->find("base");
  if (base == nullptr || base->kind != Node::Kind::kScalar) return;
  const Location where{base->where.file, base->where.line, "cluster.base"};
  const std::string beside = where.line > 0 ? where.file : "";
  Node tree = cluster_tree(base->text, beside, draft.source.search, where);
  refuse_unused_figures(draft, tree, *own);
  drop_stale_efficiency(tree, *own);
  drop_stale_visible_memory(tree, *own);
  config::merge(tree, *own, *topology::proto::Cluster::descriptor());
  tree.where = own->where;
  *own = std::move(tree);
  draft.cluster_is_whole = true;
}

void resolve_cluster(ScenarioDraft& draft) {
  const auto locate = [&](const std::string& field) { return draft.locate("cluster." + field); };
  draft.read.scenario.cluster = topology::cluster_of(draft.message.cluster(), locate);
  const topology::Cluster& cluster = draft.read.scenario.cluster;
  if (draft.message.cluster().has_base()) draft.record("cluster.base", draft.message.cluster().base(), "");
  Recorder show(draft);
  show.text("name", config::printable(cluster.name));
  record_node(show, cluster.node);
  record_fabric(show, cluster.fabric);
}

// What is wrong with the network has a field of the cluster, or none: then it is a perturbation's doing. Hierarchical
// fabrics add up whatever their size; only damages can be wrong there.
void judge_network(ScenarioDraft& draft) {
  const topology::Cluster& cluster = draft.read.scenario.cluster;
  try {
    if (cluster.fabric.kind == topology::FabricKind::kCustom) {
      const topology::Network network(cluster);
    } else if (!cluster.overrides.empty()) {
      const topology::FabricLayout layout(cluster);
    }
  } catch (const Error& fault) {
    for (Problem problem : fault.problems()) {
      const std::string& field = problem.where.field;
      problem.where = draft.locate(field.empty() ? "perturb" : "cluster." + field);
      draft.problems.add(std::move(problem));
    }
  }
}

}  // namespace stepcast::plan
