// Segments of context parallelism: every member of a cp group holds a share of each sequence (program/ops: "own share")
// and attends to the keys of all.
//
// p2p (ring attention, arXiv 2310.01889; Megatron-Core's cp_comm_type p2p): keys and values travel around the ring
// while each member attends to those it has, first its own. Backward they travel again, and behind them, one step
// later, the sums of their gradients. all_gather (arXiv 2407.21783, section 3.3.2): keys and values are gathered before
// the attention, again for its backward pass, and their gradients reduce-scattered. a2a (Jacobs et al. 2023, DeepSpeed
// Ulysses, arXiv 2309.14509; Transformer Engine's AttnFuncWithCPAndQKVOA2A): queries, keys and values of all rows and a
// part of the heads, for those of the own rows and all heads; head_segments.cc.
#pragma once

#include "plan/decoder_segments.h"

namespace stepcast::plan {

// tokens i32 [cp*T], own i32 [T], targets i32 [cp*T], own i32 [T]
program::SegmentId build_own_tokens(program::ProgramBuilder& b, const Roles& roles, const Shapes& x);

}  // namespace stepcast::plan
