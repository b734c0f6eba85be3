// Paths between devices of one node, and what is refused.
#include "topology/path.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/topology/small_cluster.h"

namespace stepcast::topology {
namespace {

Path group_path(const Cluster& cluster, std::vector<std::int32_t> devices) { return path_of_group(cluster, devices); }

ErrorKind refused_as(const Cluster& cluster, std::vector<std::int32_t> devices) {
  try {
    path_of_group(cluster, devices);
  } catch (const Error& e) {
    return e.kind();
  }
  ADD_FAILURE() << "accepted";
  return ErrorKind::kSubject;
}

TEST(PathOfGroup, CrossesScaleUpWithinANode) {
  const Cluster cluster = testing::small_cluster(2, 8);
  const Path expected = {.tier = "scale_up", .bandwidth = BytesPerSecond(100e9), .devices_per_node = 3};
  EXPECT_EQ(group_path(cluster, {7, 0, 3}), expected);
  EXPECT_EQ(group_path(cluster, {8, 15, 12}), expected);
}

TEST(PathOfGroup, SendsNothingForOneDevice) {
  const Path none = {.tier = "none", .bandwidth = BytesPerSecond(0), .devices_per_node = 1};
  EXPECT_EQ(group_path(testing::small_cluster(1, 8), {5}), none);
}

// Domains of 4 in nodes of 8: {0..3}, {4..7}; the second node starts at 8.
TEST(PathOfGroup, StaysWithinADomain) {
  const Cluster cluster = testing::small_cluster(2, 4);
  EXPECT_EQ(group_path(cluster, {4, 7}).tier, "scale_up");
  EXPECT_EQ(group_path(cluster, {8, 11}).tier, "scale_up");
  EXPECT_EQ(refused_as(cluster, {3, 4}), ErrorKind::kUnsupported);
}

TEST(PathOfGroup, RefusesPathsBetweenNodes) {
  EXPECT_EQ(refused_as(testing::small_cluster(2, 8), {7, 8}), ErrorKind::kUnsupported);
}

TEST(PathOfGroup, RefusesGroupsThatAreNone) {
  const Cluster cluster = testing::small_cluster(1, 8);
  EXPECT_EQ(refused_as(cluster, {}), ErrorKind::kInput);
  EXPECT_EQ(refused_as(cluster, {0, 8}), ErrorKind::kInput);
  EXPECT_EQ(refused_as(cluster, {-1, 2}), ErrorKind::kInput);
  EXPECT_EQ(refused_as(cluster, {2, 1, 2}), ErrorKind::kInput);
}

TEST(PathBetween, IsThePathOfThePair) {
  const Cluster cluster = testing::small_cluster(1, 8);
  EXPECT_EQ(path_between(cluster, 6, 1), group_path(cluster, {1, 6}));
  EXPECT_EQ(path_between(cluster, 2, 2).tier, "none");
  EXPECT_THROW(path_between(cluster, 9, 9), Error);
}

}  // namespace
}  // namespace stepcast::topology
