// What is said of a machine's GPUs, from what CUDA answers in the cases that are known: without a driver
// cudaGetDeviceCount is 35 with a driver version of 0, with an older one 35 with its version, with a driver and no
// device 100 (CUDA runtime API, cudaError).
#include "exec/cuda_facts.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace stepcast::exec {
namespace {

CudaFacts devices(std::size_t count) {
  CudaFacts facts{.runtime_version = 13000, .driver_version = 13010, .nccl_version = 22809};
  facts.devices.assign(count, {"NVIDIA H200", 9, 0, 132, 150754820096});
  return facts;
}

std::string reason(const CudaFacts& facts, int ranks) {
  const std::optional<CudaProblem> problem = why_no_cuda(facts, ranks);
  if (!problem) return "";
  EXPECT_FALSE(problem->help.empty()) << problem->reason;
  return problem->reason;
}

TEST(CudaFacts, RunAsManyRanksAsThereAreDevices) {
  EXPECT_EQ(reason(devices(1), 1), "");
  EXPECT_EQ(reason(devices(8), 8), "");
  EXPECT_EQ(reason(devices(1), 4), "4 ranks on this machine, which has 1 GPU: each rank needs one of its own");
  EXPECT_EQ(reason(devices(2), 4), "4 ranks on this machine, which has 2 GPUs: each rank needs one of its own");
}

TEST(CudaFacts, NeedNcclForSeveralRanksOnly) {
  CudaFacts facts = devices(2);
  facts.nccl_version = 0;
  EXPECT_EQ(reason(facts, 1), "");
  EXPECT_EQ(reason(facts, 2), "NCCL is not linked, and ranks talk through it");
}

TEST(CudaFacts, SayWhyThereIsNoDevice) {
  CudaFacts facts{.runtime_version = 13000, .error = 35, .error_text = "insufficient"};
  EXPECT_EQ(reason(facts, 1), "no NVIDIA driver (error 35)");
  facts.driver_version = 12020;
  EXPECT_EQ(reason(facts, 1), "the driver runs CUDA up to 12.2, this program has 13.0 (error 35)");
  facts.error = 100;
  EXPECT_EQ(reason(facts, 1), "no GPU (error 100)");
  facts.error = 0;
  EXPECT_EQ(reason(facts, 1), "no GPU (error 0)");
  facts.error = 802;
  facts.error_text = "system not yet initialized";
  EXPECT_EQ(reason(facts, 1), "CUDA fails: system not yet initialized (error 802)");
}

TEST(CudaFacts, SurviveTheWayThroughText) {
  CudaFacts facts = devices(2);
  facts.devices[1].name = "NVIDIA H100 80GB HBM3";
  const CudaFacts back = parse_cuda_facts(to_text(facts));
  EXPECT_EQ(to_text(back), to_text(facts));
  ASSERT_EQ(back.devices.size(), 2U);
  EXPECT_EQ(back.devices[1].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(back.devices[0].memory_bytes, 150754820096);
  const CudaFacts none{.runtime_version = 13000, .error = 35, .error_text = "driver is insufficient"};
  EXPECT_EQ(parse_cuda_facts(to_text(none)).error_text, "driver is insufficient");
  EXPECT_EQ(parse_cuda_facts(to_text(none)).error, 35);
}

TEST(CudaFacts, RefuseTextThatIsNone) {
  EXPECT_THROW(parse_cuda_facts("runtime new\n"), Error);
  EXPECT_THROW(parse_cuda_facts("device 9 0 x\n"), Error);
  EXPECT_EQ(parse_cuda_facts("a later key 3\nruntime 13000\n").runtime_version, 13000);
}

TEST(CudaFacts, WriteVersionsAsTheirMakersDo) {
  EXPECT_EQ(cuda_version_text(13000), "13.0");
  EXPECT_EQ(cuda_version_text(12020), "12.2");
  EXPECT_EQ(nccl_version_text(22809), "2.28.9");
  EXPECT_EQ(nccl_version_text(2804), "2.8.4");
}

}  // namespace
}  // namespace stepcast::exec
