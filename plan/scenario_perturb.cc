// Perturbations: each names ranks, a node, a pipeline stage or a group, and what is unlike the cluster's spec there.
// They become overrides of devices, one per device touched.
//
// NICs are kept one by one until the end, so that damages of several NICs of a device add up as they would on the wire:
// a device with one of its four NICs down has three quarters of their rate. A NIC that devices share slows all of them.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "config/text.h"
#include "plan/lowering.h"
#include "plan/scenario_draft.h"
#include "topology/mesh.h"

namespace stepcast::plan {
namespace {

using Devices = std::vector<std::int32_t>;

struct GroupName {
  std::vector<std::string> axes;
  std::int64_t index = 0;
};

// "dp:3". The roles are those of lowered Programs.
std::optional<GroupName> parse_group(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto index = config::parse_integer(std::string_view(text).substr(colon + 1));
  if (!index || *index < 0) return std::nullopt;
  const std::string role = text.substr(0, colon);
  if (role == "tp" || role == "dp" || role == "pp") return GroupName{{role}, *index};
  if (role == "model") return GroupName{{"tp", "pp"}, *index};
  if (role == "world") return GroupName{{"tp", "dp", "pp"}, *index};
  return std::nullopt;
}

Location item_at(const ScenarioDraft& draft, int index, const char* key) {
  const auto i = static_cast<std::size_t>(index);
  Location where = i < draft.perturbations_at.size() ? draft.perturbations_at[i] : draft.locate("perturb");
  where.field = "perturb[" + std::to_string(index) + "]" + key;
  return where;
}

void judge(ScenarioDraft& draft, const schema::Perturbation& p, int index) {
  const auto refuse = [&](const char* key, std::string message, std::vector<std::string> help) {
    draft.problems.add(ErrorKind::kInput, std::move(message), item_at(draft, index, key), std::move(help));
  };
  // A value that was refused is missing here, but it was given.
  const bool refused_value =
      std::any_of(draft.problems.problems().begin(), draft.problems.problems().end(), [&](const Problem& known) {
        return known.kind == ErrorKind::kInput && known.where.field.starts_with(item_at(draft, index, ".").field);
      });
  const int targets = int{p.has_rank()} + int{p.has_node()} + int{p.has_stage()} + int{p.has_group()};
  if (targets > 1 || (targets == 0 && !refused_value)) {
    refuse("", targets == 0 ? "names no target" : "names " + std::to_string(targets) + " targets",
           {"give one of rank, node, stage and group"});
  }
  if (p.has_group() && !parse_group(p.group())) {
    refuse(".group", "\"" + config::printable(p.group()) + "\" is not a group",
           {"a role and a number from 0, such as dp:3; roles: tp, dp, pp, model, world"});
  }
  const bool effect = p.has_compute() || p.has_hbm() || p.has_bandwidth() || p.has_latency() || p.down();
  if (!effect && !refused_value) {
    refuse("", "changes nothing", {"give at least one of compute, hbm, bandwidth, latency and down: true"});
  }
  if (p.has_nic() && !p.has_node()) {
    refuse(".nic", "nic counts the NICs of a node", {"give node, or leave nic out for all NICs of the target"});
  }
  if (p.has_nic() && !p.has_bandwidth() && !p.down()) {
    refuse(".nic", "a NIC is named, but neither bandwidth nor down", {"bandwidth: 0.5, or down: true"});
  }
  if (p.has_bandwidth() && p.down()) refuse(".down", "the NICs are down and have a bandwidth", {"give one of the two"});
}

class Perturber {
 public:
  explicit Perturber(ScenarioDraft& draft)
      : draft_(draft), scenario_(draft.read.scenario), mesh_(mesh_of(scenario_)), spec_(scenario_.cluster.node) {
    if (spec_.nic.rate.value <= 0) return;
    nics_per_node_ = std::max<std::int64_t>(1, std::llround(spec_.devices * spec_.nic.per_device));
  }

  void run() {
    const auto& items = draft_.message.perturb();
    for (int i = 0; i < items.size(); ++i) apply(items.Get(i), i);
    take_nics();
    auto& overrides = scenario_.cluster.overrides;
    const std::set<std::int32_t> nodes = nodes_of_job();
    for (const auto& [device, change] : changes_) {
      if (nodes.contains(device / spec_.devices)) overrides.push_back(change);
    }
  }

 private:
  // What is wrong with the others slows no one.
  std::set<std::int32_t> nodes_of_job() const {
    std::set<std::int32_t> nodes;
    for (std::int64_t r = 0; r < scenario_.gpus; ++r) nodes.insert(scenario_.device_of(r) / spec_.devices);
    return nodes;
  }

  void refuse(int index, const char* key, std::string message, std::vector<std::string> help = {}) {
    draft_.problems.add(ErrorKind::kInput, std::move(message), item_at(draft_, index, key), std::move(help));
  }

  bool within(int index, const char* key, const std::string& what, std::int64_t value, std::int64_t count) {
    if (value < count) return true;
    refuse(index, key, what + " " + std::to_string(value) + " of " + std::to_string(count),
           {"numbers count from 0: at most " + std::to_string(count - 1)});
    return false;
  }

