// Two ranks of NCCL: on two GPUs, or on one where NCCL can (NCCL_MULTI_RANK_GPU_ENABLE, of 2.30 and newer).
#pragma once

#include "tests/device/section.h"

namespace stepcast::device_check {

// Small whole numbers, whose sums are exact in any order. What cannot be done here is skipped with the reason.
void check_nccl(int devices, Outcome& outcome);

}  // namespace stepcast::device_check
