// The timeline both engines emit. Op ids are opaque here: (call index, op index) of the rank's program; names come from
// whoever holds the Program. Times are picoseconds after the start of the step.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

namespace stepcast::trace {

struct OpId {
  std::uint32_t call = 0;
  std::uint32_t op = 0;
  auto operator<=>(const OpId&) const = default;
};

// One op on one rank. A communication op occupies its stream from `begin` (own start) and moves data from `transfer`
// (the latest member's start; of an exchange, over all its messages) to `end`; for other ops transfer == begin. `issue`
// is when the host had issued it.
struct Event {
  OpId id;
  std::uint8_t stream = 0;  // program::Stream
  SimTime issue;
  SimTime begin;
  SimTime transfer;
  SimTime end;
  bool operator==(const Event&) const = default;
};

// Bytes allocated during the issue of an op, what it frees included, by memory class.
struct MemorySample {
  SimTime time;
  std::array<std::int64_t, 5> class_bytes{};
  bool operator==(const MemorySample&) const = default;
};

// A rank that was executed, or the representative of a class of ranks that was simulated.
struct Track {
  std::uint32_t rank = 0;
  std::uint32_t class_id = 0;
  std::int64_t ranks = 1;                    // ranks this track stands for
  std::string name;                          // "stage0"
  std::vector<Event> events;                 // in issue order
  std::vector<MemorySample> memory;          // may be empty
  std::array<std::int64_t, 5> class_peak{};  // each class's own peak over the step
  std::int64_t peak = 0;                     // peak of the sum
};

struct Trace {
  std::string source;             // "sim" or "exec"
  std::uint64_t fingerprint = 0;  // of the Program
  Duration step;                  // from time 0, when the hosts start to issue, to the last end
  std::vector<Track> tracks;
  std::vector<std::uint32_t> class_of_rank;  // rank -> class_id
};

}  // namespace stepcast::trace
