// What a process holds of its device's memory beside the tensors: its context, libraries' workspaces and NCCL's
// buffers. What user buffers hold follows from the plan: plan/user_buffer_memory.h. Estimates from what these allocate
// by default, not measurements of one job.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "sim/cost/cost.h"
#include "topology/cluster.h"

namespace stepcast::sim {

// How a rank takes part in one communicator by one algorithm.
struct CommunicatorUse {
  Algorithm algorithm = Algorithm::kNone;
  std::int64_t channels = 0;      // of its kernels: one multiprocessor each
  std::int64_t domain_peers = 1;  // members in the rank's scale-up domain, itself included
  std::int64_t domains = 1;       // that the members are in
};

// Buffers of the communicator's connections on the rank's device.
//
// A connection has, per channel, a buffer for each protocol (Simple 4 MiB, LL 0.5 MiB, LL128 4.69 MiB; NVIDIA/nccl
// 2.30.7, src/init.cc and src/include/device.h), on one of its sides within a domain (src/transport/p2p.cc) and on both
// between domains (src/transport/net.cc). Connections are made for what is used (NCCL_RUNTIME_CONNECT). Per channel:
// - ring: one from the last member and one to the next; one of a domain's members enters it and one leaves.
// - tree: the same up and down, for both ways.
// - PAT: a peer at each power of two, both ways.
// - messages (kP2p): two peers, both ways.
// NVLS has 2 MiB per channel and head, and every member of a domain is one, up to 32 (NCCL_MAX_NVLS_ARITY)
// (src/transport/nvls.cc: NCCL_NVLS buffers of 1 MiB, one in and one out); NVLSTree has a tree between the domains
// beside it.
Bytes communicator_bytes(const CommunicatorUse& use);

// Of the process: its context with the loaded kernels, 0.47 GiB by lazy loading (reference figure for torch 2.1), and
// `streams` workspaces of cuBLAS (NVIDIA cuBLAS, "cublasSetWorkspace": 32 MiB from Hopper on, 4 MiB before): one for
// each stream on which matmuls run at once. None on a CPU.
Bytes context_bytes(const topology::DeviceSpec& device);
Bytes workspace_bytes(const topology::DeviceSpec& device, std::int64_t streams);

// On which Transformer Engine multiplies chunks beside user buffers (_NUM_MAX_UB_STREAMS of
// transformer_engine/pytorch/module/base.py, whose initialize_ub repeats the workspace as often).
inline constexpr std::int64_t kUserBufferStreams = 3;

}  // namespace stepcast::sim
