// The interface between the engine and what prices ops. The engine asks once per distinct (segment op, device class,
// path class) and keeps the answers.
//
// A price is the time alone and what is needed meanwhile: shares of a device's multiprocessors and memory rate, bytes
// into its scale-up port and its NIC. Shares are whole numbers of 2^-20, so that rates are solved in integers and come
// out equal whether ranks are folded or not.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "program/program.h"
#include "topology/network.h"

namespace stepcast::sim {

// A part of some capacity, in 2^-20.
using Share = std::int64_t;
inline constexpr Share kWhole = std::int64_t{1} << 20;
// `part` of `whole`, rounded up so that no need is lost; above kWhole for more than that. Nothing of nothing.
Share share_of(double part, double whole);

// Interned by the cost model: devices of equal speed share a DeviceClass; groups whose members reach each other over
// equal paths (tier, rates, members per domain) share a PathClass. Equal numbers mean equal costs, so folding compares
// them.
using DeviceClass = std::uint32_t;
using PathClass = std::uint32_t;

// A directed link that several devices use: an oversubscribed uplink, a NIC that devices share. Links that only their
// own device uses (its scale-up port, its NIC) are no LinkIds.
using LinkId = std::uint32_t;

enum class Algorithm : std::uint8_t {
  kNone,
  kRing,
  kTree,
  kNvls,
  kNvlsTree,
  kCollnetDirect,
  kCollnetChain,
  kPat,
  kP2p,
  // Not NCCL's: kernels on buffers that all members map, and copies into them.
  kUserBuffers,
  kCopyEngines
};
enum class Protocol : std::uint8_t { kNone, kLl, kLl128, kSimple };
std::string_view to_string(Algorithm algorithm);
std::string_view to_string(Protocol protocol);

// A local op alone on its device.
struct LocalCost {
  Duration time;
  Share multiprocessors = 0;  // it needs to run at full speed
  Share memory = 0;           // of the memory rate it uses at full speed

  LocalCost() = default;
  LocalCost(Duration t) : time(t) {}  // NOLINT(google-explicit-constructor): a price without demands
  LocalCost(Duration t, Share sms, Share hbm) : time(t), multiprocessors(sms), memory(hbm) {}
  bool operator==(const LocalCost&) const = default;
};

// A collective or a message alone on its path, from the latest member's start to the common end. Demands are those of
// each member, spread evenly over `time`.
struct TransferCost {
  Duration time;
  Share multiprocessors = 0;  // its kernel holds on each member, from the member's own start
  Share memory = 0;           // of the memory rate, while bytes move
  Bytes port_bytes{};         // through each member's scale-up port, each way (a message: out at the sender, in at the
                              // receiver)
  Bytes nic_bytes{};          // through each member's NIC, likewise
  Share port = 0;             // of the nominal port, while bytes move
  Share nic = 0;              // of the nominal NIC, while bytes move
  Algorithm algorithm = Algorithm::kNone;
  Protocol protocol = Protocol::kNone;
  double bus_bandwidth = 0;  // bytes/s as nccl-tests defines busbw, alone

  TransferCost() = default;
  TransferCost(Duration t) : time(t) {}  // NOLINT(google-explicit-constructor): a price without demands
  bool operator==(const TransferCost&) const = default;
};

// What a device has, of the nominal figures: less than the whole where its NIC is slowed or shared out.
struct DeviceLimits {
  Share port = kWhole;
  Share nic = kWhole;
};

// A device's links per direction, for reports only: as the vendor states them, and what a share of kWhole stands for.
struct VendorRates {
  BytesPerSecond port;
  BytesPerSecond nic;
  BytesPerSecond nominal_port;
  BytesPerSecond nominal_nic;
};

// How much of a transfer passes a shared link: `weight` / kWeightUnit times what passes one member's NIC.
using Crossing = topology::LinkUse;
inline constexpr std::int64_t kWeightUnit = topology::kLinkUseUnit;

struct SharedLink {
  Share capacity = kWhole;  // in shares of one nominal NIC: above kWhole for a link as fast as several
  std::string tier;         // leaf, spine, core
  std::string name;
};

using Pattern = topology::TrafficPattern;

class CostModel {
 public:
  virtual ~CostModel() = default;

  virtual DeviceClass device_class(std::int32_t device) const = 0;
  virtual DeviceLimits limits(DeviceClass) const { return {}; }
  virtual VendorRates vendor_rates() const { return {}; }
  // Path class of a group of devices (collectives), in member order, or of a pair, sender first (messages).
  virtual PathClass path_class(std::span<const std::int32_t> devices) const = 0;

  // By LinkId.
  virtual std::span<const SharedLink> shared_links() const { return {}; }
  // Appends the shared links that the traffic of these devices passes; each link at most once.
  virtual void append_crossings(std::span<const std::int32_t>, Pattern, std::vector<Crossing>&) const {}

  // A local op. Not called for communication, join or host_read without copy cost.
  virtual LocalCost local_cost(const program::Op& op, std::span<const program::TensorType> operands,
                               DeviceClass device) const = 0;
  // `members` is the group's size.
  virtual TransferCost collective_cost(const program::Op& op, std::span<const program::TensorType> operands,
                                       PathClass path, std::int64_t members) const = 0;
  // One message (an exchange has several).
  virtual TransferCost message_cost(Bytes message, PathClass path) const = 0;
  // One that a copy engine moves, which holds no multiprocessors.
  virtual TransferCost peer_copy_cost(Bytes message, PathClass path) const { return message_cost(message, path); }
  // Host time to issue one op, or one graph of calls.
  virtual Duration launch_time(const program::Op& op) const = 0;
  virtual Duration graph_launch_time() const = 0;
};

}  // namespace stepcast::sim
