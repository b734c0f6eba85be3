// Buffers, context and workspaces by hand, from NCCL's default sizes.
#include "sim/cost/device_memory.h"

#include <gtest/gtest.h>

namespace stepcast::sim {
namespace {

// Per channel and buffered side: Simple 4,194,304; LL 8 x 512 x 8 x 16 = 524,288; LL128 120 x 640 x 8 x 8 = 4,915,200.
constexpr std::int64_t kSide = 4194304 + 524288 + 4915200;

TEST(CommunicatorMemory, OfARingInANodeIsABufferPerChannel) {
  EXPECT_EQ(communicator_bytes({.algorithm = Algorithm::kRing, .channels = 24, .domain_peers = 8, .domains = 1}),
            Bytes(24 * kSide));
}

// One member a node: every channel comes in by the network and leaves by it. Eight: of 16 channels 2 enter at a member
// and 2 leave, the other 14 come from its neighbour.
TEST(CommunicatorMemory, OfARingBetweenNodesHasBothSidesOfTheNetwork) {
  EXPECT_EQ(communicator_bytes({.algorithm = Algorithm::kRing, .channels = 4, .domain_peers = 1, .domains = 16}),
            Bytes(2 * 4 * kSide));
  EXPECT_EQ(communicator_bytes({.algorithm = Algorithm::kRing, .channels = 16, .domain_peers = 8, .domains = 2}),
            Bytes((14 + 2 + 2) * kSide));
}

TEST(CommunicatorMemory, OfATreeIsThatOfTwoRings) {
  EXPECT_EQ(communicator_bytes({.algorithm = Algorithm::kTree, .channels = 24, .domain_peers = 8, .domains = 1}),
            Bytes(2 * 24 * kSide));
}

// 16 channels, eight heads, 1 MiB in and 1 MiB out: 256 MiB.
TEST(CommunicatorMemory, OfNvlsIsTwoMebibytesPerChannelAndHead) {
  EXPECT_EQ(communicator_bytes({.algorithm = Algorithm::kNvls, .channels = 16, .domain_peers = 8, .domains = 1}),
            Bytes(std::int64_t{256} << 20));
}

// A rack of 72 has 32 heads at most.
TEST(CommunicatorMemory, HasAtMostThirtyTwoHeads) {
  EXPECT_EQ(communicator_bytes({.algorithm = Algorithm::kNvls, .channels = 16, .domain_peers = 72, .domains = 1}),
            Bytes(std::int64_t{1} << 30));
}

// 16 members a node apart: 4 powers of two.
TEST(CommunicatorMemory, OfPatGrowsWithTheLogarithm) {
  EXPECT_EQ(communicator_bytes({.algorithm = Algorithm::kPat, .channels = 2, .domain_peers = 1, .domains = 16}),
            Bytes(2 * 2 * 4 * kSide));
}

TEST(CommunicatorMemory, OfNothingIsNothing) {
  EXPECT_EQ(communicator_bytes({.algorithm = Algorithm::kNone, .channels = 0, .domain_peers = 1, .domains = 1}),
            Bytes());
}

TEST(ContextMemory, IsOfGpusOnly) {
  topology::DeviceSpec cpu;
  cpu.kind = topology::DeviceKind::kCpu;
  EXPECT_EQ(context_bytes(cpu), Bytes());
  EXPECT_EQ(workspace_bytes(cpu, 1), Bytes());
  topology::DeviceSpec hopper;
  hopper.architecture = "sm90";
  EXPECT_EQ(workspace_bytes(hopper, 1), Bytes(std::int64_t{32} << 20));
  EXPECT_EQ(workspace_bytes(hopper, kUserBufferStreams), Bytes(std::int64_t{96} << 20));
  // 0.47 GiB.
  EXPECT_NEAR(static_cast<double>(context_bytes(hopper).count) / 0x1p30, 0.47, 0.001);
}

}  // namespace
}  // namespace stepcast::sim
