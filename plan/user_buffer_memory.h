// What Transformer Engine's user buffers hold of a device: one a matmul that plan.overlap.tp_comm overlaps, registered
// with the peers at start and kept (add_ub of initialize_ub, transformer_engine/pytorch/module/base.py; CommOverlapBase
// and CommOverlapP2PBase, transformer_engine/common/comm_gemm_overlap @029eb96).
#pragma once

#include <cstdint>

#include "plan/scenario.h"

namespace stepcast::plan {

// Bytes; 0 without tp_comm. Each is [tokens, hidden], the tokens those of a microbatch and cp share over all tp ranks
// (Megatron-LM, _initialize_tp_communicators), of the compute type, but of one byte an element where matmuls read 8 or
// 4 bits and rows are gathered (fp8_buf). A reduce-scatter by ring exchange has (2 tp - 1) / tp of that: the chunks of
// the product, and those that arrive.
//
// In the Program what they carry are temps of segments, so those that are alive at its peak are counted twice: one or
// two of the ten.
std::int64_t user_buffer_bytes(const Scenario& s);

}  // namespace stepcast::plan
