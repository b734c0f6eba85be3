// How Transformer Engine hides tensor-parallel communication behind each matmul of a layer (plan.overlap.tp_comm;
// Megatron-LM's --tp-comm-overlap), and what that costs the matmul. Defaults: get_default_config of initialize_ub,
// transformer_engine/pytorch/module/base.py (v2.2), which the entries of a file of --tp-comm-overlap-cfg update key by
// key (ub_cfg.update), also where they name another method. That file is plan.overlap.tp_comm_cfg here, with the same
// names and keys; of the keys cga_size and the streams' priorities change nothing that is priced, and aggregate,
// use_ce, atomic_gemm, pipeline_rs_overlap_first_gemm and a pipeline's fp8_buf are known at their defaults alone.
//
//   qkv_fprop, fc1_fprop, proj_dgrad, fc2_dgrad   ring_exchange of the gathered operand: copies by copy engines, one
//                                                 chunk a rank; the matmuls have all multiprocessors
//   proj_fprop, fc2_fprop                         pipeline: 4 blocks of columns, each reduce-scattered by a kernel of
//                                                 16 multiprocessors (32 for the last) that the matmuls leave free
//   qkv_dgrad, fc1_dgrad                          bulk: the input is gathered beside the input gradient, by 16 likewise
//   qkv_wgrad, fc1_wgrad                          bulk: the input gradient is reduced beside the weight gradient, by 16
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace stepcast::plan {

enum class OverlapMethod : std::uint8_t { kRingExchange, kPipeline, kBulk };
std::string_view to_string(OverlapMethod method);

enum class OverlappedMatmul : std::uint8_t {
  kQkvForward,
  kQkvInputGrad,
  kQkvWeightGrad,
  kProjForward,
  kProjInputGrad,
  kFc1Forward,
  kFc1InputGrad,
  kFc1WeightGrad,
  kFc2Forward,
  kFc2InputGrad
};
inline constexpr std::size_t kOverlappedMatmuls = 10;
std::string_view to_string(OverlappedMatmul matmul);  // qkv_fprop

// Of the last block of a pipeline, when no matmul runs beside it (UB_MAX_SM).
inline constexpr std::int32_t kMostUserBufferMultiprocessors = 32;
// Blocks of a pipeline that the schema admits; its streams take turns.
inline constexpr std::int64_t kMostUserBufferSplits = 64;

// What it moves beside the matmul: rows that are gathered, else sums that are scattered (is_reduce_scatter).
bool is_reduce_scatter(OverlappedMatmul matmul);

struct UserBuffer {
  OverlapMethod method = OverlapMethod::kBulk;
  std::int32_t multiprocessors = 16;  // of the kernel that communicates (num_sm)
  bool margin = true;                 // the matmul leaves them free (set_sm_margin); else both share all
  std::int32_t splits = 4;            // of a pipeline (num_splits)

  // As program::Attributes has them.
  std::int32_t left_free() const { return margin ? multiprocessors : -1; }
  bool operator==(const UserBuffer&) const = default;
};

UserBuffer default_user_buffer(OverlappedMatmul matmul);

// Of every matmul.
class UserBuffers {
 public:
  UserBuffers();
  const UserBuffer& of(OverlappedMatmul matmul) const { return buffers_[static_cast<std::size_t>(matmul)]; }
  UserBuffer& of(OverlappedMatmul matmul) { return buffers_[static_cast<std::size_t>(matmul)]; }
  bool operator==(const UserBuffers&) const = default;

 private:
  std::array<UserBuffer, kOverlappedMatmuls> buffers_;
};

}  // namespace stepcast::plan
