// See block_pool.h. Best fit among blocks of at most twice the size.
#include "exec/block_pool.h"

#include <algorithm>

#include "base/check.h"

namespace stepcast::exec {
namespace {

constexpr std::int64_t kGranule = 64;

std::int64_t rounded(std::int64_t bytes) { return std::max((bytes + kGranule - 1) / kGranule * kGranule, kGranule); }

// Whether a use is pending on a stream other than `home` (nullopt: on any) and not among the ops `covered`.
bool pending(const LastUse& use, std::optional<program::Stream> home, const StreamProgress& progress,
             const StreamCounts& covered) {
  for (std::size_t s = 0; s < use.size(); ++s) {
    const auto stream = static_cast<program::Stream>(s);
    if (use[s] > covered[s] && stream != home && progress.of(stream) < use[s]) return true;
  }
  return false;
}

bool idle(const LastUse& use, const StreamProgress& progress) { return !pending(use, std::nullopt, progress, {}); }

}  // namespace

BlockPool::~BlockPool() {
  for (const Block& block : blocks_) {
    if (block.memory != nullptr) memory_.release(block.memory, block.capacity);
  }
}

BlockPool::Taken BlockPool::take(std::int64_t bytes, std::optional<program::Stream> home,
                                 const StreamProgress& progress, const StreamCounts& covered) {
  CHECK(bytes >= 0, bytes);
  const std::int64_t capacity = rounded(bytes);
  for (;;) {
    if (const std::optional<Taken> taken = take_free(capacity, home, progress, covered)) return *taken;
    if (std::byte* fresh = memory_.allocate(capacity)) {
      blocks_.push_back({.memory = fresh, .capacity = capacity, .last_use = {}});
      physical_bytes_ += capacity;
      return Taken{static_cast<std::uint32_t>(blocks_.size() - 1), true};
    }
    if (release_idle(progress)) continue;
    if (!progress.wait_for_more || !progress.wait_for_more()) throw OutOfMemory{};
  }
}

std::optional<BlockPool::Taken> BlockPool::take_free(std::int64_t capacity, std::optional<program::Stream> home,
                                                     const StreamProgress& progress, const StreamCounts& covered) {
  const StreamCounts preceding = home ? covered : StreamCounts{};
  for (auto it = free_.lower_bound(capacity); it != free_.end() && it->first <= 2 * capacity; ++it) {
    const std::uint32_t block = it->second;
    if (pending(blocks_[block].last_use, home, progress, preceding)) continue;
    free_.erase(it);
    return Taken{block, idle(blocks_[block].last_use, progress)};
  }
  return std::nullopt;
}

// Whether there was one.
bool BlockPool::release_idle(const StreamProgress& progress) {
  bool released = false;
  for (auto it = free_.begin(); it != free_.end();) {
    Block& block = blocks_[it->second];
    if (!idle(block.last_use, progress)) {
      ++it;
      continue;
    }
    memory_.release(block.memory, block.capacity);
    block.memory = nullptr;
    physical_bytes_ -= block.capacity;
    it = free_.erase(it);
    released = true;
  }
  return released;
}

void BlockPool::give(std::uint32_t block, const LastUse& last_use) {
  CHECK(block < blocks_.size(), block, blocks_.size());
  blocks_[block].last_use = last_use;
  free_.emplace(blocks_[block].capacity, block);
}

void BlockPool::settle() {
  for (Block& block : blocks_) block.last_use = LastUse{};
}

}  // namespace stepcast::exec
