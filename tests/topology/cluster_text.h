// A cluster from text, through the same binder as a scenario's cluster block.
#pragma once

#include <string>
#include <vector>

#include "config/bind.h"
#include "config/document.h"
#include "topology/cluster.pb.h"
#include "topology/cluster_reader.h"

namespace stepcast::topology::testing {

inline Cluster cluster_from(const config::Node& tree, const std::string& file) {
  proto::Cluster message;
  ProblemList problems;
  std::vector<config::BoundValue> values;
  config::bind(tree, message, problems, values);
  problems.throw_if_any();
  return cluster_of(message, [&](const std::string& field) { return Location{file, 0, field}; });
}

inline Cluster cluster_from(const std::string& text) {
  return cluster_from(config::parse_document(text, "c.yaml"), "c.yaml");
}

}  // namespace stepcast::topology::testing
