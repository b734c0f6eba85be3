// The nodes of the job: which they are and in which order ranks fill them, node by node. A job has the cluster's nodes
// in order, the same nodes in a seeded random order (a scheduler without knowledge of the fabric), or those of a file.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "config/search.h"
#include "config/text.h"
#include "plan/cluster_reader.h"
#include "plan/scenario_draft.h"

namespace stepcast::plan {
namespace {

using Nodes = std::vector<std::int64_t>;

std::string_view trimmed(std::string_view line) {
  line = line.substr(0, line.find('#'));
  const std::size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

class PlacementResolver {
 public:
  explicit PlacementResolver(ScenarioDraft& draft)
      : draft_(draft),
        given_(draft.message.placement()),
        scenario_(draft.read.scenario),
        per_node_(scenario_.cluster.node.devices),
        needed_(nodes_for(scenario_.cluster, scenario_.gpus)),
        excluded_(given_.exclude().begin(), given_.exclude().end()) {
    std::sort(excluded_.begin(), excluded_.end());
  }

  void run() {
    const std::string kind = given_.has_nodes() ? given_.nodes() : "contiguous";
    const bool is_file = kind.find_first_of("/.") != std::string::npos;
    draft_.record("placement.nodes", config::printable(kind), "default");
    if (given_.has_seed()) {
      draft_.record("placement.seed", std::to_string(given_.seed()), "default");
      if (kind != "scattered") draft_.read.warnings.push_back("placement.seed has no effect with nodes " + kind);
    }
    if (!excluded_.empty()) draft_.record("placement.exclude", numbers(excluded_), "");
    if (kind != "contiguous" && kind != "scattered" && !is_file) {
      draft_.refuse("placement.nodes", "\"" + config::printable(kind) + "\" is not a value of this field",
                    {"contiguous, scattered, or the path of a file with one node number a line"});
      return;
    }
    Nodes nodes = is_file ? nodes_of_file(kind) : first_nodes();
    if (static_cast<std::int64_t>(nodes.size()) < needed_) return;  // said already
    nodes.resize(static_cast<std::size_t>(needed_));
    const std::int64_t highest = *std::max_element(nodes.begin(), nodes.end());
    if ((highest + 1) * per_node_ > kMostDevices) {
      draft_.refuse("placement.nodes", "node " + std::to_string(highest) + " of " + std::to_string(per_node_) +
                                           " devices is beyond the 2^24 devices of a cluster");
      return;
    }
    scenario_.cluster.nodes = static_cast<std::int32_t>(highest + 1);
    if (kind == "scattered") shuffle(nodes);
    if (is_file || kind == "scattered" || !excluded_.empty()) place(nodes);
  }

 private:
  static std::string numbers(const Nodes& nodes) {
    std::vector<std::string> texts;
    for (const std::int64_t n : nodes) texts.push_back(std::to_string(n));
    return "[" + config::join(texts) + "]";
  }

  bool excluded(std::int64_t node) const { return std::binary_search(excluded_.begin(), excluded_.end(), node); }

  Nodes first_nodes() const {
    Nodes nodes;
    for (std::int64_t n = 0; static_cast<std::int64_t>(nodes.size()) < needed_; ++n) {
      if (!excluded(n)) nodes.push_back(n);
    }
    return nodes;
  }

  Nodes nodes_of_file(const std::string& name) {
    const Location where = draft_.locate("placement.nodes");
    std::filesystem::path path(name);
    if (path.is_relative() && where.line > 0) path = std::filesystem::path(where.file).parent_path() / path;
    const std::string text = config::read_file(path.string(), where);
    const std::string file = config::printable(path.string(), 200);
    Nodes nodes;
    ProblemList problems;
    std::size_t start = 0;
    for (int line = 1; start < text.size(); ++line) {
      const std::size_t end = std::min(text.find('\n', start), text.size());
      const std::string_view word = trimmed(std::string_view(text).substr(start, end - start));
      start = end + 1;
      if (word.empty()) continue;
      const auto node = config::parse_integer(word);
      if (!node || *node < 0 || *node >= kMostDevices) {
        problems.add(ErrorKind::kInput, "\"" + config::printable(word) + "\" is not a node number", {file, line, ""},
                     {"one number from 0 a line; # starts a comment"});
        break;
      }
      if (!excluded(*node)) nodes.push_back(*node);
    }
    problems.throw_if_any();
    Nodes sorted = nodes;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) {
      throw Error(ErrorKind::kInput, "names node " + std::to_string(*twice) + " twice", {file, 0, "placement.nodes"});
    }
    if (static_cast<std::int64_t>(nodes.size()) < needed_) {
      draft_.refuse("placement.nodes", file + " names " + std::to_string(nodes.size()) + " nodes, " +
                                           std::to_string(scenario_.gpus) + " GPUs need " + std::to_string(needed_));
    }
    return nodes;
  }

  // Fisher and Yates.
  void shuffle(Nodes& nodes) const {
    const RandomStream random(static_cast<std::uint64_t>(given_.seed()), "placement");
    for (std::size_t i = nodes.size(); i > 1; --i) std::swap(nodes[i - 1], nodes[random.integer_at(i, i)]);
  }

  void place(const Nodes& nodes) {
    scenario_.placement.reserve(static_cast<std::size_t>(scenario_.gpus));
    for (std::int64_t rank = 0; rank < scenario_.gpus; ++rank) {
      const std::int64_t node = nodes[static_cast<std::size_t>(rank / per_node_)];
      scenario_.placement.push_back(static_cast<std::int32_t>(node * per_node_ + rank % per_node_));
    }
  }

  ScenarioDraft& draft_;
  const schema::Placement& given_;
  Scenario& scenario_;
  std::int64_t per_node_;
  std::int64_t needed_;
  Nodes excluded_;
};

}  // namespace

void resolve_placement(ScenarioDraft& draft) {
  if (draft.read.scenario.gpus < 1) return;  // said already
  PlacementResolver(draft).run();
}

}  // namespace stepcast::plan
