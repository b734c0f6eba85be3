#include "plan/user_buffers.h"

namespace stepcast::plan {

std::string_view to_string(OverlapMethod method) {
  constexpr std::string_view kNames[] = {"ring_exchange", "pipeline", "bulk"};
  return kNames[static_cast<std::size_t>(method)];
}

std::string_view to_string(OverlappedMatmul matmul) {
  constexpr std::array<std::string_view, kOverlappedMatmuls> kNames = {
      "qkv_fprop", "qkv_dgrad", "qkv_wgrad", "proj_fprop", "proj_dgrad",
      "fc1_fprop", "fc1_dgrad", "fc1_wgrad", "fc2_fprop",  "fc2_dgrad"};
  return kNames[static_cast<std::size_t>(matmul)];
}

bool is_reduce_scatter(OverlappedMatmul matmul) {
  using enum OverlappedMatmul;
  return matmul == kProjForward || matmul == kFc2Forward || matmul == kQkvWeightGrad || matmul == kFc1WeightGrad;
}

UserBuffer default_user_buffer(OverlappedMatmul matmul) {
  constexpr std::int32_t kRingMultiprocessors = 1;
  switch (matmul) {
    case OverlappedMatmul::kQkvForward:
    case OverlappedMatmul::kProjInputGrad:
    case OverlappedMatmul::kFc1Forward:
    case OverlappedMatmul::kFc2InputGrad:
      return {.method = OverlapMethod::kRingExchange, .multiprocessors = kRingMultiprocessors, .margin = false};
    case OverlappedMatmul::kProjForward:
    case OverlappedMatmul::kFc2Forward:
      return {.method = OverlapMethod::kPipeline};
    case OverlappedMatmul::kQkvInputGrad:
    case OverlappedMatmul::kQkvWeightGrad:
    case OverlappedMatmul::kFc1InputGrad:
    case OverlappedMatmul::kFc1WeightGrad:
      break;
  }
  return {.method = OverlapMethod::kBulk};
}

UserBuffers::UserBuffers() {
  for (std::size_t i = 0; i < kOverlappedMatmuls; ++i) {
    buffers_[i] = default_user_buffer(static_cast<OverlappedMatmul>(i));
  }
}

}  // namespace stepcast::plan
