// Memory of one rank: persistent buffers, and the blocks that live from the issue of their first access to the issue of
// their last (DESIGN 1.3). Counts exact bytes per memory class.
//
// It knows when an access is the last because it counted the accesses at load (load.h) and counts down as ops are
// issued. Host buffers are backed by the same memory and not counted. Only the issuer thread calls issue().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exec/block_pool.h"
#include "exec/load.h"
#include "kernels/kernel.h"
#include "program/program.h"
#include "program/resolve.h"

namespace stepcast::exec {

using ClassBytes = std::array<std::int64_t, program::kMemoryClassCount>;

// Memory that an op must fill with NaN before it starts, because an earlier user may run until then.
struct PoisonRange {
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
};

struct OpMemory {
  std::vector<kernels::Tensor> operands;
  std::vector<PoisonRange> poison;
};

// What the buffers of each space are made of; may be the same.
struct MemorySpaces {
  PhysicalMemory& device;
  PhysicalMemory& host;
};

class Allocator {
 public:
  // Allocates the persistent buffers, filled with zero. The references must outlive the allocator. With `poison`, every
  // block taken is filled with NaN bytes before its first use. Throws as issue() does.
  Allocator(const program::Program& p, const program::RankProgram& r, const program::Resolution& res,
            const LoadedProgram& loaded, MemorySpaces memory, bool poison);

  // Resets counts and peaks; no op is running.
  void begin_step();
  // Memory of flat op `op`: to be called for every op, in issue order; `covered` is what precedes it by the waits of
  // its stream (block_pool.h). `allocated()` then tells the bytes during its issue. Throws Error (kExecution) where
  // there is no room, naming the block, what is allocated, and what there is.
  OpMemory issue(std::uint32_t op, const StreamProgress& progress, const StreamCounts& covered = {});

  const ClassBytes& allocated() const { return during_issue_; }
  const ClassBytes& class_peak() const { return class_peak_; }  // each class's own maximum over the step so far
  std::int64_t peak() const { return peak_; }                   // maximum of the sum
  std::int64_t physical_bytes() const { return device_.physical_bytes() + host_.physical_bytes(); }
  std::byte* persistent_data(program::BufferId buffer);

 private:
  struct Block {
    std::optional<std::uint32_t> physical;  // of the pool, while allocated
    std::uint32_t accesses_left = 0;
    LastUse last_use{};
  };
  struct Place {
    Block* block = nullptr;
    const BlockUse* use = nullptr;
    std::int64_t block_bytes = 0;
    std::int64_t byte_offset = 0;
    std::optional<program::MemoryClass> counted;  // empty for host and persistent buffers
    bool persistent = false;
    program::Space space = program::Space::kDevice;
    std::string_view name;
  };

  void begin_call(std::uint32_t call);
  Place place_of(std::uint32_t call, const program::Operand& operand);
  kernels::Tensor access(const Place& place, const program::TensorType& type, OpMemory& memory,
                         const StreamProgress& progress, const StreamCounts& covered);
  BlockPool::Taken take(const Place& place, const StreamProgress& progress, const StreamCounts& covered);
  std::string no_room(std::string_view name, std::int64_t bytes, program::Space space);
  void release(const Place& place, program::Stream stream, std::uint32_t position);
  void note_peak();
  BlockPool& pool(program::Space space) { return space == program::Space::kDevice ? device_ : host_; }

  const program::Program& program_;
  const program::RankProgram& rank_program_;
  const program::Resolution& resolution_;
  const LoadedProgram& loaded_;
  bool poison_;
  BlockPool device_;
  BlockPool host_;
  std::vector<Block> buffers_;         // by BufferId
  std::vector<Block> temps_;           // of the call being issued
  std::optional<std::uint32_t> call_;  // being issued
  ClassBytes persistent_bytes_{};
  ClassBytes now_{};
  ClassBytes during_issue_{};
  ClassBytes class_peak_{};
  std::int64_t peak_ = 0;
};

}  // namespace stepcast::exec
