// The first GPU of this machine.
#include <algorithm>
#include <cstring>

#include "exec/cuda/cuda_devices.h"
#include "exec/cuda_facts.h"
#include "exec/cuda_probe.h"
#include "kernels/cuda/cuda.h"
#include "tests/device/cuda_communication.h"
#include "tests/device/cuda_memory.h"
#include "tests/device/machine.h"

namespace stepcast::device_check {
namespace {

using kernels::FastCase;
using kernels::FastOperand;
using program::DType;

DType dtype_of(const FastOperand& o, DType storage) {
  if (o.content == kernels::Content::kToken) return DType::kI32;
  const bool stored = o.content == kernels::Content::kStorage || o.content == kernels::Content::kPositiveStorage;
  return stored ? storage : DType::kF32;
}

// Positive numbers around 1, tokens below 7: a block of them, repeated over the operand.
GuardedMemory filled(const program::TensorType& type) {
  kernels::Buffer block(type.dtype, {std::int64_t{1} << 16});
  for (std::int64_t i = 0; i < block.size(); ++i) {
    block.set(i, type.dtype == DType::kI32 ? static_cast<double>(i % 7) : 0.5 + static_cast<double>(i % 97) / 97);
  }
  const auto bytes = static_cast<std::size_t>(type.bytes());
  GuardedMemory memory(bytes);
  for (std::size_t at = 0; at < bytes; at += block.bytes().size()) {
    CUDA_TRY(cudaMemcpy(static_cast<std::byte*>(memory.data()) + at, block.bytes().data(),
                        std::min(block.bytes().size(), bytes - at), cudaMemcpyHostToDevice));
  }
  return memory;
}

class CudaMachine : public Machine {
 public:
  explicit CudaMachine(exec::CudaFacts facts) : facts_(std::move(facts)), state_(kernels::cuda_state(stream_.get())) {
    state_->begin_thread();
  }

  std::string name() const override {
    const exec::CudaDeviceFacts& d = facts_.devices.front();
    return d.name + ", sm_" + std::to_string(d.major) + std::to_string(d.minor) + ", CUDA " +
           exec::cuda_version_text(facts_.runtime_version) + ", driver for " +
           exec::cuda_version_text(facts_.driver_version) + ", NCCL " + exec::nccl_version_text(facts_.nccl_version);
  }

  std::int64_t work_divisor() const override { return 1; }

  bool has_kernel(program::OpKind kind) const override { return kernels::cuda_kernel(kind) != nullptr; }

  void run(const kernels::KernelContext& context) override {
    std::vector<GuardedMemory> memory;
    std::vector<kernels::Tensor> operands;
    for (const kernels::Tensor& operand : context.operands) {
      memory.emplace_back(static_cast<std::size_t>(operand.type.bytes()));
      memory.back().copy_in(operand.data);
      operands.push_back({memory.back().data(), operand.type});
    }
    CUDA_TRY(cudaDeviceSynchronize());  // copies are of another stream
    kernels::KernelContext on_device = context;
    on_device.operands = operands;
    on_device.state = state_.get();
    kernels::cuda_kernel(context.kind)(on_device);
    stream_.wait();
    for (std::size_t i = 0; i < memory.size(); ++i) {
      memory[i].copy_out(context.operands[i].data);
      memory[i].check_guards("operand " + std::to_string(i));
    }
  }

  double seconds_of(const FastCase& work, DType storage, int repeats) override {
    std::vector<GuardedMemory> memory;
    std::vector<kernels::Tensor> operands;
    for (const FastOperand& o : work.operands) {
      const program::TensorType type{dtype_of(o, storage), o.shape};
      memory.push_back(filled(type));
      operands.push_back({memory.back().data(), type});
    }
    CUDA_TRY(cudaDeviceSynchronize());
    const kernels::KernelContext context{.operands = operands,
                                         .attributes = &work.attributes,
                                         .kind = work.kind,
                                         .accumulate = work.options.accumulate,
                                         .step = work.options.step,
                                         .state = state_.get()};
    const kernels::Kernel kernel = kernels::cuda_kernel(work.kind);
    kernel(context);  // compiles, loads and chooses
    std::vector<double> seconds;
    Stopwatch watch(stream_.get());
    for (int i = 0; i < repeats; ++i) {
      watch.start();
      kernel(context);
      seconds.push_back(watch.seconds());
    }
    std::nth_element(seconds.begin(), seconds.begin() + repeats / 2, seconds.end());
    return seconds[static_cast<std::size_t>(repeats / 2)];
  }

  Ceilings measure_ceilings() override {
    constexpr std::size_t kCopyBytes = std::size_t{1} << 30;
    constexpr int kMatmul = 8192;
    return {best_copy_rate(stream_.get(), kCopyBytes), best_matmul_rate(stream_.get(), kMatmul)};
  }

  Steps run_steps(const program::CheckedProgram& p, int steps) override {
    const std::size_t ranks = p.program().ranks.size();
    if (ranks > facts_.devices.size()) {
      return {{}, {}, std::to_string(ranks) + " ranks, " + std::to_string(facts_.devices.size()) + " GPUs"};
    }
    const auto ordinal = [](program::RankId rank) { return static_cast<int>(rank.value); };
    exec::DeviceExecutor executor(p, {.kernel_of = &kernels::cuda_kernel, .poison = true},
                                  exec::cuda_devices(p.program(), ordinal, nullptr));
    Steps result;
    for (int i = 0; i < steps; ++i) {
      const exec::StepResult step = executor.run_step();
      result.losses.push_back(step.loss.value_or(std::nan("")));
      result.seconds.push_back(step.time.seconds());
    }
    return result;
  }

  void check_communication(Outcome& outcome) override { check_nccl(static_cast<int>(facts_.devices.size()), outcome); }

 private:
  exec::CudaFacts facts_;
  Stream stream_;
  std::unique_ptr<kernels::StreamState> state_;
};

}  // namespace

std::unique_ptr<Machine> open_machine() {
  exec::CudaFacts facts = exec::probe_cuda();
  if (const auto problem = exec::why_no_cuda(facts, 1)) {
    throw Error(ErrorKind::kEnvironment, "no check without a GPU: " + problem->reason, {}, problem->help);
  }
  CUDA_TRY(cudaSetDevice(0));
  return std::make_unique<CudaMachine>(std::move(facts));
}

}  // namespace stepcast::device_check
