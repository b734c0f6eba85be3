// Numbers only; the header says where they are from.
#include "sim/cost/nccl_tables.h"

#include <bit>
#include <cmath>

#include "base/check.h"

namespace stepcast::sim {
namespace {

constexpr std::size_t kTreeEntries = 23;  // 64 B to 511 MiB; NCCL's 24th entry is never read

constexpr std::array<std::array<double, kTreeEntries>, 3> kTreeCorrection = {{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9},
}};

constexpr std::array<double, 13> kWithinAmpere = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr std::array<double, 19> kBetweenAmpere = {48, 30, 28, 24, 20, 18,  15,  12,  10, 9,
                                                   7,  6,  5,  4,  3,  2.4, 1.2, .24, .12};
constexpr std::array<double, 11> kWithinHopper = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
constexpr std::array<double, 17> kBetweenHopper = {48, 45, 42, 40, 30,  24,  22,  20, 17.5,
                                                   15, 12, 6,  3,  2.4, 1.2, .24, .12};
constexpr std::array<double, 12> kWithinBlackwell = {90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18};
constexpr std::array<double, 20> kBetweenBlackwell = {96, 86,   80, 48, 45.1, 42, 40,  30,  24,  22,
                                                      20, 17.5, 15, 12, 6,    3,  2.4, 1.2, .24, .12};

NcclLatencies nvidia_latencies(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kTree:
      return {{6.8, 14, 8.4}, {0.6, 1.25, 4.0}, {1.0, 1.9, 4.0}, {5.0, 8.5, 14}};
    case Algorithm::kRing:
      return {{6.6, 14, 8.4}, {0.6, 1.9, 3.4}, {1.0, 2.5, 5.7}, {2.7, 4.0, 14}};
    case Algorithm::kNvls:
      return {{0, 0, 0}, {0, 0, 25}, {0, 0, 0}, {0, 0, 18}};
    case Algorithm::kNvlsTree:
      return {{0, 0, 0}, {0, 0, 25}, {0, 0, 0}, {0, 0, 20.9}};
    case Algorithm::kPat:
      return {{8, 8, 8}, {0, 0, 4.0}, {0, 0, 4.0}, {0, 0, 14}};
    default:
      CHECK(false, "no latencies of this algorithm", static_cast<int>(algorithm));
  }
}

// RCCL runs these two; the PCIe rows are NCCL's.
NcclLatencies rccl_latencies(Algorithm algorithm) {
  const ByProtocol base = {12, 12, 17};
  if (algorithm == Algorithm::kTree) return {base, {0.9, 0.9, 2.3}, {1.0, 1.9, 4.0}, {10.5, 10.5, 25}};
  if (algorithm == Algorithm::kRing) return {base, {0.8, 0.8, 2.1}, {1.0, 2.5, 5.7}, {9.5, 9.5, 320}};
  return nvidia_latencies(algorithm);
}

}  // namespace

NcclLatencies nccl_latencies(NcclArchitecture architecture, Algorithm algorithm) {
  return architecture == NcclArchitecture::kCdna ? rccl_latencies(algorithm) : nvidia_latencies(algorithm);
}

NcclCeilings nccl_ceilings(NcclArchitecture architecture) {
  switch (architecture) {
    case NcclArchitecture::kHopper:
      return {{141, 45, 35}, {36.7, 36.7, 36.7}, {36.7, 36.7, 29}, {38.7, 41.4, 36}, {0, 57.7, 45.5}, 0.85};
    case NcclArchitecture::kBlackwell:
      return {{282, 90, 70}, {40, 40, 40}, {55.6, 31.67, 20}, {70, 42.8, 24}, {0, 96, 80}, 0.74};
    case NcclArchitecture::kAmpere:
    case NcclArchitecture::kCdna:
      break;
  }
  return {{87.7, 22.5, 19}, {20, 20, 20}, {20, 20, 20}, {24, 23.6, 17.8}, {24, 23.6, 17.8}, 0};
}

BySpan nccl_ll_ceiling_between_nodes(NcclCpu cpu) {
  if (cpu == NcclCpu::kAmd) return {87.7, 22.5, 19};
  return {39, 39, 20.4};
}

double nccl_tree_correction(Protocol protocol, double bytes) {
  CHECK(protocol != Protocol::kNone && bytes >= 0, bytes);
  const auto lines = static_cast<std::uint64_t>(bytes) >> 6;
  const std::size_t entry = lines == 0 ? 0 : static_cast<std::size_t>(std::bit_width(lines)) - 1;
  return entry < kTreeEntries ? kTreeCorrection[static_cast<std::size_t>(protocol) - 1][entry] : 1;
}

double nccl_network_overhead(NcclCpu cpu) { return cpu == NcclCpu::kAmd ? 2.0 : 1.0; }

std::span<const double> nccl_speeds_within_node(NcclArchitecture architecture) {
  if (architecture == NcclArchitecture::kHopper) return kWithinHopper;
  if (architecture == NcclArchitecture::kBlackwell) return kWithinBlackwell;
  return kWithinAmpere;
}

std::span<const double> nccl_speeds_between_nodes(NcclArchitecture architecture) {
  if (architecture == NcclArchitecture::kHopper) return kBetweenHopper;
  if (architecture == NcclArchitecture::kBlackwell) return kBetweenBlackwell;
  return kBetweenAmpere;
}

double nccl_usable_port(NcclArchitecture architecture) {
  switch (architecture) {
    case NcclArchitecture::kHopper:
      return 20.6 / 25;
    case NcclArchitecture::kBlackwell:
      return 40.1 / 50;
    case NcclArchitecture::kAmpere:
      return 20.0 / 25;
    case NcclArchitecture::kCdna:
      return 48.0 / 64;  // usable of an xGMI link (AMD's MI300X RCCL tuning guide)
  }
  CHECK(false, "unknown architecture");
}

}  // namespace stepcast::sim
