// Ranks as torchrun and srun name them in the environment, and Slurm's lists of hosts.
#include "exec/launched_rank.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"

namespace stepcast::exec {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<LaunchedRank> rank_with(const Variables& variables) {
  return launched_rank([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Variables torchrun() {
  return {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "n4"}, {"MASTER_PORT", "29500"}};
}

Variables srun() {
  return {{"SLURM_PROCID", "3"},  {"SLURM_NTASKS", "4"},       {"SLURM_LOCALID", "1"},
          {"SLURM_STEP_ID", "0"}, {"SLURM_JOB_ID", "1234567"}, {"SLURM_JOB_NODELIST", "gpu[008-009]"}};
}

// torchrun's store has the port itself.
TEST(LaunchedRank, IsTorchruns) {
  const std::optional<LaunchedRank> rank = rank_with(torchrun());
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->launcher, "torchrun");
  EXPECT_EQ(rank->rank, 5);
  EXPECT_EQ(rank->size, 8);
  EXPECT_EQ(rank->local_rank, 1);
  EXPECT_EQ(rank->host, "n4");
  EXPECT_EQ(rank->port, 29501);
}

// Job 1,234,567: 20,000 + 4,567.
TEST(LaunchedRank, IsSruns) {
  const std::optional<LaunchedRank> rank = rank_with(srun());
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->launcher, "srun");
  EXPECT_EQ(rank->rank, 3);
  EXPECT_EQ(rank->size, 4);
  EXPECT_EQ(rank->local_rank, 1);
  EXPECT_EQ(rank->host, "gpu008");
  EXPECT_EQ(rank->port, 24567);
  Variables part = srun();
  part["SLURM_STEP_NODELIST"] = "gpu009";
  EXPECT_EQ(rank_with(part)->host, "gpu009");
}

TEST(LaunchedRank, IsNoneWithoutALauncher) {
  EXPECT_FALSE(rank_with({}));
  EXPECT_FALSE(rank_with({{"RANK", "3"}}));
  Variables batch = srun();
  batch.erase("SLURM_STEP_ID");
  EXPECT_FALSE(rank_with(batch));
  batch["SLURM_STEP_ID"] = "4294967291";  // of the batch script
  EXPECT_FALSE(rank_with(batch));
}

TEST(LaunchedRank, MeetsElsewhereWhereTold) {
  Variables variables = torchrun();
  variables["STEPCAST_PORT"] = "4000";
  variables["STEPCAST_HOST"] = "10.0.0.7";
  EXPECT_EQ(rank_with(variables)->port, 4000);
  EXPECT_EQ(rank_with(variables)->host, "10.0.0.7");
}

TEST(LaunchedRank, RefusesWhatIsMissingOrNoNumber) {
  const std::vector<std::pair<std::string, std::string>> wrong = {{"RANK", "8"},
                                                                  {"RANK", "-1"},
                                                                  {"RANK", "5x"},
                                                                  {"WORLD_SIZE", "0"},
                                                                  {"WORLD_SIZE", "99999999"},
                                                                  {"LOCAL_RANK", ""},
                                                                  {"MASTER_ADDR", ""},
                                                                  {"MASTER_PORT", "65535"},
                                                                  {"MASTER_PORT", "http"},
                                                                  {"STEPCAST_PORT", "0"}};
  for (const auto& [name, value] : wrong) {
    Variables variables = torchrun();
    variables[name] = value;
    try {
      rank_with(variables);
      ADD_FAILURE() << name << "=" << value;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
  }
}

using Hosts = std::vector<std::string>;

TEST(HostList, ReadsSlurmsForms) {
  EXPECT_EQ(hosts_of("n1"), (Hosts{"n1"}));
  EXPECT_EQ(hosts_of("a,b"), (Hosts{"a", "b"}));
  EXPECT_EQ(hosts_of("n[001-004,7]"), (Hosts{"n001", "n002", "n003", "n004", "n7"}));
  EXPECT_EQ(hosts_of("gpu-a[9-11]-ib,login"), (Hosts{"gpu-a9-ib", "gpu-a10-ib", "gpu-a11-ib", "login"}));
  EXPECT_EQ(hosts_of("x[1],y[2-2]"), (Hosts{"x1", "y2"}));
  EXPECT_EQ(hosts_of("r[098-101]"), (Hosts{"r098", "r099", "r100", "r101"}));
}

TEST(HostList, RefusesWhatIsNone) {
  for (const char* list : {"", ",", "a,,b", "n[", "n]", "n[1", "n[]", "n[a]", "n[3-1]", "n[1-2-3]", "n[1-]", "n[-1]",
                           "n[1][2]", "n[[1]]", "n[0-99999999]", "n[1,]"}) {
    EXPECT_THROW(hosts_of(list), Error) << list;
  }
}

}  // namespace
}  // namespace stepcast::exec
