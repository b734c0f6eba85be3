// The CPU in a GPU's place: the CUDA kernels run as blocks of threads on it (kernels/cuda/simt), steps in the host's
// executor. Its times mean nothing.
#include <chrono>
#include <cstring>

#include "exec/executor.h"
#include "kernels/cuda/cuda_kernels.h"
#include "tests/device/machine.h"

namespace stepcast::device_check {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

class HostMachine : public Machine {
 public:
  std::string name() const override { return "this CPU in a GPU's place"; }
  std::int64_t work_divisor() const override { return 64; }
  bool has_kernel(program::OpKind kind) const override { return kernels::cuda::kernel_of(kind) != nullptr; }
  void run(const kernels::KernelContext& context) override { kernels::cuda::kernel_of(context.kind)(context); }

  double seconds_of(const kernels::FastCase& work, program::DType storage, int) override {
    const auto run_one = [this](const kernels::KernelContext& context) { run(context); };
    const Clock::time_point begin = Clock::now();
    kernels::run_fast_case(work, storage, run_one, nullptr);
    return seconds_since(begin);
  }

  Ceilings measure_ceilings() override {
    std::vector<char> from(std::size_t{32} << 20, 1);
    std::vector<char> to(from.size());
    const Clock::time_point begin = Clock::now();
    std::memcpy(to.data(), from.data(), from.size());
    return {2 * static_cast<double>(from.size()) / seconds_since(begin), 1e12};
  }

  Steps run_steps(const program::CheckedProgram& p, int steps) override {
    exec::Executor executor(p, {.poison = true});
    Steps result;
    for (int i = 0; i < steps; ++i) {
      const exec::StepResult step = executor.run_step();
      result.losses.push_back(step.loss.value());
      result.seconds.push_back(step.time.seconds());
    }
    return result;
  }

  void check_communication(Outcome& outcome) override { outcome.skipped.emplace_back("NCCL: needs a GPU"); }
};

}  // namespace

std::unique_ptr<Machine> open_machine() { return std::make_unique<HostMachine>(); }

}  // namespace stepcast::device_check
