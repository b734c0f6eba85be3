// What Transformer Engine's user buffers take to move the rows of a tensor-parallel group beside a matmul: buffers that
// every member maps, so that nothing is staged (transformer_engine/common/comm_gemm_overlap/userbuffers @029eb96).
//
// copy to a peer      one cudaMemcpyAsync by a copy engine, then a flag set and polled by one thread each (use_ce, the
//                     default of ring exchange): no multiprocessor; read once here, written once there
// gather, scatter     one kernel of as many CTAs as it is given, a multiprocessor each. With a switch that multicasts
//                     and reduces (multimem.st, multimem.ld_reduce) a port carries the buffer's S bytes, at the rate of
//                     NCCL's reductions in the switch; without, S (n - 1)/n, at that of a ring.
//
//   time = flags + gap + max(port bytes / rate of the port, stored or summed bytes / (CTAs x rate of one))
//
// Rate of one: a ring's over the CTAs that NCCL gives it, two a channel (H100: 370 GB/s, 24). A multicast stores the
// own S/n alone; a reduce-scatter sums what n - 1 others hold. That loads of sums in the switch are no faster is
// inferred: the configurations that NVIDIA ships for H100 give reduce-scatters 24 multiprocessors where gathers of the
// same rows beside as long a matmul have 4 (qkv_wgrad, qkv_dgrad of userbuffers_bf16_h100_h8192_tp4_mbs1_seqlen8192,
// NVIDIA/NeMo), and these rates hide both, barely.
//
// Assumed: a copy engine is as fast as a message of NCCL's; flags take the latency of a message.
#pragma once

#include "sim/cost/collective_time.h"

namespace stepcast::sim {

// To the other member of a pair that one scale-up domain holds; elsewhere, and on CPUs, as a message.
PricedTransfer price_peer_copy(const CollectiveContext& context, Bytes size, const GroupPath& pair);

// By `multiprocessors` CTAs. Other collectives than gathers and reduce-scatters, groups of several domains and those of
// CPUs are priced as price_collective does. CHECK: at least one CTA.
PricedTransfer price_user_buffers(const CollectiveContext& context, CollectiveOp op, Bytes size, const GroupPath& path,
                                  std::int32_t multiprocessors);

}  // namespace stepcast::sim
