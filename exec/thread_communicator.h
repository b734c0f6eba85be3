// Communicators of ranks that are threads of this process.
//
// Whoever arrives last checks that all agree, moves the bytes and reports to everyone's Completion; the others hold
// still until then, so a member's buffers are touched only between its arrival and the common end.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "exec/communicator.h"

namespace stepcast::exec {

class ThreadCommunicator : public Communicator {
 public:
  explicit ThreadCommunicator(std::vector<program::RankId> members)
      : members_(std::move(members)), arrivals_(members_.size()) {}

  void arrive(std::size_t member, CollectiveArrival arrival, const CommContext& context) override;
  std::vector<program::RankId> missing() const override;

 private:
  void perform(const CommContext& context);

  const std::vector<program::RankId> members_;
  mutable std::mutex mutex_;
  std::size_t arrived_ = 0;
  std::vector<std::optional<CollectiveArrival>> arrivals_;  // by member; kept while the last arriver performs
};

class ThreadLink : public MessageLink {
 public:
  void send(MessageArrival arrival, const CommContext& context) override;
  void receive(MessageArrival arrival, const CommContext& context) override;

 private:
  void match(const MessageArrival& send, const MessageArrival& receive, const CommContext& context);

  std::mutex mutex_;
  std::deque<MessageArrival> sends_;
  std::deque<MessageArrival> receives_;
};

// All of a Program, made at load.
class ThreadCommunicators : public Communicators {
 public:
  explicit ThreadCommunicators(const program::Program& p);

  Communicator& collective(program::GroupId group, program::Channel channel) override;
  MessageLink& link(program::GroupId group, program::RankId from, program::RankId to,
                    program::Channel channel) override;
  void meet() override {}

 private:
  void add(const program::Program& p, program::RankId rank, const program::Op& op);

  std::map<std::tuple<program::GroupId, program::Channel>, std::unique_ptr<ThreadCommunicator>> collectives_;
  std::map<std::tuple<program::GroupId, program::RankId, program::RankId, program::Channel>,
           std::unique_ptr<ThreadLink>>
      links_;
};

}  // namespace stepcast::exec
