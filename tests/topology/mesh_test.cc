// Rank order and groups against groups written out by hand.
#include "topology/mesh.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "base/random.h"

namespace stepcast::topology {
namespace {

using Groups = std::vector<std::vector<std::int32_t>>;

Groups groups_over(const DeviceMesh& mesh, const std::vector<std::string>& axes) {
  const MeshGroups flat = mesh.flat_groups(axes);
  Groups groups;
  for (std::size_t g = 0; g < flat.count(); ++g) groups.emplace_back(flat[g].begin(), flat[g].end());
  return groups;
}

DeviceMesh mesh_of(std::string_view order, std::vector<Axis> sizes) { return make_mesh(order, sizes); }

// tp 2, dp 2, pp 2 in Megatron-Core's order: rank = tp + 2 dp + 4 pp.
TEST(DeviceMesh, MakesTheGroupsOfTheDefaultOrder) {
  const DeviceMesh mesh = mesh_of("tp-cp-ep-dp-pp", {{"tp", 2}, {"dp", 2}, {"pp", 2}});
  EXPECT_EQ(mesh.size(), 8);
  EXPECT_EQ(groups_over(mesh, {"tp"}), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(groups_over(mesh, {"dp"}), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(groups_over(mesh, {"pp"}), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(groups_over(mesh, {"tp", "dp"}), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(groups_over(mesh, {"tp", "pp"}), (Groups{{0, 1, 4, 5}, {2, 3, 6, 7}}));
  EXPECT_EQ(groups_over(mesh, {"dp", "pp"}), (Groups{{0, 2, 4, 6}, {1, 3, 5, 7}}));
}

// The example of Megatron-Core's parallel_state: 16 ranks, tp 2, pp 4, hence dp 2; rank = tp + 2 dp + 4 pp.
TEST(DeviceMesh, MakesTheGroupsOfMegatronsExample) {
  const DeviceMesh mesh = mesh_of("tp-cp-ep-dp-pp", {{"tp", 2}, {"cp", 1}, {"ep", 1}, {"dp", 2}, {"pp", 4}});
  EXPECT_EQ(groups_over(mesh, {"dp"}), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
  EXPECT_EQ(groups_over(mesh, {"pp"}), (Groups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
}

// pp fastest: rank = pp + 2 tp + 4 dp.
TEST(DeviceMesh, FollowsAnotherOrder) {
  const DeviceMesh mesh = mesh_of("pp-tp-dp", {{"tp", 2}, {"dp", 2}, {"pp", 2}});
  EXPECT_EQ(groups_over(mesh, {"pp"}), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(groups_over(mesh, {"tp"}), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(groups_over(mesh, {"dp"}), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
}

// Unequal sizes tp 3, dp 2: rank = tp + 3 dp.
TEST(DeviceMesh, HandlesSizesThatAreNoPowersOfTwo) {
  const DeviceMesh mesh = mesh_of("tp-dp", {{"tp", 3}, {"dp", 2}});
  EXPECT_EQ(groups_over(mesh, {"tp"}), (Groups{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(groups_over(mesh, {"dp"}), (Groups{{0, 3}, {1, 4}, {2, 5}}));
}

// 5 = 1 + 2*0 + 4*1; 6 = 0 + 2*1 + 4*1.
TEST(DeviceMesh, GivesCoordinates) {
  const DeviceMesh mesh = mesh_of("tp-dp-pp", {{"tp", 2}, {"dp", 2}, {"pp", 2}});
  EXPECT_EQ(mesh.coordinate(5, "tp"), 1);
  EXPECT_EQ(mesh.coordinate(5, "dp"), 0);
  EXPECT_EQ(mesh.coordinate(5, "pp"), 1);
  EXPECT_EQ(mesh.coordinate(6, "tp"), 0);
  EXPECT_EQ(mesh.coordinate(6, "dp"), 1);
  EXPECT_EQ(mesh.coordinate(5, "cp"), 0);
  EXPECT_THROW(mesh.coordinate(8, "tp"), InternalError);
}

TEST(DeviceMesh, MakesSingletonsOverNoAxisAndOneGroupOverAll) {
  const DeviceMesh mesh = mesh_of("tp-dp", {{"tp", 2}, {"dp", 2}});
  EXPECT_EQ(groups_over(mesh, {}), (Groups{{0}, {1}, {2}, {3}}));
  EXPECT_EQ(groups_over(mesh, {"cp"}), (Groups{{0}, {1}, {2}, {3}}));
  EXPECT_EQ(groups_over(mesh, {"dp", "tp"}), (Groups{{0, 1, 2, 3}}));
}

// The definition of a group, on random meshes: a partition; members agree on every other axis and cover all
// coordinates of the chosen ones, in rank order; groups are ordered by first member.
TEST(DeviceMesh, GroupsPartitionTheRanksByDefinition) {
  const std::vector<std::string> names = {"tp", "cp", "ep", "dp", "pp"};
  const RandomStream random(7, "mesh-groups");
  for (std::uint64_t round = 0; round < 200; ++round) {
    std::vector<Axis> axes;
    std::vector<std::string> chosen;
    std::int64_t expected_size = 1;
    for (std::uint64_t i = 0; i < names.size(); ++i) {
      axes.push_back({names[i], static_cast<std::int32_t>(1 + random.integer_at(round * 16 + i, 4))});
      if (random.integer_at(round * 16 + 8 + i, 2) == 0) continue;
      chosen.push_back(names[i]);
      expected_size *= axes.back().size;
    }
    const DeviceMesh mesh(axes);
    std::vector<int> seen(static_cast<std::size_t>(mesh.size()), 0);
    std::int32_t last_first = -1;
    for (const auto& group : groups_over(mesh, chosen)) {
      ASSERT_EQ(static_cast<std::int64_t>(group.size()), expected_size) << "round " << round;
      ASSERT_TRUE(std::is_sorted(group.begin(), group.end()));
      ASSERT_GT(group.front(), last_first);
      last_first = group.front();
      for (const std::int32_t member : group) {
        ++seen[static_cast<std::size_t>(member)];
        for (const std::string& name : names) {
          if (std::find(chosen.begin(), chosen.end(), name) != chosen.end()) continue;
          ASSERT_EQ(mesh.coordinate(member, name), mesh.coordinate(group.front(), name)) << "round " << round;
        }
      }
    }
    ASSERT_TRUE(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; })) << "round " << round;
  }
}

// tp 2, dp 3: rank = tp + 2 dp; dp groups {0, 2, 4}, {1, 3, 5}.
TEST(DeviceMesh, GivesGroupsSideBySide) {
  const DeviceMesh mesh = mesh_of("tp-dp", {{"tp", 2}, {"dp", 3}});
  const std::vector<std::string> dp = {"dp"};
  const MeshGroups groups = mesh.flat_groups(dp);
  EXPECT_EQ(groups.group_size, 3u);
  EXPECT_EQ(groups.count(), 2u);
  EXPECT_EQ(groups.members, (std::vector<std::int32_t>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(groups[1].front(), 1);
  EXPECT_EQ(groups[1].size(), 3u);
  EXPECT_EQ(mesh.flat_groups({}).count(), 6u);
}

TEST(DeviceMesh, RefusesSizesBelowOneAndRepeatedAxes) {
  EXPECT_THROW(DeviceMesh({{"tp", 0}}), InternalError);
  EXPECT_THROW(DeviceMesh({{"tp", 2}, {"tp", 2}}), InternalError);
  EXPECT_THROW(DeviceMesh({{"tp", 1 << 20}, {"dp", 1 << 20}}), InternalError);
}

std::string problems_with(std::string_view order, std::vector<Axis> sizes, std::size_t expected_count) {
  try {
    make_mesh(order, sizes);
  } catch (const Error& e) {
    EXPECT_EQ(e.problems().size(), expected_count) << e.what();
    EXPECT_EQ(e.kind(), ErrorKind::kInput);
    return e.what();
  }
  ADD_FAILURE() << "accepted " << order;
  return "";
}

TEST(MakeMesh, NamesUnknownRepeatedAndMissingAxesAtOnce) {
  const std::string text = problems_with("tp-tp-xp", {{"tp", 2}, {"pp", 4}}, 3);
  EXPECT_NE(text.find("unknown axis \"xp\""), std::string::npos) << text;
  EXPECT_NE(text.find("names tp twice"), std::string::npos) << text;
  EXPECT_NE(text.find("leaves out pp of size 4"), std::string::npos) << text;
}

TEST(MakeMesh, RefusesBadTextAndSizes) {
  EXPECT_NE(problems_with("", {}, 1).find("unknown axis \"\""), std::string::npos);
  problems_with("tp--dp", {{"tp", 2}, {"dp", 2}}, 1);
  problems_with("TP", {}, 1);
  EXPECT_NE(problems_with("tp", {{"tp", 0}}, 1).find("at least 1"), std::string::npos);
  EXPECT_NE(problems_with("tp", {{"tp", 2}, {"tp", 2}}, 1).find("given twice"), std::string::npos);
}

// 2^12 * 2^12 = 2^24 ranks are the most; doubling one axis is one too many.
TEST(MakeMesh, LimitsTheNumberOfRanks) {
  EXPECT_EQ(mesh_of("tp-dp", {{"tp", 1 << 12}, {"dp", 1 << 12}}).size(), 1 << 24);
  problems_with("tp-dp", {{"tp", 1 << 13}, {"dp", 1 << 12}}, 1);
  problems_with("tp-dp-pp", {{"tp", 2147483647}, {"dp", 2147483647}, {"pp", 2147483647}}, 1);
}

TEST(MakeMesh, LetsAxesOfSizeOneBeLeftOutOnEitherSide) {
  EXPECT_EQ(mesh_of("tp", {{"tp", 2}, {"pp", 1}}).size(), 2);
  EXPECT_EQ(mesh_of("tp-cp-ep-dp-pp", {}).size(), 1);
}

}  // namespace
}  // namespace stepcast::topology
