// One rank's accelerator as the executor sees it: memory, in-order streams to which work is given and that run on their
// own, events between them.
//
// Everything given to a stream (fill, run, collective, messages, record, wait) returns without waiting for it. A device
// belongs to one rank and one host thread at a time, but for end_communication(), which any thread may call. Functions
// throw Error (kExecution) with the call that failed, and what the device says of it; a device may tell so later, of
// work given before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/units.h"
#include "exec/collective.h"
#include "exec/physical_memory.h"
#include "kernels/kernel.h"
#include "program/program.h"

namespace stepcast::exec {

// Events are numbered by who uses them, small numbers first; a device makes one when it is first recorded.
using EventNumber = std::uint32_t;

// One member's part in a collective.
struct CollectiveCall {
  std::uint32_t communicator = 0;  // comm_layout.h
  std::size_t member = 0;          // own position in it
  CollectiveSpec spec;
  MemberBuffers buffers;
};

// One message of an op, sent or received.
struct Message {
  std::uint32_t communicator = 0;
  std::size_t member = 0;  // own position in it
  std::size_t peer = 0;    // the other's
  bool send = false;
  void* data = nullptr;
  std::int64_t bytes = 0;
};

class Device : public PhysicalMemory {
 public:
  // Memory of the host that copies to and from the device can use.
  virtual PhysicalMemory& host_memory() = 0;

  // Meets the other ranks' devices, at the same time as they do; once, before any step.
  virtual void connect() = 0;
  // The calling thread is about to use the device.
  virtual void begin_thread() = 0;

  // Sets bytes once what is before on the stream is over.
  virtual void fill(program::Stream s, std::byte* data, int value, std::int64_t bytes) = 0;
  using PhysicalMemory::fill;
  // The operands are memory of this device or its host_memory(); `context.state` is the device's own business.
  virtual void run(program::Stream s, kernels::Kernel kernel, const kernels::KernelContext& context) = 0;
  virtual void collective(program::Stream s, const CollectiveCall& call) = 0;
  // The messages of one op, all at once: none waits for another one. They share a communicator.
  virtual void messages(program::Stream s, std::span<const Message> messages) = 0;

  // The event happens when all that is before on the stream is over. An earlier recording of it is forgotten, but by
  // those who wait for it.
  virtual void record(program::Stream s, EventNumber event) = 0;
  // What comes after on the stream waits for the event's latest recording.
  virtual void wait(program::Stream s, EventNumber event) = 0;
  virtual bool happened(EventNumber event) = 0;
  // Holds the host until the event has happened, or for `limit`; says whether it has.
  virtual bool wait_for(EventNumber event, Duration limit) = 0;
  // Between two events that have happened, in this order.
  virtual Duration elapsed(EventNumber from, EventNumber to) = 0;

  // What is given to `streams` from begin to end may be launched as one graph, which is the rank program's number
  // `graph`. The streams meet at both: what comes after on one of them waits for what is before on all. Events recorded
  // in between are waited for in between only, and asked about only when one recorded after the end has happened.
  virtual void begin_graph(std::uint32_t graph, std::span<const program::Stream> streams) = 0;
  virtual void end_graph() = 0;

  // To and from memory that no op uses; done on return.
  virtual void copy_in(std::byte* to, const std::byte* from, std::int64_t bytes) = 0;
  virtual void copy_out(std::byte* to, const std::byte* from, std::int64_t bytes) = 0;

  // Throws when communication has failed without any call having said so.
  virtual void check_communication() = 0;
  // Ends communication under way, so that nothing waits for ranks that do not come; no step can be run after it. Any
  // thread, any number of times.
  virtual void end_communication() = 0;
};

}  // namespace stepcast::exec
