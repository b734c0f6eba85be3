#include "plan/user_buffer_memory.h"

namespace stepcast::plan {

std::int64_t user_buffer_bytes(const Scenario& s) {
  if (!s.plan.overlap_tp_comm) return 0;
  const std::int64_t tokens = s.plan.micro_batch_size * s.training.sequence_length / s.plan.cp;
  const std::int64_t elements = tokens * s.model.hidden;
  const std::int64_t compute = program::size_of(s.training.compute);
  const std::int64_t gathered = s.training.recipe == MatmulRecipe::kNone ? compute : 1;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < kOverlappedMatmuls; ++i) {
    const auto matmul = static_cast<OverlappedMatmul>(i);
    const bool scatters = is_reduce_scatter(matmul);
    const std::int64_t whole = elements * (scatters ? compute : gathered);
    const bool ring = s.plan.user_buffers.of(matmul).method == OverlapMethod::kRingExchange;
    bytes += scatters && ring ? whole / s.plan.tp * (2 * s.plan.tp - 1) : whole;
  }
  return bytes;
}

}  // namespace stepcast::plan
