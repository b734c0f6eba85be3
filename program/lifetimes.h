// Lifetimes and peaks of a rank program, derived in issue order: a persistent buffer exists throughout; any other
// buffer, and each temp of each call, from the issue of its first access to the issue of its last access. Free of
// timing.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "program/program.h"
#include "program/resolve.h"

namespace stepcast::program {

// Bytes per MemoryClass.
using ClassBytes = std::array<std::int64_t, kMemoryClassCount>;

// One block of memory: a buffer, or a temp of a call. Ops are flat numbers; the block is alive at op positions
// [first_op, last_op]. A buffer no op touches is never allocated unless persistent.
struct Lifetime {
  bool is_temp = false;
  BufferId buffer;         // !is_temp
  std::uint32_t call = 0;  // is_temp
  std::uint16_t temp = 0;  // is_temp
  MemoryClass memory_class = MemoryClass::kActivations;
  std::int64_t bytes = 0;
  bool persistent = false;
  std::uint32_t first_op = 0;
  std::uint32_t last_op = 0;
};

struct Lifetimes {
  std::vector<Lifetime> blocks;  // accessed or persistent device blocks: buffers by id, then temps by call
  ClassBytes persistent{};       // bytes of persistent buffers
  ClassBytes class_peak{};       // each class's own maximum over issue positions
  std::int64_t peak = 0;         // maximum of the sum over classes
  std::uint32_t peak_op = 0;     // first issue position (flat op) that reaches it
  ClassBytes at_peak{};          // bytes per class there
};
// Host buffers are not counted. Block sizes are exact bytes: rounding is the allocator's and reported apart.
Lifetimes derive_lifetimes(const Program& p, const RankProgram& r, const Resolution& res);

// Bytes allocated per class at each issue position (one entry per op, during that op's issue): for counters in traces.
std::vector<ClassBytes> allocated_over_time(const Lifetimes& l, std::uint32_t op_count);

}  // namespace stepcast::program
