// Cluster files by name, their bases, and how many of their nodes a job can use.
#include "plan/cluster_reader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "config/bind.h"
#include "config/text.h"
#include "topology/cluster.pb.h"
#include "topology/cluster_reader.h"

namespace stepcast::plan {
namespace {

constexpr int kMaxBases = 8;

config::Node tree_over_bases(const std::string& name, const std::string& beside, const config::SearchPath& search,
                             const Location& where, int depth) {
  if (depth > kMaxBases) throw Error(ErrorKind::kInput, "cluster files base on one another without end", where);
  const config::FoundFile found = config::find_file(config::PresetKind::kCluster, name, beside, search, where);
  config::Node tree = config::parse_document(found.text, found.file);
  if (tree.kind != config::Node::Kind::kMap) {
    throw Error(ErrorKind::kInput, "expected a struct of fields", {found.file, tree.where.line, ""});
  }
  if (tree.find("name") == nullptr) tree.set("name", config::make_scalar(found.name, Location{found.file, 0, ""}));
  const config::Node* base = tree.find("base");
  if (base == nullptr) return tree;
  const Location named_at{found.file, base->where.line, "base"};
  if (base->kind != config::Node::Kind::kScalar) {
    throw Error(ErrorKind::kInput, "expected a name or a path", named_at);
  }
  config::Node under = tree_over_bases(base->text, found.file, search, named_at, depth + 1);
  tree.erase("base");
  config::merge(under, tree, *topology::proto::Cluster::descriptor());
  return under;
}

}  // namespace

config::Node cluster_tree(const std::string& name, const std::string& beside, const config::SearchPath& search,
                          const Location& where) {
  return tree_over_bases(name, beside, search, where, 0);
}

topology::Cluster load_cluster(const std::string& name, const config::SearchPath& search, std::int64_t devices) {
  CHECK(devices >= 1, devices);
  const Location where{"command line", 0, "cluster"};
  if (devices > kMostDevices) {
    throw Error(ErrorKind::kInput, std::to_string(devices) + " GPUs are more than 2^24", where);
  }
  const config::Node tree = cluster_tree(name, "", search, where);
  topology::proto::Cluster message;
  ProblemList problems;
  std::vector<config::BoundValue> bound;
  config::bind(tree, message, problems, bound);
  problems.throw_if_any();
  topology::Cluster cluster = topology::cluster_of(message, [&](const std::string& field) {
    const auto at =
        std::find_if(bound.begin(), bound.end(), [&](const config::BoundValue& v) { return v.field == field; });
    return at == bound.end() ? Location{tree.where.file, 0, field} : at->where;
  });
  if (devices > most_devices(cluster)) throw Error({no_network_problem(cluster, devices, where)});
  cluster.nodes = static_cast<std::int32_t>(nodes_for(cluster, devices));
  return cluster;
}

std::int64_t nodes_for(const topology::Cluster& cluster, std::int64_t devices) {
  const std::int64_t per_node = cluster.node.devices;
  return (devices + per_node - 1) / per_node;
}

std::int64_t most_devices(const topology::Cluster& cluster) {
  if (cluster.fabric.kind != topology::FabricKind::kNone) return kMostDevices;
  return cluster.node.devices_without_network();
}

Problem no_network_problem(const topology::Cluster& cluster, std::int64_t devices, Location where) {
  const std::string nodes = std::to_string(nodes_for(cluster, devices)) + " nodes of the " +
                            std::to_string(cluster.node.devices) + " devices of " + config::printable(cluster.name);
  return Problem{ErrorKind::kInput,
                 "gpus " + std::to_string(devices) + " are " + nodes + ", which has no network between nodes",
                 std::move(where),
                 {"gpus of at most " + std::to_string(most_devices(cluster)),
                  "a cluster with a fabric, such as hgx-h100-ndr400-rail, or keys cluster.nic and cluster.fabric"}};
}

}  // namespace stepcast::plan
