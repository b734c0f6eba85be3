#include "topology/fabric_ends.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace stepcast::topology {
namespace {

// Reads a number from the front of `text` and takes it off.
std::optional<std::int32_t> take_number(std::string_view& text) {
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || text.front() == '-') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool names_a_node(std::string_view name) {
  return name.size() > 4 && name.substr(0, 4) == "node" && name[4] >= '0' && name[4] <= '9';
}

// "node3" or "node3.nic2"; nothing when it is neither.
std::optional<Attachment> attachment_of(std::string_view name) {
  Attachment attachment;
  name.remove_prefix(4);
  const auto node = take_number(name);
  if (!node) return std::nullopt;
  attachment.node = *node;
  if (name.empty()) return attachment;
  if (name.substr(0, 4) != ".nic" || name.size() == 4) return std::nullopt;
  name.remove_prefix(4);
  const auto nic = take_number(name);
  if (!nic || !name.empty()) return std::nullopt;
  attachment.nic = *nic;
  return attachment;
}

class EndsReader {
 public:
  EndsReader(const Cluster& cluster, const FabricLayout& layout) : cables_(cluster.fabric.cables), layout_(layout) {}

  FabricEnds read() {
    for (std::size_t i = 0; i < cables_.size(); ++i) {
      find_end(i, ".a", cables_[i].a);
      find_end(i, ".b", cables_[i].b);
    }
    problems_.throw_if_any();
    FabricEnds ends;
    std::int32_t count = 0;
    for (auto& [name, vertex] : switches_) {
      vertex = count++;
      ends.switches.push_back(name);
    }
    for (auto& [key, vertex] : attachments_) {
      vertex = count++;
      ends.attachments.push_back({key.first, key.second});
    }
    add_cables(ends);
    problems_.throw_if_any();
    return ends;
  }

 private:
  void wrong(std::size_t cable, const char* end, const std::string& message, std::vector<std::string> help) {
    problems_.add(ErrorKind::kInput, message, {"", 0, "fabric.cables[" + std::to_string(cable) + "]" + end},
                  std::move(help));
  }

  void find_end(std::size_t cable, const char* end, const std::string& name) {
    if (!names_a_node(name)) {
      switches_.try_emplace(name, 0);
      return;
    }
    const auto found = attachment_of(name);
    if (!found) {
      wrong(cable, end, "a cable ends at \"" + name + "\"", {"write node3 for a node, node3.nic2 for one of its NICs"});
      return;
    }
    const std::int32_t nodes = layout_.devices / layout_.per_node.size;
    if (found->node >= nodes) {
      wrong(cable, end, "a cable ends at " + name + ", which does not exist",
            {"nodes are 0 to " + std::to_string(nodes - 1)});
    } else if (found->nic >= layout_.nics_per_node) {
      wrong(cable, end, "a cable ends at " + name + ", which does not exist",
            {"NICs of a node are 0 to " + std::to_string(layout_.nics_per_node - 1)});
    }
    attachments_.try_emplace(std::pair(found->node, found->nic), 0);
  }

  std::int32_t vertex_of(const std::string& name) const {
    if (!names_a_node(name)) return switches_.at(name);
    const Attachment end = *attachment_of(name);
    return attachments_.at(std::pair(end.node, end.nic));
  }

  void add_cables(FabricEnds& ends) {
    std::set<std::pair<std::int32_t, std::int32_t>> seen;
    for (std::size_t i = 0; i < cables_.size(); ++i) {
      const FabricCable cable = {vertex_of(cables_[i].a), vertex_of(cables_[i].b), static_cast<std::int32_t>(i)};
      const std::string text = cables_[i].a + " and " + cables_[i].b;
      if (cable.a == cable.b) {
        wrong(i, "", "a cable leads from " + cables_[i].a + " to itself", {"name two ends, or leave it out"});
      } else if (!seen.insert(std::minmax(cable.a, cable.b)).second) {
        wrong(i, "", "two cables between " + text, {"state one with their rates together"});
      }
      ends.cables.push_back(cable);
    }
  }

  const std::vector<CableSpec>& cables_;
  const FabricLayout& layout_;
  ProblemList problems_;
  std::map<std::string, std::int32_t> switches_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> attachments_;
};

}  // namespace

FabricEnds ends_of(const Cluster& cluster, const FabricLayout& layout) { return EndsReader(cluster, layout).read(); }

}  // namespace stepcast::topology
