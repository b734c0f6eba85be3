// cluster_of: what it copies, its defaults, and every check with the field it names.
#include "topology/cluster_reader.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "topology/cluster.pb.h"

namespace stepcast::topology {
namespace {

Location locate(const std::string& field) { return {"c.yaml", 7, "cluster." + field}; }

proto::Cluster valid() {
  proto::Cluster message;
  message.set_name("box");
  message.set_gpus_per_node(8);
  message.mutable_gpu()->set_name("unit");
  message.mutable_gpu()->set_peak_bf16(100e12);
  message.mutable_gpu()->set_peak_fp32(10e12);
  message.mutable_gpu()->set_memory(1000);
  message.mutable_gpu()->set_hbm_bandwidth(1e12);
  message.mutable_gpu()->set_multiprocessors(16);
  message.mutable_scale_up()->set_bandwidth(100e9);
  message.mutable_host()->set_pcie(20e9);
  message.add_sources("gpu.memory: made up");
  return message;
}

TEST(ClusterOf, CopiesEveryFigureAndFillsInDefaults) {
  const Cluster cluster = cluster_of(valid(), locate);
  EXPECT_EQ(cluster.name, "box");
  EXPECT_EQ(cluster.nodes, 1);
  EXPECT_EQ(cluster.devices(), 8);
  EXPECT_EQ(cluster.node.device.name, "unit");
  EXPECT_EQ(cluster.node.device.kind, DeviceKind::kGpu);
  EXPECT_EQ(cluster.node.device.peak_bf16, FlopsPerSecond(100e12));
  EXPECT_EQ(cluster.node.device.peak_fp32, FlopsPerSecond(10e12));
  EXPECT_EQ(cluster.node.device.memory, Bytes(1000));
  EXPECT_EQ(cluster.node.device.memory_visible, Bytes(1000));
  EXPECT_EQ(cluster.node.device.memory_bandwidth, BytesPerSecond(1e12));
  EXPECT_EQ(cluster.node.device.multiprocessors, 16);
  EXPECT_EQ(cluster.node.scale_up.bandwidth, BytesPerSecond(100e9));
  EXPECT_EQ(cluster.node.scale_up.domain, 8);
  EXPECT_EQ(cluster.node.host_link, BytesPerSecond(20e9));
  EXPECT_EQ(cluster.sources, (std::vector<std::string>{"gpu.memory: made up"}));
}

TEST(ClusterOf, TakesWhatIsStatedOverDefaults) {
  proto::Cluster message = valid();
  message.clear_name();
  message.mutable_gpu()->set_kind("cpu");
  message.mutable_gpu()->set_memory_visible(900);
  message.mutable_scale_up()->set_domain(4);
  const Cluster cluster = cluster_of(message, locate);
  EXPECT_EQ(cluster.name, "custom");
  EXPECT_EQ(cluster.node.device.kind, DeviceKind::kCpu);
  EXPECT_EQ(usable_memory(cluster.node.device), Bytes(900));
  EXPECT_EQ(cluster.node.scale_up.domain, 4);
}

// 72 devices are nine nodes of 8.
TEST(ClusterOf, TakesDomainsOfSeveralNodes) {
  proto::Cluster message = valid();
  message.mutable_scale_up()->set_domain(72);
  EXPECT_EQ(cluster_of(message, locate).node.scale_up.domain, 72);
}

TEST(ClusterOf, NamesTheFieldOfEachBadValue) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const struct {
    const char* field;
    ErrorKind kind;
    std::function<void(proto::Cluster&)> spoil;
  } cases[] = {
      {"gpu.name", ErrorKind::kInput, [](auto& c) { c.mutable_gpu()->clear_name(); }},
      {"gpu.kind", ErrorKind::kInput, [](auto& c) { c.mutable_gpu()->set_kind("tpu"); }},
      {"gpu.peak_bf16", ErrorKind::kInput, [](auto& c) { c.mutable_gpu()->set_peak_bf16(kNan); }},
      {"gpu.peak_fp32", ErrorKind::kInput, [](auto& c) { c.mutable_gpu()->set_peak_fp32(0); }},
      {"gpu.hbm_bandwidth", ErrorKind::kInput, [](auto& c) { c.mutable_gpu()->set_hbm_bandwidth(-1); }},
      {"gpu.memory_visible", ErrorKind::kInput, [](auto& c) { c.mutable_gpu()->set_memory_visible(1001); }},
      {"gpu.memory_visible", ErrorKind::kInput, [](auto& c) { c.mutable_gpu()->set_memory_visible(0); }},
      {"gpu.multiprocessors", ErrorKind::kInput, [](auto& c) { c.mutable_gpu()->set_multiprocessors(0); }},
      {"gpus_per_node", ErrorKind::kInput, [](auto& c) { c.set_gpus_per_node(65537); }},
      {"scale_up.bandwidth", ErrorKind::kInput, [](auto& c) { c.mutable_scale_up()->set_bandwidth(1e300); }},
      {"scale_up.domain", ErrorKind::kInput, [](auto& c) { c.mutable_scale_up()->set_domain(3); }},
      {"scale_up.domain", ErrorKind::kInput, [](auto& c) { c.mutable_scale_up()->set_domain(-1); }},
      {"scale_up.domain", ErrorKind::kInput, [](auto& c) { c.mutable_scale_up()->set_domain(12); }},
      {"host.pcie", ErrorKind::kInput, [](auto& c) { c.mutable_host()->set_pcie(0.5); }},
  };
  for (const auto& c : cases) {
    proto::Cluster message = valid();
    c.spoil(message);
    try {
      cluster_of(message, locate);
      ADD_FAILURE() << "accepted a bad " << c.field;
    } catch (const Error& e) {
      ASSERT_EQ(e.problems().size(), 1u) << e.what();
      EXPECT_EQ(e.problems()[0].where.field, std::string("cluster.") + c.field);
      EXPECT_EQ(e.problems()[0].where.line, 7);
      EXPECT_EQ(e.kind(), c.kind) << c.field;
    }
  }
}

// An empty message lacks the name, four rates of gpu and scale_up, memory (and so visible memory), multiprocessors,
// gpus_per_node (and so the domain) and host.pcie.
TEST(ClusterOf, ReportsAllProblemsAtOnce) {
  try {
    cluster_of(proto::Cluster(), locate);
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.problems().size(), 11u) << e.what();
  }
}

}  // namespace
}  // namespace stepcast::topology
