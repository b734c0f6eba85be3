// Tensor-parallel communication beside the matmul that needs or makes what it moves, in as many chunks as there are
// members (plan.overlap.tp_comm): what Transformer Engine's ring exchange does with user buffers (its
// CommOverlapP2PBase: split_overlap_ag, split_overlap_rs).
//
// gather and multiply: the rows of the members travel round the ring. While a chunk is multiplied it is sent to the
// next member, and the chunk of the member one step further back arrives.
// multiply and reduce-scatter: each chunk of the product is sent to its owner while the next one is computed, the own
// one last; the owner sums what arrived in member order, as a reduction in member order would: equal bits.
// Both move (tp - 1) / tp of the whole, like the collectives they replace.
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
