// Clusters by name: the tree of a cluster file over those it is based on, for the scenario reader to lay its own keys
// over, and a whole cluster for commands that need no scenario.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "config/document.h"
#include "config/search.h"
#include "topology/cluster.h"

namespace stepcast::plan {

// The keys of cluster file `name` (a preset or a path, relative to the folder of `beside`) over those of its bases;
// every value keeps its own file and line. `where` is who names it. Throws Error (kInput).
config::Node cluster_tree(const std::string& name, const std::string& beside, const config::SearchPath& search,
                          const Location& where);

// As many nodes of the cluster as hold `devices` devices (at least 1). Throws Error (kInput): no such cluster, what is
// wrong in its file, several nodes without a network between them, more than kMostDevices.
topology::Cluster load_cluster(const std::string& name, const config::SearchPath& search, std::int64_t devices);

inline constexpr std::int64_t kMostDevices = std::int64_t{1} << 24;

// ceil(devices / devices of a node).
std::int64_t nodes_for(const topology::Cluster& cluster, std::int64_t devices);
// The most devices that reach each other: all there may be with a fabric; else a node, or a scale-up domain of several.
std::int64_t most_devices(const topology::Cluster& cluster);
// "which has no network between nodes" and what would give one, for a job on more than most_devices().
Problem no_network_problem(const topology::Cluster& cluster, std::int64_t devices, Location where);

}  // namespace stepcast::plan
