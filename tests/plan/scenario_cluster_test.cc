// The cluster block of a scenario: its keys over those of a preset or file, what they come to, and where each came
// from.
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/cluster_reader.h"
#include "tests/plan/scenario_text.h"

namespace stepcast::plan {
namespace {

using topology::FabricKind;

// Four racks of one node of four devices, 50 GB/s NICs, a blocking core.
constexpr const char* kPlant = R"(schema: stepcast/cluster/1
gpu:
  name: Toy
  peak_bf16: 100 TFLOP/s
  peak_fp32: 50 TFLOP/s
  memory: 16 GiB
  hbm_bandwidth: 1 TB/s
  multiprocessors: 10
  power_limit: 300 W
gpus_per_node: 4
scale_up: {bandwidth: 100 GB/s}
host: {pcie: 25 GB/s}
nic: {rate: 400 Gb/s, kind: roce, efficiency: 0.9, latency: 2 us}
fabric: {kind: rail, unit_nodes: 2, oversubscription: [1, 2], routing_efficiency: 0.5}
)";

constexpr const char* kRun = R"(framework: plain
model: {num_hidden_layers: 4, hidden_size: 64, intermediate_size: 192, num_attention_heads: 8,
        num_key_value_heads: 4, vocab_size: 256}
cluster: ./plant.yaml
gpus: 16
training: {sequence_length: 32, global_batch_size: 16, precision: fp32}
plan:
  tp: 4
)";

ReadScenario read_plant(const std::vector<std::string>& settings = {}, const std::string& run = kRun) {
  const ScratchFolder folder;
  folder.write("plant.yaml", kPlant);
  config::ScenarioSource source;
  source.file = folder.write("run.yaml", run);
  for (const std::string& setting : settings) {
    // A path on the command line starts at the current folder.
    source.settings.push_back(config::parse_setting(setting));
  }
  return read_scenario(source);
}

std::vector<Problem> plant_problems(const std::vector<std::string>& settings, const std::string& run = kRun) {
  try {
    return read_plant(settings, run).violations;
  } catch (const Error& fault) {
    return fault.problems();
  }
}

int plant_exit(const std::vector<std::string>& settings) {
  const std::vector<Problem> problems = plant_problems(settings);
  return problems.empty() ? 0 : Error(problems).exit_code();
}

std::string with_cluster(const std::string& cluster) {
  std::string run = kRun;
  const std::string old = "cluster: ./plant.yaml";
  return run.replace(run.find(old), old.size(), cluster);
}

// 16 GPUs of 4 a node are 4 nodes; 400 Gb/s are 50 GB/s.
TEST(ScenarioCluster, ACountOfGpusIsACountOfNodes) {
  const topology::Cluster cluster = read_plant().scenario.cluster;
  EXPECT_EQ(cluster.name, "plant");
  EXPECT_EQ(cluster.nodes, 4);
  EXPECT_EQ(cluster.fabric.kind, FabricKind::kRail);
  EXPECT_DOUBLE_EQ(cluster.node.nic.rate.value, 50e9);
  EXPECT_DOUBLE_EQ(cluster.fabric.spine_oversubscription, 2);
  EXPECT_DOUBLE_EQ(cluster.fabric.routing_efficiency, 0.5);
  EXPECT_EQ(read_plant({"gpus=4"}).scenario.cluster.nodes, 1);
  EXPECT_EQ(read_plant({"gpus=2", "plan.tp=2"}).scenario.cluster.nodes, 1);
}

TEST(ScenarioCluster, KeysOfTheScenarioLieOverThoseOfTheFile) {
  const ReadScenario read =
      read_plant({"cluster.nic.rate=200 Gb/s", "cluster.gpu={memory: 32 GiB, peak_fp8: 200 TFLOP/s}",
                  "cluster.fabric.oversubscription=[1, 7]", "cluster.fabric.pod_nodes=2"});
  const topology::Cluster& cluster = read.scenario.cluster;
  EXPECT_DOUBLE_EQ(cluster.node.nic.rate.value, 25e9);
  EXPECT_DOUBLE_EQ(cluster.node.nic.efficiency, 0.9);  // the file's
  EXPECT_EQ(cluster.node.device.memory.count, std::int64_t{32} << 30);
  EXPECT_EQ(topology::usable_memory(cluster.node.device).count, std::int64_t{32} << 30);
  EXPECT_DOUBLE_EQ(cluster.node.device.peak_fp8.value, 200e12);
  EXPECT_DOUBLE_EQ(cluster.node.device.peak_bf16.value, 100e12);  // the file's
  EXPECT_EQ(cluster.fabric.unit_nodes, 2);
  EXPECT_EQ(cluster.fabric.pod_nodes, 2);
  EXPECT_DOUBLE_EQ(cluster.fabric.spine_oversubscription, 7);
}

