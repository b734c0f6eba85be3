// What a job pins in NCCL's environment: NCCL_ALGO, NCCL_PROTO, NCCL_NVLS_ENABLE, NCCL_MAX_CTAS. Other variables are
// left alone: they do not change what is priced.
//
// A list names what is allowed, a list after ^ what is not (case does not matter), as NCCL's parser reads it. Lists per
// collective ("allreduce:ring;...") are known, not supported.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"
#include "sim/cost/nccl_tables.h"

namespace stepcast::sim {

struct NcclPins {
  std::array<bool, kAlgorithmCount> algorithms{true, true, true, true, true, true, true, true, true};
  std::array<bool, kProtocolCount> protocols{true, true, true, true};
  bool protocols_given = false;  // then LL128 is on or off as given, not by NCCL's rule for it
  bool nvls = true;
  std::int32_t max_ctas = 0;           // 0: not given
  Location where{"", 0, "NCCL_ALGO"};  // of what may leave no algorithm

  bool allows(Algorithm a) const { return algorithms[static_cast<std::size_t>(a)]; }
  bool allows(Protocol p) const { return protocols[static_cast<std::size_t>(p)]; }
};

// Where each variable was given; one that is missing here is located by its name.
using PinLocations = std::map<std::string, Location>;

// Whether a variable is one of those above.
bool is_nccl_pin(std::string_view name);

// Throws Error with every bad value: kInput, naming the variable, where it was given and the words it allows;
// kUnsupported for lists per collective.
NcclPins parse_nccl_pins(const std::map<std::string, std::string>& environment, const PinLocations& where = {});

}  // namespace stepcast::sim
