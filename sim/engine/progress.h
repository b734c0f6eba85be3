// What is left of an op or a transfer that runs at changing speed.
//
// Work is counted in picoseconds at full speed times kWhole, speed in shares of kWhole: all whole numbers, so that when
// it ends does not depend on how often it was looked at meanwhile.
#pragma once

#include <cstdint>
#include <limits>

#include "base/check.h"
#include "base/units.h"
#include "sim/cost/cost.h"

namespace stepcast::sim {

class Progress {
 public:
  void start(SimTime now, Duration alone) {
    left_ = static_cast<__int128>(alone.ps) * kWhole;
    since_ = now.ps;
    rate_ = kWhole;
  }

  // From `now` on at another speed: at least 1.
  void change(SimTime now, Share rate) {
    CHECK(rate > 0 && rate <= kWhole, rate);
    left_ -= static_cast<__int128>(rate_) * (now.ps - since_);
    CHECK(left_ >= 0, now.ps, since_);
    since_ = now.ps;
    rate_ = rate;
  }

  Share rate() const { return rate_; }

  // Throws Error (kInput) beyond 106 days.
  SimTime end() const {
    // Full speed is the common case, and a shift is cheaper than a division.
    const __int128 whole = left_ + rate_ - 1;
    const __int128 more = rate_ == kWhole ? whole >> 20 : whole / rate_;
    // Beyond 64 bits whatever is added overflows, and says so.
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    return SimTime(since_) + Duration(more > kMost ? kMost : static_cast<std::int64_t>(more));
  }

 private:
  __int128 left_ = 0;
  std::int64_t since_ = 0;
  Share rate_ = kWhole;
};
static_assert(kWhole == std::int64_t{1} << 20);

}  // namespace stepcast::sim
