// The cluster of a scenario: a preset or file by name or path.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/quantity.h"
#include "config/bind.h"
#include "config/document.h"
#include "config/text.h"
#include "plan/scenario_draft.h"
#include "topology/cluster.pb.h"
#include "topology/cluster_reader.h"

namespace stepcast::plan {
namespace {

// NODE-FABRIC presets that come with their fabrics: known by name, so that scenarios which use them stay valid.
constexpr std::array<std::string_view, 3> kAwaitFabrics = {"hgx-h100-roce400-rail", "hgx-h100-ndr400-rail",
                                                           "gb200-nvl72"};
constexpr int kMaxBases = 8;

// The tree of a cluster file over those it is based on.
config::Node load_cluster(ScenarioDraft& draft, const std::string& name, const std::string& beside,
                          const Location& where, int depth) {
  if (depth > kMaxBases) throw Error(ErrorKind::kInput, "cluster files base on one another without end", where);
  const config::FoundFile found =
      config::find_file(config::PresetKind::kCluster, name, beside, draft.source.search, where);
  config::Node tree = config::parse_document(found.text, found.file);
  if (tree.kind != config::Node::Kind::kMap) {
    throw Error(ErrorKind::kInput, "expected a struct of fields", {found.file, tree.where.line, ""});
  }
  const Location file{found.file, 0, ""};
  if (tree.find("name") == nullptr) tree.set("name", config::make_scalar(found.name, file));
  const config::Node* base = tree.find("base");
  if (base == nullptr) return tree;
  if (base->kind != config::Node::Kind::kScalar) {
    throw Error(ErrorKind::kInput, "expected a name or a path", {found.file, base->where.line, "base"});
  }
  config::Node under =
      load_cluster(draft, base->text, found.file, Location{found.file, base->where.line, "base"}, depth + 1);
  tree.erase("base");
  config::merge(under, tree, *topology::proto::Cluster::descriptor());
  return under;
}

// The figures a result depends on most. Where they come from in turn is for `hardware` to say.
void record_figures(ScenarioDraft& draft, const std::string& origin) {
  const topology::Cluster& cluster = draft.read.scenario.cluster;
  const topology::NodeSpec& node = cluster.node;
  const topology::DeviceSpec& device = node.device;
  const auto quantity = [&](const char* key, double value, Dimension dimension) {
    draft.record(std::string("cluster.") + key, format_quantity(value, dimension, 4), origin);
  };
  draft.record("cluster.gpu.name", config::printable(device.name), origin);
  quantity("gpu.peak_bf16", device.peak_bf16.value, Dimension::kFlopRate);
  quantity("gpu.peak_fp32", device.peak_fp32.value, Dimension::kFlopRate);
  quantity("gpu.memory", static_cast<double>(device.memory.count), Dimension::kBytes);
  quantity("gpu.hbm_bandwidth", device.memory_bandwidth.value, Dimension::kByteRate);
  draft.record("cluster.gpus_per_node", std::to_string(node.devices), origin);
  quantity("scale_up.bandwidth", node.scale_up.bandwidth.value, Dimension::kByteRate);
  draft.record("cluster.scale_up.domain", std::to_string(node.scale_up.domain), origin);
}

}  // namespace

void resolve_cluster(ScenarioDraft& draft) {
  const schema::Cluster& given = draft.message.cluster();
  if (!given.has_base()) {
    draft.problems.add(ErrorKind::kInput, "missing required field", draft.locate("cluster.base"),
                       {"name a preset, such as hgx-h100 or local-cpu"});
    return;
  }
  const Location where = draft.locate("cluster.base");
  const std::string& name = given.base();
  const std::vector<std::string> names = config::preset_names(config::PresetKind::kCluster, draft.source.search);
  const bool awaited = std::find(kAwaitFabrics.begin(), kAwaitFabrics.end(), name) != kAwaitFabrics.end();
  if (awaited && std::find(names.begin(), names.end(), name) == names.end()) {
    draft.refuse("cluster.base", "cluster: " + name + " (a network between nodes)",
                 {"clusters of one node: " + config::join(names)}, ErrorKind::kUnsupported);
    return;
  }
  const std::string beside = where.line > 0 ? where.file : "";
  const config::Node tree = load_cluster(draft, name, beside, where, 0);

  topology::proto::Cluster message;
  ProblemList problems;
  std::vector<config::BoundValue> bound;
  config::bind(tree, message, problems, bound);
  problems.throw_if_any();
  const auto locate = [&](const std::string& field) {
    const auto at =
        std::find_if(bound.begin(), bound.end(), [&](const config::BoundValue& v) { return v.field == field; });
    return at == bound.end() ? Location{tree.where.file, 0, field} : at->where;
  };
  draft.read.scenario.cluster = topology::cluster_of(message, locate);
  draft.record("cluster.base", name, "");
  const bool preset = std::find(names.begin(), names.end(), name) != names.end();
  record_figures(draft, (preset ? "cluster preset " : "cluster file ") + config::printable(name));
}

}  // namespace stepcast::plan
