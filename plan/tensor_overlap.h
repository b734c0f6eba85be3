// Tensor-parallel communication beside the matmul that needs or makes what it moves, in as many chunks as there are
// members (plan.overlap.tp_comm): what Transformer Engine's ring exchange does with user buffers (its
// CommOverlapP2PBase: split_overlap_ag, split_overlap_rs).
//
// gather and multiply: the rows of the members travel round the ring. While a chunk is multiplied it is sent to the
// next member, and the chunk of the member one step further back arrives.
// multiply and reduce-scatter: each chunk of the product is sent to its owner while the next one is computed, the own
// one last; the owner sums what arrived in member order, as a reduction in member order would: equal bits.
// Both move (tp - 1) / tp of the whole, like the collectives they replace.
//
// Megatron-LM's --tp-comm-overlap takes Transformer Engine's method for each matmul (initialize_ub of
// pytorch/module/base.py @0004dbd):
//   forward of qkv, fc1; input gradient of proj, fc2   ring exchange   here: gather and multiply
//   forward of proj, fc2                               pipeline        here: multiply and reduce-scatter
//   input and weight gradients of qkv, fc1             bulk            here: whole, beside those matmuls, in any plan
// The head and the embedding are none of its layers. The pipeline (four blocks of columns, each reduce-scattered) is
// replaced by the ring exchange, which it also has for these. Assumed: chunks are multiplied one after another, where
// Transformer Engine puts them on three streams, so that the last waves of tiles overlap; no two chunks at once
// (`aggregate`). The user buffers, allocated once there, are temps of the segments here.
#pragma once

#include <optional>
#include <string>

#include "plan/segment_context.h"

namespace stepcast::plan {

// result[T,n] = rows[T,k] times w, of which `own` [Tl,k] are the rank's own rows; the others arrive in `gathered`
// [T,k], where the own part is left as it is.
struct GatherMatmul {
  program::Ref own, gathered, w, result;
  std::optional<program::Ref> bias;
  program::MatmulForm form = program::MatmulForm::kNT;
};
void add_gather_matmul(program::SegmentBuilder& b, const SegmentContext& c, const std::string& name,
                       const GatherMatmul& m);

// sum[Tl,n] = the own rows of the sum over the members of a[T,k] times w^T.
struct MatmulScatter {
  program::Ref a, w, sum;
  std::int64_t width = 0;  // n
};
void add_matmul_scatter(program::SegmentBuilder& b, const SegmentContext& c, const std::string& name,
                        const MatmulScatter& m);

}  // namespace stepcast::plan
