// Tensor-parallel communication beside the matmul that needs or makes what it moves (plan.overlap.tp_comm), by the
// methods of Transformer Engine's user buffers (transformer_engine/common/comm_gemm_overlap @029eb96); which matmul
// has which: user_buffers.h.
//
// gather and multiply (CommOverlapP2PBase::split_overlap_ag): the rows of the members travel round the ring, copied by
// copy engines into the next member's buffer. While a chunk is multiplied it is sent on, and the chunk of the member
// one step further back arrives. The own rows are copied into the buffer before. multiply and reduce-scatter, as a
// pipeline (CommOverlapBase::split_overlap_rs): blocks of the product's columns, each reduce-scattered by a kernel
// beside the matmul of the next one; the last by more multiprocessors, as none follows. multiply and reduce-scatter, by
// ring exchange (CommOverlapP2PBase::split_overlap_rs): each chunk of the product is copied to its owner while the next
// one is computed, the own one last; the owner sums what arrived. bulk (CommOverlapBase::bulk_overlap): a gather or
// reduce-scatter of other rows beside a whole matmul. All sum in member order, as a reduction does: equal bits. All
// move (tp - 1) / tp of the whole.
//
// The head and the embedding are none of its layers. Assumed: chunks are multiplied one after another, where
// Transformer Engine puts them on three streams, so that the last waves of tiles overlap; no two chunks at once
// (`aggregate`). The user buffers, allocated once there, are temps of the segments here.
#pragma once

#include <optional>
#include <string>

#include "plan/segment_context.h"

namespace stepcast::plan {

// result[T,n] = rows[T,k] times w, of which `own` [Tl,k] are the rank's own rows; all are gathered in `gathered` [T,k].
struct GatherMatmul {
  program::Ref own, gathered, w, result;
  std::optional<program::Ref> bias;
  program::MatmulForm form = program::MatmulForm::kNT;
};
void add_gather_matmul(program::SegmentBuilder& b, const SegmentContext& c, const std::string& name,
                       const GatherMatmul& m, const UserBuffer& buffer);

// sum[Tl,n] = the own rows of the sum over the members of a[T,k] times w^T; n divides by a pipeline's splits.
struct MatmulScatter {
  program::Ref a, w, sum;
  std::int64_t width = 0;  // n
};
void add_matmul_scatter(program::SegmentBuilder& b, const SegmentContext& c, const std::string& name,
                        const MatmulScatter& m, const UserBuffer& buffer);

// whole[T,k] = the members' `own` [Tl,k], beside whatever runs.
void gather_by_user_buffers(program::SegmentBuilder& b, const SegmentContext& c, const std::string& name,
                            program::Ref own, program::Ref whole, const UserBuffer& buffer);

}  // namespace stepcast::plan
