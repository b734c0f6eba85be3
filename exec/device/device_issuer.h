// The host thread of a rank on a device, in one step: gives every op to its stream in issue order, running ahead
// without bound except at a host_read, and learns from events what is over.
//
// Each op has an event before and one behind it; an op waits for those that the plan names (wait_plan.h). The host asks
// for events now and then, in the order of each stream, which is how blocks become free and how the trace gets its
// times. Inside a graph no event is asked for: its ops are over when one recorded behind it has happened.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "exec/device/device_rank.h"
#include "exec/job.h"

namespace stepcast::exec {

class DeviceIssuer {
 public:
  // Of step `step` (1-based). The references must outlive it.
  DeviceIssuer(DeviceRank& rank, Job& job, std::int64_t step);
  ~DeviceIssuer();
  DeviceIssuer(const DeviceIssuer&) = delete;
  DeviceIssuer& operator=(const DeviceIssuer&) = delete;

  // All ops; on return they are over. Throws Error (kExecution), Stopped.
  void run();

 private:
  // An op that a stream has been given and that is not known to be over.
  struct Pending {
    std::uint32_t op = 0;
    EventNumber begin = 0;
    EventNumber end = 0;
    std::optional<EventNumber> done;     // asked about; none while its graph is open
    std::optional<EventNumber> closing;  // of a graph: goes back with its stream's last op
  };

  const program::Op& op_at(std::uint32_t op) const;
  std::deque<Pending>& pending(program::Stream s) { return pending_[static_cast<std::size_t>(s)]; }
  bool over(std::uint32_t op) const;

  void start_clock();
  void issue(std::uint32_t op);
  void wait_for_ops(program::Stream s, std::span<const std::uint32_t> ops);
  void enqueue(std::uint32_t op, const program::Op& what, const OpMemory& memory);
  void enqueue_collective(std::uint32_t op, const program::Op& what, const OpMemory& memory);
  void enqueue_messages(const program::Op& what, const OpMemory& memory);
  void enqueue_kernel(std::uint32_t op, const program::Op& what, const OpMemory& memory);
  void begin_graph();
  void end_graph();

  int harvest();
  void finish(program::Stream s);
  void show_head(program::Stream s);
  SimTime time_of(EventNumber event);
  const Pending* oldest() const;
  bool wait_for_one();
  void block_until_over(std::uint32_t op);
  void check_stop() const;

  DeviceRank& rank_;
  Device& device_;
  Job& job_;
  std::int64_t step_;
  SimTime origin_time_;
  EventNumber origin_ = 0;
  std::array<std::deque<Pending>, program::kStreamCount> pending_;
  std::array<bool, program::kStreamCount> head_runs_{};  // known of the oldest pending op
  std::vector<EventNumber> done_of_;                     // by flat op: what others wait for, until it is over
  std::size_t graph_ = 0;                                // the open or next range
  bool in_graph_ = false;
};

}  // namespace stepcast::exec
