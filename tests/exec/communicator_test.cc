// What partners that disagree get to hear. A checked Program never gets here, so communicators are used directly.
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "exec/thread_communicator.h"

namespace stepcast::exec {
namespace {

using program::OpKind;
using program::RankId;

struct Fixture {
  Job job;
  std::optional<PacedLink> link;
  CommContext context{job, link, [](RankId rank, std::uint32_t op) {
                        return "rank " + std::to_string(rank.value) + " op" + std::to_string(op);
                      }};
  std::vector<float> memory = std::vector<float>(8, 1.0F);

  Fixture() { job.start(); }
  CollectiveArrival arrival(std::uint32_t rank, CollectiveSpec spec) {
    const std::int64_t own = spec.counts.empty() ? spec.elements : spec.counts[rank];
    return {.rank = RankId(rank),
            .op = rank + 10,
            .spec = spec,
            .buffers = {memory.data(), memory.data()},
            .in_elements = spec.kind == OpKind::kAllGather ? own : spec.elements,
            .out_elements = spec.kind == OpKind::kReduceScatter ? own : spec.elements,
            .begin = SimTime(0),
            .completion = std::make_shared<Completion>(1)};
  }
  MessageArrival message(std::uint32_t rank, std::int64_t elements) {
    return {.rank = RankId(rank),
            .op = rank + 10,
            .type = {program::DType::kF32, {elements}},
            .data = memory.data(),
            .begin = SimTime(0),
            .completion = std::make_shared<Completion>(1)};
  }
};

CollectiveSpec all_reduce() {
  return {.kind = OpKind::kAllReduce, .dtype = program::DType::kF32, .elements = 4, .counts = {}};
}
CollectiveSpec reduce_scatter(std::vector<std::int64_t> counts) {
  return {.kind = OpKind::kReduceScatter, .dtype = program::DType::kF32, .elements = 4, .counts = std::move(counts)};
}

// The message of the Error that member 1 gets when it brings `second` where member 0 has brought `first`.
std::string disagreement(const CollectiveSpec& first, const CollectiveSpec& second) {
  Fixture f;
  ThreadCommunicator communicator({RankId(0), RankId(1)});
  communicator.arrive(0, f.arrival(0, first), f.context);
  try {
    communicator.arrive(1, f.arrival(1, second), f.context);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kExecution);
    return e.problems().front().message;
  }
  return "";
}

TEST(Communicator, RefusesMembersThatDisagreeNamingBoth) {
  EXPECT_EQ(disagreement(all_reduce(), all_reduce()), "");
  EXPECT_EQ(disagreement(reduce_scatter({1, 3}), reduce_scatter({2, 2})),
            "collectives disagree: rank 0 op10 has reduce_scatter f32 sum of 4 elements (1,3), "
            "rank 1 op11 has reduce_scatter f32 sum of 4 elements (2,2)");
  CollectiveSpec other = all_reduce();
  other.reduce = program::Reduce::kMax;
  EXPECT_EQ(disagreement(all_reduce(), other),
            "collectives disagree: rank 0 op10 has all_reduce f32 sum of 4 elements, "
            "rank 1 op11 has all_reduce f32 max of 4 elements");
  other = all_reduce();
  other.dtype = program::DType::kBf16;
  EXPECT_NE(disagreement(all_reduce(), other), "");
  other = all_reduce();
  other.elements = 3;
  EXPECT_NE(disagreement(all_reduce(), other), "");
  other = all_reduce();
  other.kind = OpKind::kBroadcast;
  EXPECT_NE(disagreement(other, all_reduce()), "");
  CollectiveSpec root = other;
  root.root = 1;
  EXPECT_NE(disagreement(other, root), "");
}

TEST(Communicator, SaysWhoIsMissing) {
  Fixture f;
  ThreadCommunicator communicator({RankId(4), RankId(7), RankId(9)});
  EXPECT_TRUE(communicator.missing().empty());
  communicator.arrive(1, f.arrival(0, all_reduce()), f.context);
  EXPECT_EQ(communicator.missing(), (std::vector<RankId>{RankId(4), RankId(9)}));
}

TEST(Communicator, RefusesOperandsThatDoNotHoldTheCounts) {
  Fixture f;
  ThreadCommunicator communicator({RankId(0), RankId(1)});
  CollectiveArrival arrival = f.arrival(0, reduce_scatter({1, 3}));
  arrival.out_elements = 3;
  EXPECT_THROW(communicator.arrive(0, std::move(arrival), f.context), InternalError);
}

TEST(Messages, RefuseUnequalBytesNamingBoth) {
  Fixture f;
  ThreadLink link;
  link.send(f.message(0, 4), f.context);
  try {
    link.receive(f.message(1, 3), f.context);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.problems().front().message,
              "messages disagree: rank 0 op10 sends 16 bytes, rank 1 op11 receives 12 bytes");
  }
}

}  // namespace
}  // namespace stepcast::exec
