// See thread_communicator.h.
#include "exec/thread_communicator.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "base/check.h"
#include "base/error.h"

namespace stepcast::exec {
namespace {

void check_agreement(const CollectiveArrival& a, const CollectiveArrival& b, const CommContext& context) {
  if (a.spec == b.spec) return;
  throw Error(ErrorKind::kExecution, "collectives disagree: " + context.op_name(a.rank, a.op) + " has " +
                                         spec_text(a.spec) + ", " + context.op_name(b.rank, b.op) + " has " +
                                         spec_text(b.spec));
}

}  // namespace

void ThreadCommunicator::arrive(std::size_t member, CollectiveArrival arrival, const CommContext& context) {
  check_sizes(arrival, member);
  {
    const std::lock_guard lock(mutex_);
    CHECK(member < arrivals_.size() && !arrivals_[member], "member arrives twice", member);
    for (const std::optional<CollectiveArrival>& other : arrivals_) {
      if (other) {
        check_agreement(*other, arrival, context);
        break;
      }
    }
    arrivals_[member] = std::move(arrival);
    if (++arrived_ < members_.size()) return;
  }
  perform(context);
}

void ThreadCommunicator::perform(const CommContext& context) {
  // Nobody arrives before the completions below are reported, so the arrivals can be read without the lock.
  std::vector<MemberBuffers> buffers;
  Transfer moved;
  for (const std::optional<CollectiveArrival>& arrival : arrivals_) {
    buffers.push_back(arrival->buffers);
    moved.transfer = std::max(moved.transfer, arrival->begin);
  }
  const CollectiveSpec& spec = arrivals_.front()->spec;
  perform_collective(spec, buffers);
  const Bytes message(spec.elements * program::size_of(spec.dtype));
  const auto members = static_cast<std::int64_t>(members_.size());
  const SimTime paced = moved.transfer + paced_time(context.link, spec.kind, message, members);
  moved.end = std::max(context.job.now(), paced);
  std::vector<std::shared_ptr<Completion>> completions;
  {
    const std::lock_guard lock(mutex_);
    for (std::optional<CollectiveArrival>& arrival : arrivals_) {
      completions.push_back(std::move(arrival->completion));
      arrival.reset();
    }
    arrived_ = 0;
  }
  for (const std::shared_ptr<Completion>& completion : completions) completion->part_done(moved);
}

std::vector<program::RankId> ThreadCommunicator::missing() const {
  const std::lock_guard lock(mutex_);
  std::vector<program::RankId> ranks;
  if (arrived_ == 0) return ranks;
  for (std::size_t m = 0; m < members_.size(); ++m) {
    if (!arrivals_[m]) ranks.push_back(members_[m]);
  }
  return ranks;
}

void ThreadLink::send(MessageArrival arrival, const CommContext& context) {
  std::optional<MessageArrival> receive;
  {
    const std::lock_guard lock(mutex_);
    if (receives_.empty()) {
      sends_.push_back(std::move(arrival));
      return;
    }
    receive = std::move(receives_.front());
    receives_.pop_front();
  }
  match(arrival, *receive, context);
}

void ThreadLink::receive(MessageArrival arrival, const CommContext& context) {
  std::optional<MessageArrival> send;
  {
    const std::lock_guard lock(mutex_);
    if (sends_.empty()) {
      receives_.push_back(std::move(arrival));
      return;
    }
    send = std::move(sends_.front());
    sends_.pop_front();
  }
  match(*send, arrival, context);
}

void ThreadLink::match(const MessageArrival& send, const MessageArrival& receive, const CommContext& context) {
  if (send.type.bytes() != receive.type.bytes()) {
    throw Error(ErrorKind::kExecution, "messages disagree: " + context.op_name(send.rank, send.op) + " sends " +
                                           std::to_string(send.type.bytes()) + " bytes, " +
                                           context.op_name(receive.rank, receive.op) + " receives " +
                                           std::to_string(receive.type.bytes()) + " bytes");
  }
  const auto bytes = static_cast<std::size_t>(send.type.bytes());
  if (bytes > 0 && send.data != receive.data) std::memcpy(receive.data, send.data, bytes);
  Transfer moved;
  moved.transfer = std::max(send.begin, receive.begin);
  const Duration paced = paced_time(context.link, program::OpKind::kSend, Bytes(send.type.bytes()), 2);
  moved.end = std::max(context.job.now(), moved.transfer + paced);
  send.completion->part_done(moved);
  receive.completion->part_done(moved);
}

ThreadCommunicators::ThreadCommunicators(const program::Program& p) {
  for (std::size_t i = 0; i < p.ranks.size(); ++i) {
    const program::RankId rank(i);
    const program::RankProgram& r = p.rank_programs[p.ranks[rank].program];
    std::set<program::SegmentId> seen;
    for (const program::Call& call : r.calls) {
      if (!seen.insert(call.segment).second) continue;
      for (const program::Op& op : p.segments[call.segment].ops) add(p, rank, op);
    }
  }
}

void ThreadCommunicators::add(const program::Program& p, program::RankId rank, const program::Op& op) {
  if (program::is_collective(op.kind)) {
    const program::GroupId group = program::membership(p, rank, *op.group).group;
    std::unique_ptr<ThreadCommunicator>& slot = collectives_[{group, op.channel}];
    if (!slot) slot = std::make_unique<ThreadCommunicator>(p.groups[group].members);
  }
  for (const program::P2pPart& part : op.parts) {
    const program::RankId peer = peer_of(p, rank, part);
    const program::GroupId group = program::membership(p, rank, part.role).group;
    std::unique_ptr<ThreadLink>& slot =
        part.send ? links_[{group, rank, peer, part.channel}] : links_[{group, peer, rank, part.channel}];
    if (!slot) slot = std::make_unique<ThreadLink>();
  }
}

Communicator& ThreadCommunicators::collective(program::GroupId group, program::Channel channel) {
  const auto it = collectives_.find({group, channel});
  CHECK(it != collectives_.end(), group.value, static_cast<int>(channel));
  return *it->second;
}

MessageLink& ThreadCommunicators::link(program::GroupId group, program::RankId from, program::RankId to,
                                       program::Channel channel) {
  const auto it = links_.find({group, from, to, channel});
  CHECK(it != links_.end(), group.value, from.value, to.value, static_cast<int>(channel));
  return *it->second;
}

}  // namespace stepcast::exec
