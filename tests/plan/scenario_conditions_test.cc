// What surrounds a plan: where the job's nodes are, what is perturbed, jitter and environment variables.
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/lowering.h"
#include "tests/plan/scenario_text.h"

namespace stepcast::plan {
namespace {

using topology::DeviceOverride;

// Nodes of two devices with two NICs each; tp fills a node, then dp 2, then pp 2: rank = tp + 2 dp + 4 pp. Item i of
// `perturb` is on line 15 + i.
constexpr const char* kFour = R"(framework: plain
model: {num_hidden_layers: 4, hidden_size: 64, intermediate_size: 192, num_attention_heads: 8,
        num_key_value_heads: 4, vocab_size: 256}
cluster:
  gpu: {name: Toy, peak_bf16: 1 TFLOP/s, peak_fp32: 1 TFLOP/s, memory: 1 GiB, hbm_bandwidth: 1 TB/s, multiprocessors: 1}
  gpus_per_node: 2
  scale_up: {bandwidth: 1 GB/s}
  host: {pcie: 1 GB/s}
  nic: {rate: 100 Gb/s, per_gpu: 2, kind: ib}
  fabric: {kind: rail}
gpus: 8
training: {sequence_length: 32, global_batch_size: 8, precision: fp32}
plan: {tp: 2, pp: 2}
perturb:
)";

Scenario perturbed(const std::string& items, const std::vector<std::string>& settings = {}) {
  const ReadScenario read = read_text(kFour + items, settings);
  EXPECT_TRUE(read.violations.empty()) << to_text(read.violations);
  return read.scenario;
}

std::vector<std::int32_t> devices(const Scenario& s) {
  std::vector<std::int32_t> list;
  for (const DeviceOverride& change : s.cluster.overrides) list.push_back(change.device);
  return list;
}

using Devices = std::vector<std::int32_t>;

TEST(Perturb, NamesDevicesByRankNodeStageOrGroup) {
  EXPECT_EQ(devices(perturbed("- {rank: 5, compute: 1.03}\n")), (Devices{5}));
  EXPECT_EQ(devices(perturbed("- {node: 3, compute: 1.03}\n")), (Devices{6, 7}));
  EXPECT_EQ(devices(perturbed("- {stage: 1, compute: 1.03}\n")), (Devices{4, 5, 6, 7}));
  // dp groups by first member: ranks {0, 2}, {1, 3}, {4, 6}, {5, 7}; model groups {0, 1, 4, 5}, {2, 3, 6, 7}.
  EXPECT_EQ(devices(perturbed("- {group: \"dp:2\", compute: 1.03}\n")), (Devices{4, 6}));
  EXPECT_EQ(devices(perturbed("- {group: \"model:1\", compute: 1.03}\n")), (Devices{2, 3, 6, 7}));
  EXPECT_EQ(devices(perturbed("- {group: \"tp:1\", compute: 1.03}\n")), (Devices{2, 3}));
  EXPECT_EQ(devices(perturbed("- {group: \"pp:3\", compute: 1.03}\n")), (Devices{3, 7}));
}

TEST(Perturb, EffectsOfOneDeviceMultiplyAndAdd) {
  const Scenario s = perturbed(
      "- {rank: 2, compute: 1.5, hbm: 0.5, latency: 2 us, note: hot}\n"
      "- {node: 1, compute: 2, latency: 1 us}\n");
  ASSERT_EQ(devices(s), (Devices{2, 3}));
  const DeviceOverride& two = s.cluster.overrides[0];
  EXPECT_DOUBLE_EQ(two.compute_time, 3.0);
  EXPECT_DOUBLE_EQ(two.memory_bandwidth, 0.5);
  EXPECT_EQ(two.latency, Duration(3'000'000));
  EXPECT_DOUBLE_EQ(two.nic_bandwidth, 1.0);
  EXPECT_FALSE(two.nic_down);
  EXPECT_DOUBLE_EQ(s.cluster.overrides[1].compute_time, 2.0);
  EXPECT_DOUBLE_EQ(topology::override_of(s.cluster, 2).compute_time, 3.0);
}

// NICs 0 and 1 of a node are those of its first device.
TEST(Perturb, ADeviceHasTheMeanOfItsNics) {
  const Scenario half = perturbed("- {node: 1, nic: 0, bandwidth: 0.5}\n");
  ASSERT_EQ(devices(half), (Devices{2}));
  EXPECT_DOUBLE_EQ(half.cluster.overrides[0].nic_bandwidth, 0.75);  // (0.5 + 1) / 2
  const Scenario dead = perturbed("- {node: 1, nic: 3, down: true}\n");
  ASSERT_EQ(devices(dead), (Devices{3}));
  EXPECT_DOUBLE_EQ(dead.cluster.overrides[0].nic_bandwidth, 0.5);  // (0 + 1) / 2
  EXPECT_FALSE(dead.cluster.overrides[0].nic_down);
  const Scenario both = perturbed("- {node: 1, nic: 2, down: true}\n- {node: 1, nic: 3, down: true}\n");
  ASSERT_EQ(devices(both), (Devices{3}));
  EXPECT_TRUE(both.cluster.overrides[0].nic_down);
  const Scenario all = perturbed("- {rank: 4, down: true}\n- {rank: 4, bandwidth: 0.5}\n");
  ASSERT_EQ(devices(all), (Devices{4}));
  EXPECT_TRUE(all.cluster.overrides[0].nic_down);
}

// One NIC for each pair of devices: nic 0 of node 1 is that of devices 2 and 3, whoever names it.
TEST(Perturb, ASharedNicSlowsAllThatShareIt) {
  for (const char* item : {"- {node: 1, nic: 0, bandwidth: 0.5}\n", "- {rank: 3, bandwidth: 0.5}\n"}) {
    const Scenario s = perturbed(item, {"cluster.nic.per_gpu=0.5"});
    ASSERT_EQ(devices(s), (Devices{2, 3})) << item;
    EXPECT_DOUBLE_EQ(s.cluster.overrides[1].nic_bandwidth, 0.5);
  }
}

struct PerturbCase {
  const char* items;
  int line;
  const char* field;
  const char* text;
};

TEST(Perturb, RefusesWhatNamesNothingOrChangesNothing) {
  const PerturbCase cases[] = {
      {"- {compute: 2}\n", 15, "perturb[0]", "names no target"},
      {"- {rank: 1, compute: 2}\n- {rank: 1, node: 0, compute: 2}\n", 16, "perturb[1]", "names 2 targets"},
      {"- {rank: 1}\n", 15, "perturb[0]", "changes nothing"},
      {"- {rank: 1, note: cold}\n", 15, "perturb[0]", "changes nothing"},
      {"- {rank: 1, down: false}\n", 15, "perturb[0]", "changes nothing"},
      {"- {rank: 8, compute: 2}\n", 15, "perturb[0].rank", "rank 8 of 8"},
      {"- {node: 4, compute: 2}\n", 15, "perturb[0].node", "at most 3"},
      {"- {stage: 2, compute: 2}\n", 15, "perturb[0].stage", "stage 2 of 2"},
      {"- {group: \"dp:4\", compute: 2}\n", 15, "perturb[0].group", "group 4 of 4"},
      {"- {group: dp, compute: 2}\n", 15, "perturb[0].group", "such as dp:3"},
      {"- {group: \"ep:0\", compute: 2}\n", 15, "perturb[0].group", "roles: tp, dp"},
      {"- {node: 0, nic: 4, bandwidth: 0.5}\n", 15, "perturb[0].nic", "NIC 4 of 4"},
      {"- {rank: 0, nic: 1, bandwidth: 0.5}\n", 15, "perturb[0].nic", "give node"},
      {"- {node: 0, nic: 1, compute: 2}\n", 15, "perturb[0].nic", "neither bandwidth nor down"},
      {"- {node: 0, bandwidth: 0.5, down: true}\n", 15, "perturb[0].down", "one of the two"},
      {"- {node: 0, compute: 0}\n", 15, "perturb[0].compute", "at least 0.001"},
      {"- {node: -1, compute: 2}\n", 15, "perturb[0].node", "at least 0"},
      {"- {node: 0, latency: 2}\n", 15, "perturb[0].latency", "no unit"},
      {"- {node: 0, speed: 2}\n", 15, "perturb[0].speed", "unknown field"},
  };
  for (const PerturbCase& c : cases) {
    const std::vector<Problem> problems = problems_of(kFour + std::string(c.items));
    const bool found = std::any_of(problems.begin(), problems.end(), [&](const Problem& problem) {
      std::string text = problem.message;
      for (const std::string& help : problem.help) text += "\n" + help;
      return problem.where.line == c.line && problem.where.field == c.field && text.find(c.text) != std::string::npos;
    });
    EXPECT_TRUE(found) << c.items << to_text(problems);
    EXPECT_EQ(Error(problems).exit_code(), 3) << c.items;
  }
  // What was given and refused is not also missing.
  for (const char* item : {"- {node: 0, compute: 0}\n", "- {node: -1, compute: 2}\n"}) {
    EXPECT_EQ(problems_of(kFour + std::string(item)).size(), 1U) << item;
  }
  EXPECT_EQ(exit_code_of(kFour + std::string("- {from: trace.json}\n")), 3);  // no target either
  EXPECT_EQ(exit_code_of(kTiny, {"perturb=[{rank: 0, compute: 2, from: trace.json}]"}), 4);
  EXPECT_EQ(exit_code_of(kTiny, {"perturb=[{node: 0, bandwidth: 0.5}]"}), 3);  // local-cpu has no NIC
  EXPECT_EQ(exit_code_of(kTiny, {"perturb={node: 0, compute: 2}"}), 0);
}

// Four nodes of two: the job leaves node 1 out, so its NICs matter to no one; without node 2's there is no way out of
// it.
TEST(Perturbations, JudgeTheNodesOfTheJobOnly) {
  const std::vector<std::string> elsewhere = {"placement.exclude=[1]"};
  const Scenario s =
      perturbed("- {node: 1, down: true}\n- {node: 1, compute: 2}\n- {node: 2, compute: 3}\n", elsewhere);
  EXPECT_EQ(devices(s), (Devices{4, 5}));
  const std::vector<Problem> problems = problems_of(std::string(kFour) + "- {node: 2, down: true}\n", elsewhere);
  ASSERT_EQ(problems.size(), 1u) << to_text(problems);
  EXPECT_EQ(problems[0].message, "all NICs of node 2 are down");
  EXPECT_EQ(problems[0].where.field, "perturb");
  EXPECT_GT(problems[0].where.line, 0);
}

const std::string kPlain = std::string(kFour).substr(0, std::string(kFour).rfind("perturb"));

TEST(Placement, IsContiguousUnlessSaid) {
  for (const std::vector<std::string>& settings :
       {std::vector<std::string>{}, {"placement.nodes=contiguous"}, {"placement={nodes: contiguous, exclude: []}"}}) {
    const Scenario s = read_text(kPlain, settings).scenario;
    EXPECT_TRUE(s.placement.empty());
    EXPECT_EQ(s.device_of(3), 3);
    EXPECT_EQ(s.cluster.nodes, 4);
  }
}

// Nodes 0, 2, 3, 5 of two devices each; the cluster must reach node 5.
TEST(Placement, LeavesOutExcludedNodes) {
  const Scenario s = read_text(kPlain, {"placement.exclude=[4, 1, 17]"}).scenario;
  EXPECT_EQ(s.placement, (std::vector<std::int32_t>{0, 1, 4, 5, 6, 7, 10, 11}));
  EXPECT_EQ(s.device_of(3), 5);
  EXPECT_EQ(s.cluster.nodes, 6);
  const program::Program p = lower(s);
  EXPECT_EQ(p.ranks[program::RankId(2)].device, 4);
  EXPECT_EQ(p.ranks[program::RankId(7)].device, 11);
}

// A permutation of the same nodes that keeps a node's ranks together, set by the seed alone.
TEST(Placement, ScattersTheNodesBySeed) {
  const auto place = [](const std::string& seed) {
    return read_text(kPlain, {"gpus=64", "training.global_batch_size=32",
                              "placement={nodes: scattered, seed: " + seed + ", exclude: 3}"})
        .scenario;
  };
  const Scenario s = place("1");
  ASSERT_EQ(s.placement.size(), 64u);
  EXPECT_EQ(s.cluster.nodes, 33);
  std::vector<std::int32_t> sorted = s.placement;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int32_t> expected;
  for (std::int32_t d = 0; d < 66; ++d) {
    if (d / 2 != 3) expected.push_back(d);
  }
  EXPECT_EQ(sorted, expected);
  for (std::size_t r = 0; r < 64; r += 2) EXPECT_EQ(s.placement[r + 1], s.placement[r] + 1);
  EXPECT_NE(s.placement, expected);
  EXPECT_EQ(place("1").placement, s.placement);
  EXPECT_NE(place("2").placement, s.placement);
  EXPECT_EQ(find_value(read_text(kPlain, {"placement.nodes=scattered"}), "placement.nodes")->value, "scattered");
}

TEST(Placement, ReadsNodesFromAFile) {
  const ScratchFolder folder;
  folder.write("hosts.txt", "# rack 7\n5\n 0 # leads\n\n9\n2\r\n11\n");
  config::ScenarioSource source;
  source.file = folder.write("run.yaml", kPlain + "placement: {nodes: hosts.txt, exclude: [9]}\n");
  const Scenario s = read_scenario(source).scenario;
  EXPECT_EQ(s.placement, (std::vector<std::int32_t>{10, 11, 0, 1, 4, 5, 22, 23}));
  EXPECT_EQ(s.cluster.nodes, 12);
  const auto problem = [&](const std::string& text) {
    folder.write("hosts.txt", text);
    try {
      read_scenario(source);
    } catch (const Error& fault) {
      EXPECT_EQ(fault.exit_code(), 3);
      const Problem& first = fault.problems().front();
      return first.message + " " + first.where.file + ":" + std::to_string(first.where.line);
    }
    return std::string("accepted");
  };
  EXPECT_NE(problem("1\n2\nthree\n4\n").find("hosts.txt:3"), std::string::npos);
  EXPECT_NE(problem("1\n2\n-3\n4\n").find("is not a node number"), std::string::npos);
  EXPECT_NE(problem("1\n2\n3\n2\n").find("node 2 twice"), std::string::npos);
  EXPECT_NE(problem("1\n2\n3\n").find("names 3 nodes, 8 GPUs need 4"), std::string::npos);
  EXPECT_NE(problem("1\n2\n3\n16000000\n").find("2^24"), std::string::npos);
}

TEST(Placement, RefusesWhatIsNoPlacement) {
  EXPECT_EQ(exit_code_of(kPlain, {"placement.nodes=random"}), 3);
  EXPECT_EQ(exit_code_of(kPlain, {"placement.nodes=./no-such-file"}), 3);
  EXPECT_EQ(exit_code_of(kPlain, {"placement.exclude=[-1]"}), 3);
  EXPECT_EQ(read_text(kPlain, {"placement.seed=1"}).warnings.size(), 1u);
  // local-cpu has no network: one node, whichever it is.
  EXPECT_EQ(exit_code_of(kTiny, {"placement.exclude=[0]"}), 0);
}

// Perturbations name nodes of the cluster and ranks of the job: here rank 2 is on node 2 of nodes 0, 2, 3, 4.
TEST(Placement, IsWherePerturbationsAct) {
  const std::vector<std::string> without = {"placement.exclude=[1]"};
  EXPECT_EQ(devices(perturbed("- {rank: 2, compute: 2}\n", without)), (Devices{4}));
  EXPECT_EQ(devices(perturbed("- {node: 4, compute: 2}\n", without)), (Devices{8, 9}));
  EXPECT_EQ(devices(perturbed("- {stage: 1, compute: 2}\n", without)), (Devices{6, 7, 8, 9}));
}

TEST(JitterKey, IsNothingUnlessASigmaIsGiven) {
  EXPECT_FALSE(read_tiny({}).scenario.jitter.has_value());
  EXPECT_FALSE(read_tiny({"jitter=none"}).scenario.jitter.has_value());
  const ReadScenario idle = read_tiny({"jitter.seed=3"});
  EXPECT_FALSE(idle.scenario.jitter.has_value());
  EXPECT_EQ(idle.warnings.size(), 1u);
  const Scenario s = read_tiny({"jitter={compute_sigma: 0.02, seed: 7}"}).scenario;
  ASSERT_TRUE(s.jitter.has_value());
  EXPECT_DOUBLE_EQ(s.jitter->compute_sigma, 0.02);
  EXPECT_DOUBLE_EQ(s.jitter->comm_sigma, 0);
  EXPECT_EQ(s.jitter->samples, 200);
  EXPECT_EQ(s.jitter->seed, 7u);
  EXPECT_EQ(exit_code_of(kTiny, {"jitter.compute_sigma=1.01"}), 3);
  EXPECT_EQ(exit_code_of(kTiny, {"jitter={compute_sigma: 0.1, samples: 0}"}), 3);
  EXPECT_EQ(exit_code_of(kTiny, {"jitter={kind: none, comm_sigma: 0.1}"}), 3);
  EXPECT_EQ(exit_code_of(kTiny, {"jitter=some"}), 3);
}

TEST(JobKey, IsATotalOfTokens) {
  EXPECT_FALSE(read_tiny({}).scenario.job.has_value());
  const ReadScenario read = read_tiny({"job={tokens: 15 Ttok, price: 2.5 $/GPU-h}"});
  ASSERT_TRUE(read.scenario.job.has_value());
  EXPECT_DOUBLE_EQ(read.scenario.job->tokens, 15e12);
  ASSERT_TRUE(read.scenario.job->price.has_value());
  EXPECT_DOUBLE_EQ(*read.scenario.job->price, 2.5);
  EXPECT_DOUBLE_EQ(read.scenario.job->pue, 1.1);
  EXPECT_EQ(find_value(read, "job.pue")->origin, "default");
  EXPECT_FALSE(read_tiny({"job.tokens=1 Gtok"}).scenario.job->price.has_value());
  EXPECT_EQ(read_tiny({"job.price=2.5 $/GPU-h"}).warnings.size(), 1u);
  EXPECT_EQ(exit_code_of(kTiny, {"job.tokens=15"}), 3);
  EXPECT_EQ(exit_code_of(kTiny, {"job={tokens: 1 Ttok, pue: 0.9}"}), 3);
  EXPECT_EQ(exit_code_of(kTiny, {"job={tokens: 1 Ttok, spares: 8}"}), 4);
}

TEST(Environment, KeepsWhatActsAndNotesTheRest) {
  const ReadScenario read =
      read_tiny({"stack.env={NCCL_ALGO: Ring, NCCL_NVLS_ENABLE: 0, NCCL_DEBUG: INFO, CUDA_DEVICE_MAX_CONNECTIONS: 1}"});
  EXPECT_EQ(read.scenario.environment,
            (std::map<std::string, std::string>{{"NCCL_ALGO", "Ring"}, {"NCCL_NVLS_ENABLE", "0"}}));
  ASSERT_EQ(read.notes.size(), 1u);
  EXPECT_EQ(read.notes[0], "stack.env: without influence here: NCCL_DEBUG");
  EXPECT_TRUE(read_tiny({"stack.env={NCCL_PROTO: LL128, NCCL_MAX_CTAS: 8}"}).notes.empty());
  EXPECT_EQ(exit_code_of(kTiny, {"stack.env={NCCL_ALGO: [Ring]}"}), 3);
}

// kTiny has nine lines.
TEST(Environment, KnowsWhereEachVariableWasGiven) {
  const ReadScenario read = read_text(std::string(kTiny) + "stack:\n  env:\n    NCCL_PROTO: LL\n    NCCL_ALGO: Ring\n");
  ASSERT_EQ(read.environment_at.size(), 2u);
  const Location& at = read.environment_at.at("NCCL_ALGO");
  EXPECT_EQ(at.line, 13);
  EXPECT_EQ(at.field, "stack.env.NCCL_ALGO");
  EXPECT_TRUE(at.file.ends_with("run.yaml")) << at.file;
  EXPECT_EQ(read_tiny({"stack.env.NCCL_ALGO=Ring"}).environment_at.at("NCCL_ALGO").line, 0);
}

}  // namespace
}  // namespace stepcast::plan
