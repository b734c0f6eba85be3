// Communicators: where ops of different ranks meet. The n-th op of (group, channel) on each member is one collective;
// the n-th send a to b matches the n-th receive at b from a on (group, channel).
//
// Arriving never blocks. A member's buffers are touched only between its arrival and the report to its Completion.
// Throws Error (kExecution), naming both ranks and ops, when partners disagree; what finds that out later fails the
// job.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "exec/collective.h"
#include "exec/completion.h"
#include "exec/paced_link.h"
#include "program/program.h"

namespace stepcast::exec {

// What communicators need to know of the job they serve.
struct CommContext {
  Job& job;
  const std::optional<PacedLink>& link;
  // "rank 3 F.m0.L1.attn.reduce": who and what, for messages.
  std::function<std::string(program::RankId, std::uint32_t op)> op_name;
};

// One member's part in a collective.
struct CollectiveArrival {
  program::RankId rank;
  std::uint32_t op = 0;
  CollectiveSpec spec;
  MemberBuffers buffers;
  std::int64_t in_elements = 0;  // what the member's operands really hold
  std::int64_t out_elements = 0;
  SimTime begin;
  std::shared_ptr<Completion> completion;
};

// The operands hold what the spec says that this member gives and takes: a CHECK.
void check_sizes(const CollectiveArrival& arrival, std::size_t member);

// "all_gather bf16 of 12 elements (4,4,4)".
std::string spec_text(const CollectiveSpec& spec);

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual void arrive(std::size_t member, CollectiveArrival arrival, const CommContext& context) = 0;
  // Ranks the collective under way still waits for; none when no member has arrived.
  virtual std::vector<program::RankId> missing() const = 0;
};

// One side of a message.
struct MessageArrival {
  program::RankId rank;
  std::uint32_t op = 0;
  program::TensorType type;
  void* data = nullptr;
  SimTime begin;
  std::shared_ptr<Completion> completion;
};

// Messages of one direction between two ranks on one channel.
class MessageLink {
 public:
  virtual ~MessageLink() = default;
  virtual void send(MessageArrival arrival, const CommContext& context) = 0;
  virtual void receive(MessageArrival arrival, const CommContext& context) = 0;
};

// All communicators of a Program that some ranks need; lookups are safe from any thread.
class Communicators {
 public:
  virtual ~Communicators() = default;
  virtual Communicator& collective(program::GroupId group, program::Channel channel) = 0;
  virtual MessageLink& link(program::GroupId group, program::RankId from, program::RankId to,
                            program::Channel channel) = 0;
  // Before a step: returns when all ranks of all processes have come so far.
  virtual void meet() = 0;
};

}  // namespace stepcast::exec
