// The memory of the rank that needs the most: its tensors, and what its process holds beside them.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "plan/user_buffer_memory.h"
#include "report/simulation_parts.h"
#include "sim/cost/device_memory.h"

namespace stepcast::report {
namespace {

// What the caching allocator holds in pieces that fit nothing, of what is allocated: practitioners' reserves of 5 to 8
// % with expandable segments and 10 to 15 % without.
double fragmentation_of(plan::AllocatorKind allocator) {
  return allocator == plan::AllocatorKind::kExpandable ? 0.05 : 0.12;
}

// "F.m3.L12.qkv" -> "F.m*.L*.qkv".
std::string family_name(const std::string& name) {
  std::string family;
  bool in_number = false;
  for (const char c : name) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) family += c;
    if (digit && !in_number) family += '*';
    in_number = digit;
  }
  return family;
}

// Alive at the peak, largest first.
std::vector<TensorFamily> families_at_peak(const program::Program& p, const program::RankProgram& r,
                                           const program::Lifetimes& lifetimes) {
  std::map<std::pair<std::string, program::MemoryClass>, TensorFamily> families;
  for (const program::Lifetime& block : lifetimes.blocks) {
    if (!block.persistent && (block.first_op > lifetimes.peak_op || block.last_op < lifetimes.peak_op)) continue;
    std::string name;
    if (block.is_temp) {
      const program::Segment& segment = p.segments[r.calls[block.call].segment];
      name = segment.label + "." + segment.temps[block.temp].name;
    } else {
      name = r.buffers[block.buffer].name;
    }
    name = family_name(name);
    TensorFamily& family = families[{name, block.memory_class}];
    family.name = name;
    family.memory_class = block.memory_class;
    family.count += 1;
    family.bytes += block.bytes;
  }
  std::vector<TensorFamily> list;
  for (const auto& [key, family] : families) list.push_back(family);
  std::stable_sort(list.begin(), list.end(),
                   [](const TensorFamily& a, const TensorFamily& b) { return a.bytes > b.bytes; });
  return list;
}

void fill_tensors(MemoryReport& m, std::vector<TensorFamily> families) {
  constexpr std::size_t kListed = 8;
  constexpr std::string_view kSum = "gradients";  // the store's buffer
  std::copy_if(families.begin(), families.end(), std::back_inserter(m.other_gradients), [&](const TensorFamily& f) {
    return f.memory_class == program::MemoryClass::kGradients && f.name != kSum;
  });
  if (families.size() > kListed) families.resize(kListed);
  m.top_tensors = std::move(families);
}

// How the members of `group` lie about the rank: by scale-up domain, with no channels yet.
sim::CommunicatorUse members_about(const program::Program& p, program::RankId rank, program::GroupId group,
                                   std::int32_t domain) {
  const auto domain_of = [&](program::RankId member) { return p.ranks[member].device / domain; };
  sim::CommunicatorUse use{.domain_peers = 0};
  std::set<std::int32_t> domains;
  for (const program::RankId member : p.groups[group].members) {
    domains.insert(domain_of(member));
    if (domain_of(member) == domain_of(rank)) ++use.domain_peers;
  }
  use.domains = static_cast<std::int64_t>(domains.size());
  return use;
}

// What the communicators of a rank hold: by role and algorithm, as many channels as its largest kernel has.
std::int64_t communicator_total(const SimulationInputs& in, program::RankId rank) {
  const program::Program& p = in.program.program();
  const topology::NodeSpec& node = in.scenario.cluster.node;
  std::map<std::pair<program::RoleId, sim::Algorithm>, sim::CommunicatorUse> uses;
  for (const sim::CommunicationUse& use : in.prediction.communication) {
    const program::Memberships& own = p.ranks[rank].memberships;
    if (use.role.value >= own.size() || !own[use.role.value]) continue;
    const std::pair key(use.role, use.cost.algorithm);
    auto known = uses.find(key);
    if (known == uses.end()) {
      const program::GroupId group = own[use.role.value]->group;
      known = uses.emplace(key, members_about(p, rank, group, node.scale_up.domain)).first;
      known->second.algorithm = use.cost.algorithm;
    }
    known->second.channels =
        std::max(known->second.channels, use.cost.multiprocessors * node.device.multiprocessors / sim::kWhole);
  }
  std::int64_t bytes = 0;
  for (const auto& [key, use] : uses) bytes += sim::communicator_bytes(use).count;
  return bytes;
}

Verdict verdict_of(const MemoryReport& memory, const plan::Scenario& s) {
  const std::int64_t left = memory.capacity_bytes - memory.device_bytes;
  if (left < 0) return Verdict::kOom;
  return left < tight_below(memory.capacity_bytes, s.memory_reserve) ? Verdict::kTight : Verdict::kFits;
}

}  // namespace

void fill_memory(SimulationReport& r, const SimulationInputs& in) {
  const auto& classes = in.prediction.classes;
  const auto worst = std::max_element(classes.begin(), classes.end(),
                                      [](const auto& a, const auto& b) { return a.lifetimes.peak < b.lifetimes.peak; });
  CHECK(worst != classes.end());
  const program::Program& p = in.program.program();
  const program::RankProgramId id = p.ranks[worst->representative].program;
  const program::Resolution& resolution = in.program.resolution(id);
  const topology::DeviceSpec& device = in.scenario.cluster.node.device;
  MemoryReport& m = r.memory;
  m.allocated_bytes = worst->lifetimes.peak;
  m.capacity_bytes = topology::usable_memory(device).count;
  if (device.kind == topology::DeviceKind::kGpu) {
    m.fragmentation = fragmentation_of(in.scenario.allocator);
    m.communicator_bytes = communicator_total(in, worst->representative);
    m.user_buffer_bytes = plan::user_buffer_bytes(in.scenario);
  }
  m.reserved_bytes =
      m.allocated_bytes + static_cast<std::int64_t>(m.fragmentation * static_cast<double>(m.allocated_bytes));
  m.context_bytes = sim::context_bytes(device).count;
  const bool user_buffers = in.scenario.plan.overlap_tp_comm;
  m.workspace_bytes = sim::workspace_bytes(device, user_buffers ? sim::kUserBufferStreams : 1).count;
  m.device_bytes = m.reserved_bytes + m.context_bytes + m.workspace_bytes + m.user_buffer_bytes + m.communicator_bytes;
  m.verdict = verdict_of(m, in.scenario);
  m.peak_stage = stage_of(in.scenario, worst->representative.value);
  if (worst->lifetimes.peak_op < resolution.op_count()) {
    const std::uint32_t call = resolution.call_of[worst->lifetimes.peak_op];
    m.peak_path = program::op_path(p, p.rank_programs[id], call, worst->lifetimes.peak_op - resolution.first_op[call]);
  }
  fill_tensors(m, families_at_peak(p, p.rank_programs[id], worst->lifetimes));
}

}  // namespace stepcast::report
