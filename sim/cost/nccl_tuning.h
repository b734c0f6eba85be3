// Which algorithm and protocol NCCL 2.30 runs a collective with: its own cost model, latency plus bytes over a
// bandwidth for each of them, and the cheapest wins. A pure function of the group's layout; NCCL's figures rank
// algorithms and are not what a transfer takes (sim/cost/collective_time).
//
// Source: NVIDIA/nccl 2.30.7, src/graph/tuning.cc and src/enqueue.cc. Not modelled: CollNet (SHARP in the network,
// which a cluster does not state), fp8 reductions, aggregated ops, mixed architectures, tuner plugins (AWS OFI's
// changes the choice).
#pragma once

#include "sim/cost/nccl_pins.h"
#include "sim/cost/nccl_tables.h"

namespace stepcast::sim {

enum class NcclOp : std::uint8_t { kAllReduce, kAllGather, kReduceScatter, kBroadcast };

// Channels of one pattern that NCCL's search found. GB/s per channel. No channels: the pattern is not available.
struct NcclGraph {
  std::int32_t channels = 0;
  double intra = 0;
  double inter = 0;
};

struct NcclSystem {
  NcclArchitecture architecture = NcclArchitecture::kHopper;
  NcclCpu cpu = NcclCpu::kIntel;
  bool nvlink = true;  // between the ranks of a node; else PCIe
  std::int32_t nodes = 1;
  std::int32_t ranks = 1;
  double nic_latency_us = 0;  // as the NIC's driver states it
  NcclGraph ring;
  NcclGraph tree;
  NcclGraph nvls;
};

struct NcclEstimate {
  double latency_us = 0;
  double algbw = 0;  // GB/s; 0: not available
};

using NcclTable = std::array<std::array<NcclEstimate, kProtocolCount>, kAlgorithmCount>;

struct NcclChoice {
  Algorithm algorithm = Algorithm::kNone;
  Protocol protocol = Protocol::kNone;
  std::int32_t channels = 0;  // one CTA each
  std::int32_t threads = 0;   // of a CTA
  double time_us = 0;         // as NCCL estimates it
};

// Every algorithm and protocol that may run the op.
NcclTable nccl_table(const NcclSystem& system, NcclOp op, const NcclPins& pins);
// NCCL's estimate for one of them. `bytes` as nccl-tests defines the size.
double nccl_time_us(const NcclSystem& system, NcclOp op, const NcclTable& table, Algorithm algorithm, Protocol protocol,
                    double bytes);
// Throws Error (kInput) when the pins leave nothing for the op, as NCCL does. Only an all-reduce can end so: NCCL never
// takes rings from the others.
NcclChoice choose_nccl(const NcclSystem& system, NcclOp op, double bytes, const NcclPins& pins);

std::string_view to_string(NcclOp op);  // all_reduce, ...

}  // namespace stepcast::sim
