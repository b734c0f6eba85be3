// Words for topology::Cluster. A part that follows from the others, or has no influence, is left out.
#include "report/cluster_text.h"

#include <fmt/format.h>

#include <set>

#include "base/quantity.h"
#include "report/text.h"

namespace stepcast::report {
namespace {

std::string_view kind_text(topology::NicKind kind) {
  switch (kind) {
    case topology::NicKind::kIb:
      return "IB";
    case topology::NicKind::kRoce:
      return "RoCE";
    case topology::NicKind::kEfa:
      return "EFA";
  }
  return "";
}

std::string ratio_text(double oversubscription) { return fmt::format("{:g}:1", oversubscription); }

std::string nic_text(const topology::NodeSpec& node) {
  const double nics = node.nic.per_device * node.devices;
  return fmt::format("{:g} x {:g} Gb/s {}", nics, node.nic.rate.value * 8 * 1e-9, kind_text(node.nic.kind));
}

// Units, pods and what is oversubscribed.
std::vector<std::string> layout_words(const topology::Cluster& c) {
  const topology::FabricSpec& f = c.fabric;
  if (f.kind == topology::FabricKind::kCustom) {
    return {"fabric of its own: " + format_count(static_cast<std::int64_t>(f.cables.size())) + " cables"};
  }
  std::vector<std::string> words = {f.kind == topology::FabricKind::kRail ? "rails" : "fat tree"};
  const bool several_units = c.nodes > f.unit_nodes;
  const bool several_pods = f.pod_nodes > 0 && c.nodes > f.pod_nodes;
  words.push_back(fmt::format("units of {} node{}", f.unit_nodes, f.unit_nodes == 1 ? "" : "s"));
  if (f.pod_nodes > 0) words.push_back("pods of " + format_count(f.pod_nodes));
  if (several_units && f.leaf_oversubscription != 1) words.push_back("leaves " + ratio_text(f.leaf_oversubscription));
  if (several_units && (several_pods || f.pod_nodes == 0) && f.spine_oversubscription != 1) {
    words.push_back((f.pod_nodes > 0 ? "core " : "spine ") + ratio_text(f.spine_oversubscription));
  }
  return words;
}

std::string_view routing_name(topology::Routing routing) {
  switch (routing) {
    case topology::Routing::kAdaptive:
      return "adaptive";
    case topology::Routing::kEnhancedEcmp:
      return "e-ecmp";
    case topology::Routing::kEcmp:
      return "ecmp";
    case topology::Routing::kStatic:
      return "static";
  }
  return "";
}

}  // namespace

std::string routing_text(const topology::FabricSpec& fabric) {
  std::string text(routing_name(fabric.routing));
  if (fabric.routing == topology::Routing::kEnhancedEcmp) {
    text += fmt::format(" with {} queue pair{}", fabric.queue_pairs, fabric.queue_pairs == 1 ? "" : "s");
  }
  return text;
}

std::string tier_text(const std::string& tier, const topology::FabricSpec& fabric) {
  // Uplinks of leaves carry what crosses units, those of spines, of a pod as a whole, what crosses pods.
  const bool pods = fabric.pod_nodes > 0;
  double oversubscription = 1;
  if (tier == "spine") oversubscription = fabric.leaf_oversubscription * (pods ? 1 : fabric.spine_oversubscription);
  if (tier == "core") oversubscription = fabric.leaf_oversubscription * fabric.spine_oversubscription;
  return oversubscription == 1 ? tier : tier + " " + ratio_text(oversubscription);
}

std::string cluster_text(const plan::Scenario& s) {
  const topology::Cluster& c = s.cluster;
  const topology::NodeSpec& node = c.node;
  std::vector<std::string> parts = {fmt::format("{} x {}", format_count(c.nodes), node.name)};
  parts.push_back(fmt::format("{} x {}", node.devices, node.device.name));
  if (node.scale_up.domain > 1) {
    parts.back() +=
        fmt::format(" at {} scale-up", format_quantity(node.scale_up.bandwidth.value, Dimension::kByteRate));
    if (node.scale_up.domain != node.devices) parts.back() += fmt::format(" in domains of {}", node.scale_up.domain);
  }
  if (c.nodes > 1 && node.nic.rate.value > 0) parts.push_back(nic_text(node));
  if (c.nodes > 1 && c.fabric.kind != topology::FabricKind::kNone) {
    for (std::string& word : layout_words(c)) parts.push_back(std::move(word));
    parts.emplace_back(routing_name(c.fabric.routing));
  }
  std::string text = joined(parts, ", ");
  if (s.gpus != c.devices())
    text += fmt::format("; {} of {} devices used", format_count(s.gpus), format_count(c.devices()));
  std::set<std::int32_t> changed;
  for (const topology::DeviceOverride& change : c.overrides) changed.insert(change.device);
  if (!changed.empty()) {
    text += fmt::format("; {} device{} perturbed", format_count(static_cast<std::int64_t>(changed.size())),
                        changed.size() == 1 ? "" : "s");
  }
  return text;
}

}  // namespace stepcast::report
