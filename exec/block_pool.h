// Physical memory of one rank: blocks that are taken at issue and given back at issue, while earlier ops may still run.
//
// A block given back is usable at once by an op that its remaining uses precede, on the same stream or by waits that
// its stream has been given, and by anyone once its last uses have completed; when none fits, the pool grows. Sizes are
// rounded, so physical bytes are reported apart from the exact bytes that the allocator counts. Only the rank's issuer
// thread calls it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "exec/physical_memory.h"
#include "program/types.h"

namespace stepcast::exec {

// Ops completed per stream of a rank, in this step. Written by the stream's worker, read by everyone.
struct StreamProgress {
  std::array<std::atomic<std::uint32_t>, program::kStreamCount> completed{};
  // Where it is set: waits for another op to complete and says whether one has. A pool without room calls it.
  std::function<bool()> wait_for_more;

  std::uint32_t of(program::Stream s) const {
    return completed[static_cast<std::size_t>(s)].load(std::memory_order_acquire);
  }
};

// A number of ops per stream, the first ones of a step.
using StreamCounts = std::array<std::uint32_t, program::kStreamCount>;
// Per stream: how many of its ops must have completed before the block's last access there is over; 0 where none is.
using LastUse = StreamCounts;

class BlockPool {
 public:
  // `memory` must outlive the pool.
  explicit BlockPool(PhysicalMemory& memory) : memory_(memory) {}
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  struct Taken {
    std::uint32_t block = 0;
    bool idle = false;  // no earlier use can still be running
  };

  // A block of at least `bytes`. With `home`, every access of the new owner follows an op on that stream that is not
  // issued yet, so uses still pending on that stream do not matter, nor those among the ops `covered` that precede this
  // op by its waits. Without room, idle blocks go back to the memory, and ops are waited for; throws OutOfMemory when
  // that does not help.
  Taken take(std::int64_t bytes, std::optional<program::Stream> home, const StreamProgress& progress,
             const StreamCounts& covered = {});
  void give(std::uint32_t block, const LastUse& last_use);
  // All ops have completed: no block has a pending use any more.
  void settle();

  std::byte* data(std::uint32_t block) { return blocks_[block].memory; }
  std::int64_t physical_bytes() const { return physical_bytes_; }
  PhysicalMemory& memory() { return memory_; }

 private:
  struct Block {
    std::byte* memory = nullptr;  // null once it has gone back to the memory
    std::int64_t capacity = 0;
    LastUse last_use{};
  };

  std::optional<Taken> take_free(std::int64_t capacity, std::optional<program::Stream> home,
                                 const StreamProgress& progress, const StreamCounts& covered);
  bool release_idle(const StreamProgress& progress);

  PhysicalMemory& memory_;
  std::vector<Block> blocks_;
  std::multimap<std::int64_t, std::uint32_t> free_;  // capacity -> block
  std::int64_t physical_bytes_ = 0;
};

}  // namespace stepcast::exec
