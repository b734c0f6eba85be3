// The node presets as shipped, through the same binder as a scenario's cluster block.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "config/bind.h"
#include "config/document.h"
#include "topology/cluster.pb.h"
#include "topology/cluster_reader.h"

namespace stepcast::topology {
namespace {

std::string preset_text(const std::string& name) {
  std::string path = STEPCAST_SOURCE_DIR "/scenarios/clusters/";
  path += name;
  path += ".yaml";
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct Bound {
  Cluster cluster;
  std::vector<std::string> fields;  // dotted paths that the file states
};

Bound bound(const std::string& text, const std::string& file) {
  proto::Cluster message;
  ProblemList problems;
  std::vector<config::BoundValue> values;
  config::bind(config::parse_document(text, file), message, problems, values);
  problems.throw_if_any();
  Bound result{cluster_of(message, [&](const std::string& field) { return Location{file, 0, field}; }), {}};
  for (const config::BoundValue& value : values) result.fields.push_back(value.field);
  return result;
}

Bound preset(const std::string& name) { return bound(preset_text(name), name + ".yaml"); }

// The figures of the NVIDIA H100 datasheet: 1979 TFLOP/s sparse is 989.5 dense, NVLink 900 GB/s is 450 each way, 80 GB
// of HBM3 are five stacks of 16 GiB = 5 * 2^34 bytes, of which NVML reports 81559 MiB.
TEST(HgxH100, StatesTheVendorsFigures) {
  const Cluster cluster = preset("hgx-h100").cluster;
  const DeviceSpec& device = cluster.node.device;
  EXPECT_EQ(cluster.name, "hgx-h100");
  EXPECT_EQ(cluster.devices(), 8);
  EXPECT_EQ(device.name, "H100-SXM-80GB");
  EXPECT_EQ(device.kind, DeviceKind::kGpu);
  EXPECT_EQ(device.peak_bf16, FlopsPerSecond(1979e12 / 2));
  EXPECT_EQ(device.peak_fp32, FlopsPerSecond(67e12));
  EXPECT_EQ(device.memory_bandwidth, BytesPerSecond(3.35e12));
  EXPECT_EQ(device.memory, Bytes(5 * (std::int64_t{1} << 34)));
  EXPECT_EQ(usable_memory(device), Bytes(std::int64_t{81559} << 20));
  EXPECT_EQ(device.multiprocessors, 132);
  EXPECT_EQ(cluster.node.scale_up.bandwidth, BytesPerSecond(450e9));
  EXPECT_EQ(cluster.node.scale_up.domain, 8);
  EXPECT_EQ(cluster.node.host_link, BytesPerSecond(52e9));
}

TEST(LocalCpu, DescribesPlansOfUpTo64Ranks) {
  const Cluster cluster = preset("local-cpu").cluster;
  EXPECT_EQ(cluster.devices(), 64);
  EXPECT_EQ(cluster.node.scale_up.domain, 64);
  EXPECT_EQ(cluster.node.device.kind, DeviceKind::kCpu);
  EXPECT_EQ(cluster.node.device.multiprocessors, 1);
  EXPECT_EQ(cluster.node.device.memory, Bytes(std::int64_t{2} << 30));
}

TEST(NodePresets, GiveASourceForEveryFigure) {
  for (const char* const name : {"hgx-h100", "local-cpu"}) {
    const Bound result = preset(name);
    for (const std::string& field : result.fields) {
      const bool figure = field.find('.') != std::string::npos || field == "gpus_per_node";
      if (!figure || field == "gpu.name" || field == "gpu.kind") continue;
      const auto& sources = result.cluster.sources;
      EXPECT_TRUE(std::any_of(sources.begin(), sources.end(),
                              [&](const std::string& line) { return line.rfind(field + " ", 0) == 0; }))
          << name << " states no source for " << field;
    }
    EXPECT_GE(result.cluster.sources.size(), 7u) << name;
  }
}

std::vector<Problem> problems_in(const std::string& text) {
  try {
    bound(text, "c.yaml");
  } catch (const Error& e) {
    return e.problems();
  }
  return {};
}

// The text of hgx-h100 with one piece replaced; `from` must occur.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = preset_text("hgx-h100");
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(ClusterSchema, RefusesBareNumbersWrongUnitsAndUnknownKeys) {
  const std::string cases[][2] = {
      {"450 GB/s", "450"},
      {"450 GB/s", "450 GB"},
      {"80 GiB", "80 GB/s"},
      {"gpus_per_node: 8", "gpus_per_node: 0"},
      {"gpus_per_node: 8", "gpus_per_nod: 8\ngpus_per_node: 8"},
      {"kind: gpu", "kind: tpu"},
      {"multiprocessors: 132", "multiprocessors: 1.5"},
      {"  multiprocessors: 132\n", ""},
  };
  for (const auto& c : cases) {
    const std::vector<Problem> problems = problems_in(changed(c[0], c[1]));
    ASSERT_EQ(problems.size(), 1u) << c[1] << "\n" << to_text(problems);
    EXPECT_EQ(problems[0].kind, ErrorKind::kInput) << to_text(problems);
    EXPECT_EQ(problems[0].where.file, "c.yaml");
  }
}

TEST(ClusterSchema, KnowsKeysThatAreNotSupportedYet) {
  const std::string additions[] = {"fabric: {kind: rail}\n", "nic: {rate: 400 Gb/s}\n"};
  for (const std::string& addition : additions) {
    const std::vector<Problem> problems = problems_in(preset_text("hgx-h100") + addition);
    ASSERT_EQ(problems.size(), 1u) << addition << to_text(problems);
    EXPECT_EQ(problems[0].kind, ErrorKind::kUnsupported) << to_text(problems);
  }
  EXPECT_EQ(problems_in(changed("bandwidth: 450 GB/s", "bandwidth: 450 GB/s\n  sharp: true"))[0].kind,
            ErrorKind::kUnsupported);
  EXPECT_TRUE(problems_in(changed("bandwidth: 450 GB/s", "bandwidth: 450 GB/s\n  sharp: false")).empty());
}

}  // namespace
}  // namespace stepcast::topology
