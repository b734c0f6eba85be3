// See device_rank.h.
#include "exec/device/device_rank.h"

#include <limits>
#include <set>
#include <utility>

#include "exec/shards.h"
#include "exec/status_page.h"

namespace stepcast::exec {

DevicePlan plan_device(const program::Program& p, const program::RankProgram& r, const program::Resolution& res) {
  DevicePlan plan;
  plan.loaded = load(p, r, res);
  plan.waits = plan_waits(p, r, res, plan.loaded, graph_ranges(p, r, res));
  return plan;
}

DeviceRank::DeviceRank(const program::CheckedProgram& c, program::RankId rank, const DevicePlan& of_program,
                       const CommLayout& communicators, const ExecOptions& o, std::unique_ptr<Device> own)
    : checked(c),
      id(rank),
      rank_program(c.program().rank_programs[c.program().ranks[rank].program]),
      resolution(c.resolution(c.program().ranks[rank].program)),
      plan(of_program),
      layout(communicators),
      options(o),
      device(std::move(own)),
      limited(*device, o.memory_limit.value_or(Bytes(std::numeric_limits<std::int64_t>::max()))),
      allocator(c.program(), rank_program, resolution, plan.loaded, spaces(), o.poison),
      recorder(c.program(), rank_program, resolution),
      status(o.page ? o.page->rank(rank.value).board : own_status) {}

MemorySpaces DeviceRank::spaces() {
  PhysicalMemory& of_device = options.memory_limit ? static_cast<PhysicalMemory&>(limited) : *device;
  return {of_device, device->host_memory()};
}

void DeviceRank::start() {
  device->begin_thread();
  device->connect();
  const program::Program& p = checked.program();
  std::set<program::BufferId> holding;  // weights, masters, or something else of which zeros are the start
  for (const program::ParameterShard& shard : rank_program.shards) holding.insert(shard.buffer);
  std::vector<std::byte> values;
  for (const program::BufferId buffer : holding) {
    const std::int64_t bytes = rank_program.buffers[buffer].bytes;
    values.assign(static_cast<std::size_t>(bytes), std::byte{0});
    for (const program::ParameterShard& shard : rank_program.shards) {
      if (shard.buffer == buffer) fill_shard(p, shard, p.ranks[id], values.data(), bytes);
    }
    device->copy_in(allocator.persistent_data(buffer), values.data(), bytes);
  }
}

void DeviceRank::begin_step(std::int64_t step) {
  allocator.begin_step();
  copied_.reset();
  at = 0;
  status.begin_step(static_cast<std::uint64_t>(step));
  status.set_host(HostPhase::kMeeting, 0);
  for (const program::Stream s : plan.loaded.streams) {
    progress.completed[static_cast<std::size_t>(s)].store(0);
    status.set_stream(s, StreamPhase::kIdle, 0);
  }
}

const std::byte* DeviceRank::read(program::BufferId buffer) {
  if (copied_ == buffer) return copy_.data();
  const std::int64_t bytes = rank_program.buffers[buffer].bytes;
  copy_.resize(static_cast<std::size_t>(bytes));
  copied_.reset();
  device->begin_thread();
  device->copy_out(copy_.data(), allocator.persistent_data(buffer), bytes);
  copied_ = buffer;
  return copy_.data();
}

}  // namespace stepcast::exec
