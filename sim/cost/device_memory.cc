#include "sim/cost/device_memory.h"

#include <algorithm>
#include <bit>

namespace stepcast::sim {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kSimple = 4 * kMiB;
constexpr std::int64_t kLl = 8 * 512 * 8 * 16;      // lines per thread x threads x steps x bytes of a line
constexpr std::int64_t kLl128 = 120 * 640 * 8 * 8;  // elements per thread x threads x steps x bytes
constexpr std::int64_t kConnection = kSimple + kLl + kLl128;
constexpr std::int64_t kNvlsHead = 2 * kMiB;
constexpr std::int64_t kMostNvlsPeers = 32;    // NCCL_MAX_NVLS_ARITY
constexpr std::int64_t kContext = 481 * kMiB;  // 0.47 GiB

// Buffers for one neighbour before and one behind, over all channels.
std::int64_t chain_bytes(const CommunicatorUse& use) {
  const std::int64_t inside = use.channels * (use.domain_peers - 1) / use.domain_peers;
  if (use.domains == 1) return use.channels * kConnection;
  const std::int64_t ends = (use.channels + use.domain_peers - 1) / use.domain_peers;
  return (inside + 2 * ends) * kConnection;
}

std::int64_t log2_ceiling(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(n - 1)));
}

}  // namespace

Bytes communicator_bytes(const CommunicatorUse& use) {
  const std::int64_t sides = use.domains > 1 ? 2 : 1;
  const std::int64_t nvls = use.channels * std::min(use.domain_peers, kMostNvlsPeers) * kNvlsHead;
  switch (use.algorithm) {
    case Algorithm::kRing:
      return Bytes(chain_bytes(use));
    case Algorithm::kTree:
    case Algorithm::kCollnetChain:
      return Bytes(2 * chain_bytes(use));
    case Algorithm::kNvls:
    case Algorithm::kCollnetDirect:
      return Bytes(nvls);
    case Algorithm::kNvlsTree:
      return Bytes(nvls + 2 * chain_bytes(use) / use.domain_peers);
    case Algorithm::kPat:
      return Bytes(use.channels * sides * log2_ceiling(use.domains * use.domain_peers) * kConnection);
    case Algorithm::kP2p:
      return Bytes(use.channels * sides * 2 * kConnection);
    case Algorithm::kUserBuffers:  // registered buffers: plan/user_buffer_memory.h
    case Algorithm::kCopyEngines:
    case Algorithm::kNone:
      break;
  }
  return Bytes();
}

Bytes context_bytes(const topology::DeviceSpec& device) {
  return Bytes(device.kind == topology::DeviceKind::kGpu ? kContext : 0);
}

Bytes workspace_bytes(const topology::DeviceSpec& device, std::int64_t streams) {
  if (device.kind != topology::DeviceKind::kGpu) return Bytes();
  const bool before_hopper = device.architecture == "sm80";
  return Bytes(streams * (before_hopper ? 4 : 32) * kMiB);
}

}  // namespace stepcast::sim
