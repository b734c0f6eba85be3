// The table of fast kernels: a kind that is not listed is the reference's.
#include "kernels/cpu_fast/fast.h"

#include "base/check.h"
#include "kernels/cpu_fast/fast_kernels.h"
#include "kernels/cpu_fast/parallel.h"

namespace stepcast::kernels {
namespace {

using program::OpKind;

struct Row {
  OpKind kind;
  Kernel kernel;
};

constexpr Row kTable[] = {
    {OpKind::kCast, cpu_fast::cast},
    {OpKind::kAdd, cpu_fast::add},
    {OpKind::kAccumulate, cpu_fast::accumulate},
    {OpKind::kRmsNormForward, cpu_fast::rms_norm_forward},
    {OpKind::kRmsNormBackwardInput, cpu_fast::rms_norm_backward_input},
    {OpKind::kRmsNormBackwardWeight, cpu_fast::rms_norm_backward_weight},
    {OpKind::kLayerNormForward, cpu_fast::layer_norm_forward},
    {OpKind::kLayerNormBackwardInput, cpu_fast::layer_norm_backward_input},
    {OpKind::kLayerNormBackwardWeight, cpu_fast::layer_norm_backward_weight},
    {OpKind::kBiasBackward, cpu_fast::bias_backward},
    {OpKind::kMatmul, cpu_fast::matmul},
    {OpKind::kRotaryForward, cpu_fast::rotary_forward},
    {OpKind::kRotaryBackward, cpu_fast::rotary_backward},
    {OpKind::kAttentionForward, cpu_fast::attention_forward},
    {OpKind::kAttentionBackward, cpu_fast::attention_backward},
    {OpKind::kShareAttentionForward, cpu_fast::share_attention_forward},
    {OpKind::kShareAttentionBackward, cpu_fast::share_attention_backward},
    {OpKind::kSwiGluForward, cpu_fast::swiglu_forward},
    {OpKind::kSwiGluBackward, cpu_fast::swiglu_backward},
    {OpKind::kGeluForward, cpu_fast::gelu_forward},
    {OpKind::kGeluBackward, cpu_fast::gelu_backward},
    {OpKind::kSquaredReluForward, cpu_fast::squared_relu_forward},
    {OpKind::kSquaredReluBackward, cpu_fast::squared_relu_backward},
    {OpKind::kCrossEntropyMax, cpu_fast::cross_entropy_max},
    {OpKind::kCrossEntropySum, cpu_fast::cross_entropy_sum},
    {OpKind::kCrossEntropyBackward, cpu_fast::cross_entropy_backward},
    {OpKind::kSumSquares, cpu_fast::sum_squares},
    {OpKind::kAdam, cpu_fast::adam},
};

}  // namespace

namespace cpu_fast {

void FastState::begin_thread() { set_kernel_threads(threads_); }

FastState& state_of(const KernelContext& context) {
  auto* state = dynamic_cast<FastState*>(context.state);
  CHECK(state != nullptr, "fast kernels run with a state of fast_state()", static_cast<int>(context.kind));
  return *state;
}

}  // namespace cpu_fast

Kernel fast_kernel(OpKind kind) {
  for (const Row& row : kTable) {
    if (row.kind == kind) return row.kernel;
  }
  return reference_kernel(kind);
}

bool has_fast_kernel(OpKind kind) { return fast_kernel(kind) != reference_kernel(kind); }

std::unique_ptr<StreamState> fast_state(int threads) {
  CHECK(threads >= 1, threads);
  return std::make_unique<cpu_fast::FastState>(threads);
}

std::string fast_library() { return "oneDNN " + cpu_fast::onednn_version(); }

}  // namespace stepcast::kernels
