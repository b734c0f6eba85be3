// A figure's source stands in the `sources` of the file that states the figure: a file that is based on another repeats
// neither.
#include "report/hardware_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/quantity.h"
#include "config/document.h"
#include "config/text.h"
#include "plan/cluster_reader.h"

namespace stepcast::report {
namespace {

using config::Node;

struct Quantity {
  std::string_view field;
  Dimension dimension;
  std::string_view unit;
};

constexpr Quantity kQuantities[] = {
    {"gpu.peak_bf16", Dimension::kFlopRate, "FLOP/s"},
    {"gpu.peak_fp32", Dimension::kFlopRate, "FLOP/s"},
    {"gpu.peak_fp8", Dimension::kFlopRate, "FLOP/s"},
    {"gpu.peak_fp4", Dimension::kFlopRate, "FLOP/s"},
    {"gpu.memory", Dimension::kBytes, "B"},
    {"gpu.memory_visible", Dimension::kBytes, "B"},
    {"gpu.hbm_bandwidth", Dimension::kByteRate, "B/s"},
    {"gpu.power_limit", Dimension::kPower, "W"},
    {"gpu.clock", Dimension::kFrequency, "Hz"},
    {"scale_up.bandwidth", Dimension::kByteRate, "B/s"},
    {"host.pcie", Dimension::kByteRate, "B/s"},
    {"host.c2c", Dimension::kByteRate, "B/s"},
    {"host.nvme", Dimension::kByteRate, "B/s"},
    {"host.dram", Dimension::kBytes, "B"},
    {"nic.rate", Dimension::kByteRate, "B/s"},
    {"nic.latency", Dimension::kTime, "s"},
    {"fabric.hop_latency", Dimension::kTime, "s"},
};

// What names the cluster or its parts, rather than a figure of it.
constexpr std::string_view kNames[] = {"schema", "name", "base", "sources", "gpu.name", "gpu.kind"};

// A cluster file as it stands, without those it is based on.
struct Layer {
  std::string name;
  std::string file;
  Node tree;
};

// The file of a cluster and those below it. Their form was judged by plan::load_cluster.
std::vector<Layer> layers_of(const std::string& name, const config::SearchPath& search) {
  std::vector<Layer> layers;
  std::string next = name;
  while (!next.empty()) {
    const std::string beside = layers.empty() ? "" : layers.back().file;
    const config::FoundFile found = config::find_file(config::PresetKind::kCluster, next, beside, search, {});
    layers.push_back({found.name, found.file, config::parse_document(found.text, found.file)});
    const Node* base = layers.back().tree.find("base");
    next = base == nullptr ? "" : base->text;
  }
  return layers;
}

std::string source_in(const Layer& layer, const std::string& field) {
  const Node* sources = layer.tree.find("sources");
  if (sources == nullptr) return "";
  for (const Node& line : sources->children) {
    if (!line.text.starts_with(field + " ")) continue;
    const std::size_t colon = line.text.find(": ");
    if (colon != std::string::npos) return line.text.substr(colon + 2);
  }
  return "";
}

void add_number(HardwareFigure& figure) {
  const auto quantity = std::find_if(std::begin(kQuantities), std::end(kQuantities),
                                     [&](const Quantity& q) { return q.field == figure.field; });
  if (quantity == std::end(kQuantities)) {
    figure.number = config::parse_number(figure.text);
    return;
  }
  figure.number = parse_quantity(figure.text, quantity->dimension).value;
  figure.unit = quantity->unit;
}

// The leaves of the whole cluster's tree that `layer` states.
void append_figures(const Node& node, const std::string& path, const Layer& layer,
                    std::vector<HardwareFigure>& figures) {
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const std::string field = path.empty() ? node.keys[i] : path + "." + node.keys[i];
    const Node& value = node.children[i];
    if (std::find(std::begin(kNames), std::end(kNames), field) != std::end(kNames)) continue;
    if (value.kind == Node::Kind::kMap) {
      append_figures(value, field, layer, figures);
    } else if (value.where.file == layer.file) {
      HardwareFigure figure{field, config::flow_text(value), {}, "", source_in(layer, field), layer.name};
      add_number(figure);
      figures.push_back(std::move(figure));
    }
  }
}

// What the reader fills in where no file states it, and results depend on.
void append_derived(const topology::Cluster& cluster, std::vector<HardwareFigure>& figures) {
  const auto add = [&](const char* field, double value, const char* how) {
    const bool stated =
        std::any_of(figures.begin(), figures.end(), [&](const HardwareFigure& f) { return f.field == field; });
    if (!stated) figures.push_back({field, fmt::format("{:.4g}", value), value, "", how, "derived"});
  };
  add("scale_up.domain", cluster.node.scale_up.domain, "all devices of a node");
  if (cluster.fabric.kind == topology::FabricKind::kNone || cluster.fabric.kind == topology::FabricKind::kCustom)
    return;
  add("fabric.routing_efficiency", cluster.fabric.routing_efficiency,
      "share of the rate that routing fills above the leaves, from fabric.routing and fabric.qps_per_connection as "
      "topology/routing.h says");
}

}  // namespace

HardwareEntry read_hardware(const std::string& name, const config::SearchPath& search) {
  HardwareEntry entry;
  entry.cluster = plan::load_cluster(name, search, 1);
  const Node tree = plan::cluster_tree(name, "", search, {});
  for (const Layer& layer : layers_of(name, search)) {
    entry.files.push_back(layer.name);
    append_figures(tree, "", layer, entry.figures);
  }
  append_derived(entry.cluster, entry.figures);
  entry.name = entry.files.front();
  return entry;
}

HardwareList read_all_hardware(const config::SearchPath& search) {
  HardwareList list;
  for (const std::string& name : config::preset_names(config::PresetKind::kCluster, search)) {
    try {
      list.entries.push_back(read_hardware(name, search));
    } catch (const Error& error) {
      list.unreadable.push_back({name, error.problems().front().message});
    }
  }
  return list;
}

}  // namespace stepcast::report