// What the driver reports of 80 GB says nothing of another memory; given with it, it holds.
TEST(ScenarioCluster, MemoryOfAScenarioHasNotTheVisibleMemoryOfThePreset) {
  config::ScenarioSource source;
  for (const char* setting : {"model=llama-3.2-1b", "cluster=hgx-h100", "gpus=1", "training.sequence_length=1024",
                              "training.global_batch_size=1"}) {
    source.settings.push_back(config::parse_setting(setting));
  }
  const auto usable = [&source](const char* gpu) {
    config::ScenarioSource changed = source;
    changed.settings.push_back(config::parse_setting(std::string("cluster={base: hgx-h100, gpu: ") + gpu + "}"));
    return topology::usable_memory(read_scenario(changed).scenario.cluster.node.device).count;
  };
  EXPECT_EQ(usable("{memory: 192 GiB}"), std::int64_t{192} << 30);
  EXPECT_EQ(usable("{memory: 40 GiB}"), std::int64_t{40} << 30);
  EXPECT_EQ(usable("{memory: 192 GiB, memory_visible: 190 GiB}"), std::int64_t{190} << 30);
}

// Lines: hbm_bandwidth is on line 7 of the file, the cluster's keys on lines 5 and 6 of the scenario.
TEST(ScenarioCluster, SaysWhereEveryFigureComesFrom) {
  const ReadScenario read =
      read_plant({"cluster.nic.latency=3 us"}, with_cluster("cluster:\n  base: ./plant.yaml\n  nic: {rate: 200 Gb/s}"));
  const auto at = [&](const char* field, const char* value, const std::string& origin) {
    const ConfigValue* found = find_value(read, field);
    ASSERT_NE(found, nullptr) << field;
    EXPECT_EQ(found->value, value) << field;
    EXPECT_NE(found->origin.find(origin), std::string::npos) << field << " " << found->origin;
  };
  at("cluster.base", "./plant.yaml", "run.yaml:5");
  at("cluster.gpu.hbm_bandwidth", "1 TB/s", "plant.yaml:7");
  at("cluster.nic.rate", "200 Gb/s", "run.yaml:6");
  at("cluster.nic.efficiency", "0.9", "plant.yaml:13");
  at("cluster.nic.latency", "3 us", "--set cluster.nic.latency=3 us");
  at("cluster.scale_up.domain", "4", "derived: gpus_per_node");
  at("cluster.fabric.oversubscription", "[1, 2]", "plant.yaml:14");
  at("cluster.fabric.routing", "e_ecmp", "derived: by nic.kind");
  const ReadScenario preset = read_tiny({});
  EXPECT_EQ(find_value(preset, "cluster.gpus_per_node")->origin.find("clusters/local-cpu.yaml:"), 0u);
  EXPECT_NE(find_value(preset, "cluster.gpus_per_node")->origin.find(" (built in)"), std::string::npos);
}

// The file's 0.5 is a figure of its routing; with another routing it would be a figure of nothing.
TEST(ScenarioCluster, AnotherRoutingHasItsOwnEfficiency) {
  EXPECT_NE(read_plant({"cluster.fabric.routing=adaptive"}).scenario.cluster.fabric.routing_efficiency, 0.5);
  EXPECT_DOUBLE_EQ(read_plant({"cluster.fabric={routing: ecmp, routing_efficiency: 0.25}"})
                       .scenario.cluster.fabric.routing_efficiency,
                   0.25);
}

