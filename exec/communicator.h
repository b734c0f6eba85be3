// In-process communicators. The n-th op of (group, channel) on each member is one collective; the n-th send a to b
// matches the n-th receive at b from a on (group, channel).
//
// Arriving never blocks. Whoever arrives last checks that all agree, moves the bytes and reports to everyone's
// Completion; the others hold still until then, so a member's buffers are touched only between its arrival and the
// common end. Throws Error (kExecution), naming both ranks and ops, when partners disagree.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "exec/collective.h"
#include "exec/completion.h"
#include "exec/paced_link.h"
#include "program/program.h"

namespace stepcast::exec {

// What communicators need to know of the job they serve.
struct CommContext {
  const Job& job;
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

class Communicator {
 public:
  explicit Communicator(std::vector<program::RankId> members)
      : members_(std::move(members)), arrivals_(members_.size()) {}

  void arrive(std::size_t member, CollectiveArrival arrival, const CommContext& context);
  // Ranks the collective under way still waits for; none when no member has arrived.
  std::vector<program::RankId> missing() const;

 private:
  void perform(const CommContext& context);

  const std::vector<program::RankId> members_;
  mutable std::mutex mutex_;
  std::size_t arrived_ = 0;
  std::vector<std::optional<CollectiveArrival>> arrivals_;  // by member; kept while the last arriver performs
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
  void send(MessageArrival arrival, const CommContext& context);
  void receive(MessageArrival arrival, const CommContext& context);

 private:
  void match(const MessageArrival& send, const MessageArrival& receive, const CommContext& context);

  std::mutex mutex_;
  std::deque<MessageArrival> sends_;
  std::deque<MessageArrival> receives_;
};

// All communicators of a Program, made at load; lookups are safe from any thread.
class Communicators {
 public:
  explicit Communicators(const program::Program& p);

  Communicator& collective(program::GroupId group, program::Channel channel);
  MessageLink& link(program::GroupId group, program::RankId from, program::RankId to, program::Channel channel);

 private:
  void add(const program::Program& p, program::RankId rank, const program::Op& op);

  std::map<std::tuple<program::GroupId, program::Channel>, std::unique_ptr<Communicator>> collectives_;
  std::map<std::tuple<program::GroupId, program::RankId, program::RankId, program::Channel>,
           std::unique_ptr<MessageLink>>
      links_;
};

}  // namespace stepcast::exec
