// The check finds what is wrong: kernels that err, write beside their operands or are missing, losses that differ,
// Programs of other losses, figures that no machine has.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/error.h"
#include "exec/executor.h"
#include "tests/device/kernel_checks.h"
#include "tests/device/step_checks.h"
#include "tests/device/timings.h"

namespace stepcast::device_check {
namespace {

using program::OpKind;

// The reference kernels of a few kinds, or what a test puts in their place.
class FakeMachine : public Machine {
 public:
  std::string name() const override { return "fake"; }
  std::int64_t work_divisor() const override { return 64; }
  bool has_kernel(OpKind kind) const override {
    const bool is_one = kind == OpKind::kSwiGluForward || kind == OpKind::kAdd || kind == OpKind::kCast ||
                        kind == OpKind::kRmsNormForward || (kind == OpKind::kMatmul && multiplies);
    return is_one && kind != missing;
  }
  void run(const kernels::KernelContext& context) override {
    if (context.kind == refused) throw Error(ErrorKind::kExecution, "an illegal memory access was encountered");
    kernels::reference_kernel(context.kind)(context);
    if (context.kind == wrong) {
      // The last operand's first bytes, f32 or bf16, become other numbers.
      auto* bytes = static_cast<unsigned char*>(context.operands.back().data);
      bytes[1] = static_cast<unsigned char>(bytes[1] ^ 0x40);
    }
  }
  double seconds_of(const kernels::FastCase&, program::DType, int) override { return seconds; }
  Ceilings measure_ceilings() override { return {1e9, 1e12}; }
  Steps run_steps(const program::CheckedProgram&, int steps) override {
    Steps result;
    result.losses.assign(static_cast<std::size_t>(steps), loss);
    result.seconds.assign(static_cast<std::size_t>(steps), 1);
    return result;
  }
  void check_communication(Outcome&) override {}

  OpKind missing = OpKind::kJoin;
  OpKind refused = OpKind::kJoin;
  OpKind wrong = OpKind::kJoin;
  bool multiplies = false;
  double seconds = 1;
  double loss = 0;
};

bool any_says(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& l) { return l.find(part) != std::string::npos; });
}

TEST(KernelChecks, PassTheReference) {
  FakeMachine machine;
  const Outcome outcome = check_kernels(machine, Budget(100));
  EXPECT_TRUE(outcome.failures.empty()) << outcome.failures.front();
  EXPECT_GT(outcome.passed, 50);
}

TEST(KernelChecks, NameTheKernelThatErrs) {
  FakeMachine machine;
  machine.wrong = OpKind::kSwiGluForward;
  machine.refused = OpKind::kAdd;
  machine.missing = OpKind::kRmsNormForward;
  const Outcome outcome = check_kernels(machine, Budget(100));
  EXPECT_TRUE(any_says(outcome.failures, "swiglu_forward")) << outcome.failures.size();
  EXPECT_TRUE(any_says(outcome.failures, "illegal memory access"));
  EXPECT_TRUE(any_says(outcome.skipped, "rmsnorm_forward: this machine has no kernel"));
}

TEST(KernelChecks, StopInTime) {
  FakeMachine machine;
  const Outcome outcome = check_kernels(machine, Budget(0));
  EXPECT_EQ(outcome.passed, 0);
  EXPECT_TRUE(any_says(outcome.skipped, "out of time"));
}

TEST(Timings, RefuseWhatNoMachineDoes) {
  FakeMachine machine;
  machine.multiplies = true;
  std::string table;
  EXPECT_FALSE(time_kernels(machine, Budget(100), table).failed());
  EXPECT_NE(table.find("# ceilings: copy 1 GB/s, bf16 matmul 1 TFLOP/s\n"), std::string::npos) << table;
  EXPECT_NE(table.find("matmul\tforward\tbf16\t"), std::string::npos) << table;
  machine.seconds = 1e-9;
  EXPECT_TRUE(time_kernels(machine, Budget(100), table).failed());
}

TEST(Expected, AreReadStrictly) {
  const Expected e = parse_expected("# made by hand\nfingerprint 00ff\nbound 1e-5\nloss 5.5\nloss 5.25\n", "a.losses");
  EXPECT_EQ(e.losses, (std::vector<double>{5.5, 5.25}));
  EXPECT_EQ(e.bound, 1e-5);
  for (const char* text : {"", "fingerprint 1\nbound 1e-5\n", "fingerprint 1\nbound x\nloss 1\n",
                           "fingerprint 1\nbound 1e-5\nlost 1\n", "bound 1e-5\nloss 1\n"}) {
    EXPECT_THROW(parse_expected(text, "a.losses"), Error) << text;
  }
}

// The committed Programs with losses that are off by twice their bound, and by nothing.
TEST(Steps, CompareWithTheCommittedLosses) {
  const std::string folder = std::string(STEPCAST_SOURCE_DIR) + "/tests/device/programs";
  FakeMachine machine;
  machine.loss = std::numeric_limits<double>::quiet_NaN();
  Outcome outcome = check_steps(machine, folder, Budget(100));
  EXPECT_EQ(outcome.passed, 0);
  EXPECT_GE(outcome.failures.size(), 4U);
  EXPECT_TRUE(any_says(outcome.failures, "step 1: loss nan"));
  EXPECT_TRUE(check_steps(machine, folder + "/..", Budget(100)).failed());  // nothing to check is a failure
}

TEST(Steps, RefuseLossesOfAnotherProgram) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "stepcast_device_programs";
  std::filesystem::create_directories(folder);
  const std::string shipped = std::string(STEPCAST_SOURCE_DIR) + "/tests/device/programs/llama-dp1.txt";
  std::filesystem::copy_file(shipped, folder / "a.txt", std::filesystem::copy_options::overwrite_existing);
  std::ofstream(folder / "a.losses") << "fingerprint 0123456789abcdef\nbound 1e-5\nloss 1\n";
  FakeMachine machine;
  EXPECT_TRUE(any_says(check_steps(machine, folder.string(), Budget(100)).failures, "of another Program"));
  std::filesystem::remove_all(folder);
}

TEST(Summary, CountsAndFails) {
  Outcome good{.section = "steps"};
  good.passed = 3;
  Outcome bad{.section = "kernels"};
  bad.failures = {"a", "b", "c"};
  const std::string text = summary({good, bad}, 2);
  EXPECT_EQ(text,
            "PASS  steps: 3 passed, 0 failed, 0 skipped, 0.0 s\n"
            "FAIL  kernels: 0 passed, 3 failed, 0 skipped, 0.0 s\n"
            "  failed: a\n  failed: b\n  failed: and 1 more\n"
            "FAIL  gpu_check\n");
  EXPECT_TRUE(summary({good}, 2).ends_with("OK  gpu_check\n"));
}

}  // namespace
}  // namespace stepcast::device_check