// A required figure may be in either; without a base all of them are in the scenario.
TEST(ScenarioCluster, NeedsWhatNeitherStates) {
  const std::string whole =
      "cluster: {gpu: {name: Toy, peak_bf16: 1 TFLOP/s, peak_fp32: 1 TFLOP/s, memory: 1 GiB, hbm_bandwidth: 1 TB/s, "
      "multiprocessors: 1}, gpus_per_node: 16, scale_up: {bandwidth: 1 GB/s}, host: {pcie: 1 GB/s}}";
  EXPECT_TRUE(plant_problems({}, with_cluster(whole)).empty());
  EXPECT_EQ(read_plant({}, with_cluster(whole)).scenario.cluster.name, "custom");
  const std::vector<Problem> part = plant_problems({}, with_cluster("cluster: {gpus_per_node: 16}"));
  ASSERT_EQ(part.size(), 1u) << to_text(part);
  EXPECT_EQ(part[0].where.field, "cluster.base");
  const std::vector<Problem> none = plant_problems({}, with_cluster("name: x"));
  ASSERT_EQ(none.size(), 1u) << to_text(none);
  EXPECT_EQ(none[0].where.field, "cluster");
}

TEST(ScenarioCluster, PointsToWhatIsWrong) {
  struct Case {
    const char* setting;
    const char* field;
    const char* help;
  };
  const Case cases[] = {
      {"cluster.nic.rte=200 Gb/s", "cluster.nic.rte", "did you mean rate"},
      {"cluster.fabric.kind=rails", "cluster.fabric.kind", "did you mean rail"},
      {"cluster.nic.rate=200", "cluster.nic.rate", "no unit"},
      {"cluster.gpus_per_node=0", "cluster.gpus_per_node", "at least 1"},
      {"cluster.nic.efficiency=1.5", "cluster.nic.efficiency", "at most 1"},
      {"cluster.nic.per_gpu=0.3", "cluster.nic.per_gpu", "from 1 to 1024, or 1/k"},
      {"cluster.nic.per_gpu=2000", "cluster.nic.per_gpu", "above 0, at most 1024"},
      {"cluster.nic.per_gpu=0.125", "cluster.nic.per_gpu", "a k that divides 4"},
      {"cluster.fabric.oversubscription=0.5", "cluster.fabric.oversubscription", "at least 1, at most 1000000"},
      {"cluster.fabric.oversubscription=1e7", "cluster.fabric.oversubscription", "at least 1, at most 1000000"},
      {"cluster=[1]", "cluster", "expected a struct"},
      {"cluster=", "cluster", "empty"},
  };
  for (const Case& c : cases) {
    const std::vector<Problem> problems = plant_problems({c.setting});
    ASSERT_EQ(problems.size(), 1u) << c.setting << "\n" << to_text(problems);
    std::string text = problems[0].message;
    for (const std::string& line : problems[0].help) text += "\n" + line;
    EXPECT_EQ(problems[0].where.field, c.field);
    EXPECT_NE(text.find(c.help), std::string::npos) << text;
    EXPECT_EQ(Error(problems).exit_code(), 3);
  }
}

// The run's cluster block starts at line 4: its cables are lines 8 to 11.
TEST(ScenarioCluster, PointsToTheCableThatIsWrong) {
  const std::string run = with_cluster(R"(cluster:
  base: ./plant.yaml
  fabric:
    kind: custom
    cables:
      - {a: node0, b: leaf0, rate: 400 Gb/s}
      - {a: node1.nic4, b: leaf0, rate: 400 Gb/s}
      - {a: leaf0, b: leaf0, rate: 400 Gb/s}
      - {a: leaf0, b: node4, rate: 400 Gb/s})");
  const std::vector<Problem> problems = plant_problems({}, run);
  ASSERT_EQ(problems.size(), 2u) << to_text(problems);
  EXPECT_EQ(problems[0].where.field, "cluster.fabric.cables[1].a");
  EXPECT_EQ(problems[0].where.line, 10);
  EXPECT_TRUE(problems[0].where.file.ends_with("run.yaml"));
  EXPECT_EQ(problems[1].where.field, "cluster.fabric.cables[3].b");
  EXPECT_EQ(problems[1].where.line, 12);
  EXPECT_EQ(problems[1].help, std::vector<std::string>{"nodes are 0 to 3"});
}

TEST(ScenarioCluster, PointsToTheCablesWhereANodeHasNone) {
  const std::string run = with_cluster(
      "cluster: {base: ./plant.yaml, fabric: {kind: custom, cables: [{a: node0, b: hub, rate: 1 GB/s}, "
      "{a: node1, b: hub, rate: 1 GB/s}, {a: node3, b: hub, rate: 1 GB/s}]}}");
  const std::vector<Problem> problems = plant_problems({}, run);
  ASSERT_EQ(problems.size(), 1u) << to_text(problems);
  EXPECT_EQ(problems[0].message, "no cable leads to node 2");
  EXPECT_EQ(problems[0].where.field, "cluster.fabric.cables");
  EXPECT_EQ(problems[0].where.line, 4);
  EXPECT_EQ(problems[0].help, std::vector<std::string>{"such as {a: node2, b: hub, rate: 400 Gb/s}"});
}

