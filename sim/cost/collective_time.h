// What a collective or a message takes alone on its path, and what it needs meanwhile. The algorithm and protocol are
// NCCL's choice (nccl_tuning); the time is ours:
//
//   time = latency + max over resources (bytes / rate) / p x (1 + sqrt(S0 / S))
//
// Latency: base and hops of NCCL's table for what was chosen, a start, and the path's own latency once per step between
// domains. p: what a protocol carries beside its flags (LL 1/2, LL128 0.92, Simple 1); LL loses nothing to S0.
// Resources, with S the size as nccl-tests defines it, f S the bus bytes, g members per domain (the fewest of any), k
// domains:
//
//   ring, PAT   port f S (g - 1)/g, or f S in one domain; NIC f S / g: every channel leaves a domain by one member
//   tree        port 2 S (up and down the chain of a domain); NIC S min(2, k/2) / g: of two mirrored binary trees, a
//   node
//               is inner in one and leaf in the other
//   NVLS        port S (1 + 1/n) in an all-reduce, else S; staging copies S
//   NVLSTree    NVLS within the domain (n = g), the tree between by at most 8 NICs: all of an 8-GPU node; and two racks
//   of
//               72 at 399 GB/s and twenty at 203 (coreweave/nccl-tests README.md) are both what 8 NICs give
//   all-to-all  NIC S (n - g)/n; port S (g - 1)/n, and S (n - g)/n (g - 1)/g forwarded to the GPU on the receiver's
//   rail
//               (PXN); a path's `spread` limits what uplinks let through
//   message     port S, or NIC S
//
// Rates: port x calibration share; NIC as the network gives it (efficiency included). Hence the hierarchical bound of a
// ring is g NICs of bus bandwidth; a tree over two nodes needs half of that, over more as much as the ring.
//
// Memory traffic per bus byte: a step of a ring takes a byte from the peer (written here), reads it, combines it with
// one read or writes it out: 3 accesses, of which the buffer's are partly in the L2 cache: 2.5 (measured 2 to 3). NVLS
// moves 6 per buffer byte (copy in 2, reduced and multicast 2, copy out 2), 3.4 per bus byte, with the staging buffer
// in the cache about the same 2.5. A message is read or written once at the user's end, once in the buffer: 2.
//
// Processors held: a CTA each per channel. NCCL_MAX_CTAS below what a kernel would take lowers its rate in proportion.
#pragma once

#include "sim/cost/calibration.h"
#include "sim/cost/nccl_graphs.h"

namespace stepcast::sim {

enum class CollectiveOp : std::uint8_t { kAllReduce, kAllGather, kReduceScatter, kBroadcast, kAllToAll, kSendRecv };
std::string_view to_string(CollectiveOp op);
// Bus bandwidth over algorithm bandwidth (NVIDIA/nccl-tests doc/PERFORMANCE.md).
double bus_factor(CollectiveOp op, std::int64_t members);

struct CollectiveContext {
  const topology::Cluster& cluster;
  const Calibration& calibration;
  const NcclPins& pins;
  BytesPerSecond nominal_nic;  // Network::nominal_nic()
};

// A transfer and how it runs; `channels` 0: not by NCCL.
struct PricedTransfer {
  TransferCost cost;
  std::int32_t channels = 0;
};

// Not for groups of one. kSendRecv as a message to the next member by every member, as nccl-tests runs it. Throws Error
// (kInput) when the pins leave no algorithm.
PricedTransfer price_collective(const CollectiveContext& context, CollectiveOp op, Bytes size, const GroupPath& path);
// From one member of the pair to the other.
PricedTransfer price_message(const CollectiveContext& context, Bytes size, const GroupPath& pair);

// The scale-up port that shares are taken of: the rate a ring keeps busy, so that a ring alone takes the whole.
BytesPerSecond nominal_port(const topology::Cluster& cluster, const Calibration& calibration);

}  // namespace stepcast::sim