  // Empty after a target that does not exist.
  Devices devices_of(const schema::Perturbation& p, int index) {
    Devices devices;
    const std::int32_t per_node = spec_.devices;
    if (p.has_rank() && within(index, ".rank", "rank", p.rank(), scenario_.gpus))
      devices = {scenario_.device_of(p.rank())};
    if (p.has_node() && within(index, ".node", "node", p.node(), scenario_.cluster.nodes)) {
      const auto first = static_cast<std::int32_t>(p.node()) * per_node;
      for (std::int32_t d = first; d < first + per_node; ++d) devices.push_back(d);
    }
    if (p.has_stage() && within(index, ".stage", "stage", p.stage(), scenario_.plan.pp)) {
      for (std::int64_t r = 0; r < scenario_.gpus; ++r) {
        if (mesh_.coordinate(r, "pp") == p.stage()) devices.push_back(scenario_.device_of(r));
      }
    }
    if (p.has_group()) {
      const GroupName name = *parse_group(p.group());
      const topology::MeshGroups groups = mesh_.flat_groups(name.axes);
      const auto count = static_cast<std::int64_t>(groups.count());
      if (within(index, ".group", "group", name.index, count)) {
        for (const std::int32_t r : groups[static_cast<std::size_t>(name.index)])
          devices.push_back(scenario_.device_of(r));
      }
    }
    return devices;
  }

  void apply(const schema::Perturbation& p, int index) {
    const Devices devices = devices_of(p, index);
    const bool of_devices = p.has_compute() || p.has_hbm() || p.has_latency();
    for (const std::int32_t d : of_devices ? devices : Devices()) {
      topology::DeviceOverride& change = changes_.try_emplace(d, topology::DeviceOverride{.device = d}).first->second;
      if (p.has_compute()) change.compute_time *= p.compute();
      if (p.has_hbm()) change.memory_bandwidth *= p.hbm();
      if (p.has_latency()) change.latency += Duration::from_seconds(p.latency());
    }
    if (!devices.empty() && (p.has_bandwidth() || p.down())) apply_nics(p, index, devices);
  }

  // NICs are numbered node by node.
  void apply_nics(const schema::Perturbation& p, int index, const Devices& devices) {
    if (nics_per_node_ == 0) {
      refuse(index, p.down() ? ".down" : ".bandwidth", config::printable(scenario_.cluster.name) + " has no NICs");
      return;
    }
    std::vector<std::int64_t> nics;
    if (p.has_nic()) {
      if (!within(index, ".nic", "NIC", p.nic(), nics_per_node_)) return;
      nics = {p.node() * nics_per_node_ + p.nic()};
    } else {
      for (const std::int32_t d : devices) {
        const auto [first, last] = nics_of(d);
        for (std::int64_t n = first; n < last; ++n) nics.push_back(n);
      }
      std::sort(nics.begin(), nics.end());
      nics.erase(std::unique(nics.begin(), nics.end()), nics.end());
    }
    for (const std::int64_t n : nics) shares_.try_emplace(n, 1.0).first->second *= p.down() ? 0.0 : p.bandwidth();
  }

  std::pair<std::int64_t, std::int64_t> nics_of(std::int32_t device) const {
    const std::int64_t first = device / spec_.devices * nics_per_node_;
    const std::int64_t place = device % spec_.devices;
    const std::int64_t own = std::max<std::int64_t>(1, nics_per_node_ / spec_.devices);
    const std::int64_t begin = first + place * nics_per_node_ / spec_.devices;
    return {begin, begin + own};
  }

  // A device has the mean of its NICs' shares.
  void take_nics() {
    for (const auto& [nic, share] : shares_) {
      const auto node = static_cast<std::int32_t>(nic / nics_per_node_);
      for (std::int32_t d = node * spec_.devices; d < (node + 1) * spec_.devices; ++d) {
        const auto [first, last] = nics_of(d);
        if (nic < first || nic >= last) continue;
        topology::DeviceOverride& change = changes_.try_emplace(d, topology::DeviceOverride{.device = d}).first->second;
        double sum = 0;
        for (std::int64_t n = first; n < last; ++n) {
          const auto known = shares_.find(n);
          sum += known == shares_.end() ? 1.0 : known->second;
        }
        change.nic_down = sum == 0;
        change.nic_bandwidth = sum == 0 ? 1.0 : sum / static_cast<double>(last - first);
      }
    }
  }

  ScenarioDraft& draft_;
  Scenario& scenario_;
  topology::DeviceMesh mesh_;
  const topology::NodeSpec& spec_;
  std::int64_t nics_per_node_ = 0;  // 0: none
  std::map<std::int32_t, topology::DeviceOverride> changes_;
  std::map<std::int64_t, double> shares_;  // of its rate that a NIC has; 0: down
};

}  // namespace

void judge_perturbations(ScenarioDraft& draft) {
  const auto& items = draft.message.perturb();
  for (int i = 0; i < items.size(); ++i) judge(draft, items.Get(i), i);
  if (items.empty()) return;
  for (const config::BoundValue& value : draft.bound) {
    if (value.field == "perturb") draft.record("perturb", config::printable(value.value, 200), "");
  }
}

void apply_perturbations(ScenarioDraft& draft) {
  if (!draft.message.perturb().empty()) Perturber(draft).run();
}

}  // namespace stepcast::plan