// Figures without effect so far may be repeated, not changed.
TEST(ScenarioCluster, RefusesFiguresItDoesNotActOn) {
  EXPECT_EQ(plant_exit({"cluster.gpu.power_limit=300 W"}), 0);
  EXPECT_EQ(plant_exit({"cluster.gpu.power_limit=0.3 kW"}), 0);
  EXPECT_EQ(plant_exit({"cluster.gpu.power_limit=250 W"}), 4);
  EXPECT_EQ(plant_exit({"cluster.gpu.clock=1 GHz"}), 4);  // the file states none
  EXPECT_EQ(plant_exit({"cluster.gpu.power_limit=250"}), 3);
}

// 16 GPUs on one node of 16; 6 are one and a half nodes of 4: a job has whole nodes, or a part of one.
TEST(ScenarioCluster, FillsWholeNodesOrAPartOfOne) {
  EXPECT_EQ(read_plant({"cluster.gpus_per_node=16"}).scenario.cluster.nodes, 1);
  EXPECT_EQ(plant_exit({"gpus=2", "plan.tp=1"}), 0);
  const std::vector<Problem> problems = plant_problems({"gpus=6", "plan.tp=1", "training.global_batch_size=6"});
  ASSERT_EQ(problems.size(), 1u) << to_text(problems);
  EXPECT_EQ(problems[0].where.field, "gpus");
  EXPECT_EQ(problems[0].help.front(), "gpus 4 or 8");
  EXPECT_EQ(plant_exit({"nodes=4"}), 0);
  EXPECT_EQ(plant_exit({"nodes=3"}), 3);
}

// Racks of 18 nodes of 4 GPUs in one domain of 72.
TEST(ScenarioCluster, ADomainOfNodesNeedsNoFabric) {
  const std::string racks =
      "cluster: {gpu: {name: Toy, peak_bf16: 1 TFLOP/s, peak_fp32: 1 TFLOP/s, memory: 1 GiB, hbm_bandwidth: 1 TB/s, "
      "multiprocessors: 1}, gpus_per_node: 4, scale_up: {bandwidth: 1 GB/s, domain: 72}, host: {pcie: 1 GB/s}}";
  EXPECT_EQ(read_plant({}, with_cluster(racks)).scenario.cluster.nodes, 4);
  EXPECT_TRUE(plant_problems({}, with_cluster(racks)).empty());
  const std::vector<Problem> beyond =
      plant_problems({"gpus=76", "plan.tp=4", "training.global_batch_size=19"}, with_cluster(racks));
  ASSERT_EQ(beyond.size(), 1u) << to_text(beyond);
  EXPECT_NE(beyond[0].message.find("no network between nodes"), std::string::npos);
  EXPECT_EQ(beyond[0].help.front(), "gpus of at most 72");
  EXPECT_EQ(Error(beyond).exit_code(), 3);
}

TEST(LoadCluster, HasTheNodesThatHoldTheDevices) {
  const ScratchFolder folder;
  const std::string file = folder.write("plant.yaml", kPlant);
  EXPECT_EQ(load_cluster(file, {}, 1).nodes, 1);
  EXPECT_EQ(load_cluster(file, {}, 4).nodes, 1);
  EXPECT_EQ(load_cluster(file, {}, 5).nodes, 2);
  EXPECT_EQ(load_cluster("hgx-h100-ndr400-rail", {}, 1024).nodes, 128);
  EXPECT_EQ(load_cluster("hgx-h100", {}, 8).node.device.name, "H100-SXM-80GB");
  for (const auto& [name, devices] : std::vector<std::pair<std::string, std::int64_t>>{
           {"hgx-h100", 16}, {"no-such-cluster", 1}, {file, (std::int64_t{1} << 24) + 1}}) {
    try {
      load_cluster(name, {}, devices);
      ADD_FAILURE() << name;
    } catch (const Error& fault) {
      EXPECT_EQ(fault.exit_code(), 3) << name;
    }
  }
}

}  // namespace
}  // namespace stepcast::plan
