// The cluster presets as shipped, through the same binder as a scenario's cluster block.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "config/bind.h"
#include "config/document.h"
#include "topology/cluster.pb.h"
#include "topology/cluster_reader.h"

namespace stepcast::topology {
namespace {

const char* const kFolder = STEPCAST_SOURCE_DIR "/scenarios/clusters/";

std::string preset_text(const std::string& name) {
  std::ifstream file(kFolder + name + ".yaml", std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

config::Node own_tree(const std::string& name) { return config::parse_document(preset_text(name), name + ".yaml"); }

// Over those it is based on.
config::Node whole_tree(const std::string& name) {
  config::Node tree = own_tree(name);
  const config::Node* base = tree.find("base");
  if (base == nullptr) return tree;
  config::Node under = whole_tree(base->text);
  tree.erase("base");
  config::merge(under, tree, *proto::Cluster::descriptor());
  return under;
}

Cluster bound(const config::Node& tree) {
  proto::Cluster message;
  ProblemList problems;
  std::vector<config::BoundValue> values;
  config::bind(tree, message, problems, values);
  problems.throw_if_any();
  return cluster_of(message, [&](const std::string& field) { return Location{tree.where.file, 0, field}; });
}

Cluster preset(const std::string& name) { return bound(whole_tree(name)); }

struct Stated {
  std::string field;
  std::string value;
};

void append_stated(const config::Node& node, const std::string& path, std::vector<Stated>& stated) {
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const std::string field = path.empty() ? node.keys[i] : path + "." + node.keys[i];
    const config::Node& value = node.children[i];
    if (value.kind == config::Node::Kind::kMap) {
      append_stated(value, field, stated);
    } else {
      stated.push_back({field, config::flow_text(value)});
    }
  }
}

// The figures a file states itself: all but the names of the cluster and of its parts.
std::vector<Stated> figures_of(const std::string& name) {
  const std::string names[] = {"schema", "name", "base", "sources", "gpu.name", "gpu.kind"};
  std::vector<Stated> stated;
  append_stated(own_tree(name), "", stated);
  std::erase_if(stated, [&](const Stated& s) { return std::find(names, std::end(names), s.field) != std::end(names); });
  return stated;
}

std::vector<std::string> sources_of(const std::string& name) {
  std::vector<std::string> lines;
  const config::Node tree = own_tree(name);
  const config::Node* sources = tree.find("sources");
  if (sources == nullptr) return lines;
  for (const config::Node& line : sources->children) lines.push_back(line.text);
  return lines;
}

TEST(Presets, AllLoadUnderTheNamesOfTheirFiles) {
  const std::vector<std::string> names = preset_names();
  // 17 nodes (with local-cpu) and 22 nodes on fabrics.
  EXPECT_GE(names.size(), 39u);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const Cluster cluster = preset(name);
    EXPECT_EQ(cluster.name, name);
    EXPECT_NE(cluster.node.device.name, "");
    const bool on_fabric = own_tree(name).find("base") != nullptr;
    EXPECT_EQ(cluster.fabric.kind != FabricKind::kNone, on_fabric);
    EXPECT_EQ(cluster.node.nic.rate.value > 0, on_fabric);
  }
}

TEST(Presets, GiveASourceForEveryFigureAndNoOther) {
  for (const std::string& name : preset_names()) {
    const std::vector<Stated> figures = figures_of(name);
    const std::vector<std::string> sources = sources_of(name);
    for (const Stated& figure : figures) {
      const std::string line = figure.field + " " + figure.value + ": ";
      EXPECT_TRUE(std::any_of(
          sources.begin(), sources.end(),
          [&](const std::string& source) { return source.starts_with(line) && source.size() > line.size(); }))
          << name << " has no source '" << line << "...'";
    }
    EXPECT_EQ(sources.size(), figures.size()) << name << " states sources of figures that it does not state";
  }
}

TEST(Presets, OnFabricsStateNothingOfTheirNodes) {
  for (const std::string& name : preset_names()) {
    if (own_tree(name).find("base") == nullptr) continue;
    for (const Stated& figure : figures_of(name)) {
      EXPECT_TRUE(figure.field.starts_with("nic.") || figure.field.starts_with("fabric.") ||
                  figure.field == "scale_up.domain")
          << name << " states " << figure.field;
    }
  }
}

// A tensor core's dense BF16 FLOP in a cycle, of all those in one multiprocessor: A100 4 x 256 FMA, H100 4 x 512,
// Blackwell 4 x 1,024 (the whitepapers); MI300X 4 x 256 and MI355X 4 x 512 a compute unit. FP8 is twice BF16 where
// there is any. A peak with sparsity would be twice these.
TEST(Presets, PeaksAreDense) {
  const std::map<std::string, double> flop_per_cycle = {{"sm80", 2048},  {"sm90", 4096},  {"sm100", 8192},
                                                        {"sm103", 8192}, {"cdna3", 2048}, {"cdna4", 4096}};
  int checked = 0;
  for (const std::string& name : preset_names()) {
    const DeviceSpec device = preset(name).node.device;
    if (device.kind == DeviceKind::kCpu) continue;
    SCOPED_TRACE(name);
    EXPECT_EQ(device.peak_fp8.value > 0, device.architecture != "sm80");
    if (device.peak_fp8.value > 0) {
      EXPECT_NEAR(device.peak_fp8.value / device.peak_bf16.value, 2, 0.002);
    }
    // FP4 is at least twice FP8 where there is any: on Blackwell.
    const bool blackwell = device.architecture == "sm100" || device.architecture == "sm103";
    EXPECT_EQ(device.peak_fp4.value > 0, blackwell);
    if (blackwell) {
      EXPECT_GE(device.peak_fp4.value, 2 * device.peak_fp8.value);
    }
    if (device.clock == 0) continue;  // H20: its peak is capped by other means than the clock
    ++checked;
    const double peak = device.multiprocessors * flop_per_cycle.at(device.architecture) * device.clock;
    EXPECT_NEAR(peak / device.peak_bf16.value, 1, 0.001);
  }
  EXPECT_GE(checked, 35);
}

// Links of a device and the rate of one, per direction: NVLink 3 and 4 25 GB/s, NVLink 5 50 GB/s, Infinity Fabric 64
// and 76.8 GB/s. A rate of both directions together would be twice these.
TEST(Presets, ScaleUpRatesAreOfOneDirection) {
  const struct {
    const char* name;
    double links;
    double gigabytes;
  } cases[] = {{"hgx-a100-40", 12, 25}, {"hgx-a100-80", 12, 25}, {"hgx-a800", 8, 25},  {"hgx-h100", 18, 25},
               {"hgx-h800", 8, 25},     {"hgx-h200", 18, 25},    {"hgx-h20", 18, 25},  {"h100-pcie", 12, 25},
               {"gh200", 18, 25},       {"hgx-b200", 18, 50},    {"hgx-b300", 18, 50}, {"gb200", 18, 50},
               {"gb300", 18, 50},       {"mi300x-8", 7, 64},     {"mi355x-8", 7, 76.8}};
  for (const auto& c : cases) {
    EXPECT_DOUBLE_EQ(preset(c.name).node.scale_up.bandwidth.value, c.links * c.gigabytes * 1e9) << c.name;
  }
}

// The GB of NVIDIA's data sheets are GiB: drivers report more bytes than so many GB, and nearly as many as so many GiB.
// H200: 143,771 MiB = 150.8 GB > 141 GB, and 99.6 % of 141 GiB.
TEST(Presets, MemoryIsCountedInGiB) {
  int checked = 0;
  for (const std::string& name : preset_names()) {
    const DeviceSpec device = preset(name).node.device;
    if (device.memory_visible == device.memory) continue;
    ++checked;
    const double gib = static_cast<double>(device.memory.count) / 0x1p30;
    const auto visible = static_cast<double>(device.memory_visible.count);
    EXPECT_GT(visible, gib * 1e9) << name;
    EXPECT_GT(visible / 0x1p30 / gib, 0.985) << name;
  }
  EXPECT_GE(checked, 30);
}

// The figures of the NVIDIA H100 datasheet: 1979 TFLOP/s sparse is 989.5 dense, NVLink 900 GB/s is 450 each way, 80 GB
// of HBM3 are five stacks of 16 GiB = 5 * 2^34 bytes, of which NVML reports 81559 MiB.
TEST(HgxH100, StatesTheVendorsFigures) {
  const Cluster cluster = preset("hgx-h100");
  const DeviceSpec& device = cluster.node.device;
  EXPECT_EQ(cluster.devices(), 8);
  EXPECT_EQ(device.name, "H100-SXM-80GB");
  EXPECT_EQ(device.kind, DeviceKind::kGpu);
  EXPECT_EQ(device.architecture, "sm90");
  EXPECT_EQ(device.peak_bf16, FlopsPerSecond(1979e12 / 2));
  EXPECT_EQ(device.peak_fp32, FlopsPerSecond(67e12));
  EXPECT_EQ(device.peak_fp8, FlopsPerSecond(3958e12 / 2));
  EXPECT_EQ(device.memory_bandwidth, BytesPerSecond(3.35e12));
  EXPECT_EQ(device.memory, Bytes(5 * (std::int64_t{1} << 34)));
  EXPECT_EQ(usable_memory(device), Bytes(std::int64_t{81559} << 20));
  EXPECT_EQ(device.multiprocessors, 132);
  EXPECT_EQ(device.power_limit, 700);
  EXPECT_EQ(device.clock, 1.83e9);
  EXPECT_EQ(cluster.node.scale_up.bandwidth, BytesPerSecond(450e9));
  EXPECT_EQ(cluster.node.scale_up.domain, 8);
  EXPECT_TRUE(cluster.node.scale_up.in_switch_reduction);
  EXPECT_EQ(cluster.node.host_link, BytesPerSecond(52e9));
}

TEST(LocalCpu, DescribesPlansOfUpTo64Ranks) {
  const Cluster cluster = preset("local-cpu");
  EXPECT_EQ(cluster.devices(), 64);
  EXPECT_EQ(cluster.node.scale_up.domain, 64);
  EXPECT_EQ(cluster.node.device.kind, DeviceKind::kCpu);
  EXPECT_EQ(cluster.node.device.multiprocessors, 1);
  EXPECT_EQ(cluster.node.device.memory, Bytes(std::int64_t{2} << 30));
}

// 15 of 16 parts of eight stacks work in a 180 GB B200 and a 270 GB B300: 15/16 x 192 and 15/16 x 288 GiB, behind 7,680
// of 8,192 bits at 2 x 3,996 MHz = 7.67 TB/s.
TEST(Blackwell, MemorySizeAndRateAreOfTheSameStacks) {
  const DeviceSpec b200 = preset("hgx-b200").node.device;
  const DeviceSpec b300 = preset("hgx-b300").node.device;
  EXPECT_EQ(b200.memory.count * 16, (std::int64_t{192} << 30) * 15);
  EXPECT_EQ(b300.memory.count * 16, (std::int64_t{288} << 30) * 15);
  EXPECT_NEAR(b200.memory_bandwidth.value, 7680.0 / 8 * 2 * 3996e6, 0.05e12);
  EXPECT_EQ(b300.memory_bandwidth, b200.memory_bandwidth);
}

// 18 trays of four GPUs in a rack; half of NVLink-C2C's 900 / 2 GB/s for each of the two GPUs of a Grace.
TEST(Gb200Nvl72, JoinsTraysToOneDomain) {
  const Cluster tray = preset("gb200");
  EXPECT_EQ(tray.devices(), 4);
  EXPECT_EQ(tray.node.scale_up.domain, 4);
  EXPECT_EQ(tray.node.host_link, BytesPerSecond(900e9 / 2 / 2));
  for (const char* const name : {"gb200-nvl72", "gb300-nvl72"}) {
    const Cluster rack = preset(name);
    EXPECT_EQ(rack.node.scale_up.domain, 18 * rack.node.devices) << name;
    EXPECT_EQ(rack.fabric.unit_nodes % 18, 0) << name;
    EXPECT_EQ(rack.fabric.kind, FabricKind::kRail) << name;
  }
}

// Per GPU and direction: what the name says in Gb/s. AWS: 3,200 Gb/s a node of eight, 32 x 100, 16 x 200 or 8 x 400.
TEST(OnFabrics, CarryWhatTheirNamesSay) {
  int checked = 0;
  for (const std::string& name : preset_names()) {
    for (const double gigabits : {200.0, 400.0, 800.0}) {
      const std::string rate = std::to_string(static_cast<int>(gigabits));
      bool named = false;
      for (const char* const net : {"hdr", "ndr", "xdr", "roce", "efa"}) {
        const std::string tag = std::string("-").append(net).append(rate).append("-");
        named = named || name.find(tag) != std::string::npos;
      }
      if (!named) continue;
      ++checked;
      EXPECT_DOUBLE_EQ(preset(name).node.nic.per_device_rate().value, gigabits / 8 * 1e9) << name;
      EXPECT_EQ(preset(name).fabric.kind == FabricKind::kRail, name.ends_with("-rail")) << name;
    }
  }
  EXPECT_GE(checked, 20);
  EXPECT_EQ(preset("hgx-h100-efa400-rail").node.nic.per_device, 4);
  EXPECT_EQ(preset("hgx-h200-efa400-rail").node.nic.per_device, 2);
  EXPECT_EQ(preset("hgx-b200-efa400-rail").node.nic.per_device, 1);
}

// A leaf of 64 ports of 400 Gb/s, half of them down, takes one NIC of 32 nodes on rails, and all eight of four nodes
// in a plain fat-tree; one of 40 ports of 200 Gb/s takes 20 nodes on rails.
TEST(OnFabrics, UnitsFollowFromThePortsOfALeaf) {
  EXPECT_EQ(preset("hgx-h100-ndr400-rail").fabric.unit_nodes, 64 / 2);
  EXPECT_EQ(preset("hgx-h100-ndr400-fat-tree").fabric.unit_nodes, 64 / 2 / 8);
  EXPECT_EQ(preset("hgx-a100-80-hdr200-rail").fabric.unit_nodes, 40 / 2);
  EXPECT_EQ(preset("hgx-b300-xdr800-rail").fabric.unit_nodes, 144 / 2);
}

std::vector<Problem> problems_in(const std::string& text) {
  try {
    bound(config::parse_document(text, "c.yaml"));
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
      {"architecture: sm90", "architecture: hopper"},
      {"power_limit: 700 W", "power_limit: 700"},
      {"clock: 1830 MHz", "clock: 1830 W"},
      {"sharp: true", "sharp: 1"},
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

TEST(ClusterSchema, RefusesNetworksThatDoNotAddUp) {
  const std::string additions[] = {
      "fabric: {kind: rail}\n",
      "nic: {rate: 400}\n",
      "nic: {rate: 400 Gb/s, kind: token_ring}\n",
      "nic: {rate: 400 Gb/s, efficiency: 1.5}\n",
      "nic: {rate: 400 Gb/s}\nfabric: {kind: mesh}\n",
  };
  for (const std::string& addition : additions) {
    const std::vector<Problem> problems = problems_in(preset_text("hgx-h100") + addition);
    ASSERT_EQ(problems.size(), 1u) << addition << to_text(problems);
    EXPECT_EQ(problems[0].kind, ErrorKind::kInput) << to_text(problems);
  }
}

}  // namespace
}  // namespace stepcast::topology
