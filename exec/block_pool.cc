// See block_pool.h. Best fit among blocks of at most twice the size.
#include "exec/block_pool.h"

#include <algorithm>
#include <new>

#include "base/check.h"

namespace stepcast::exec {
namespace {

// A cache line: vector loads of kernels never straddle one at a block's start.
constexpr std::int64_t kAlignment = 64;

std::int64_t rounded(std::int64_t bytes) {
  return std::max((bytes + kAlignment - 1) / kAlignment * kAlignment, kAlignment);
}

// Whether a use is pending on a stream other than `home` (nullopt: on any).
bool pending(const LastUse& use, std::optional<program::Stream> home, const StreamProgress& progress) {
  for (std::size_t s = 0; s < use.size(); ++s) {
    const auto stream = static_cast<program::Stream>(s);
    if (use[s] > 0 && stream != home && progress.of(stream) < use[s]) return true;
  }
  return false;
}

}  // namespace

void BlockPool::Delete::operator()(std::byte* memory) const { ::operator delete(memory, std::align_val_t(kAlignment)); }

BlockPool::Taken BlockPool::take(std::int64_t bytes, std::optional<program::Stream> home,
                                 const StreamProgress& progress) {
  CHECK(bytes >= 0, bytes);
  const std::int64_t capacity = rounded(bytes);
  for (auto it = free_.lower_bound(capacity); it != free_.end() && it->first <= 2 * capacity; ++it) {
    const std::uint32_t block = it->second;
    if (pending(blocks_[block].last_use, home, progress)) continue;
    free_.erase(it);
    return Taken{block, !pending(blocks_[block].last_use, std::nullopt, progress)};
  }
  Block fresh;
  fresh.memory.reset(
      static_cast<std::byte*>(::operator new(static_cast<std::size_t>(capacity), std::align_val_t(kAlignment))));
  fresh.capacity = capacity;
  blocks_.push_back(std::move(fresh));
  physical_bytes_ += capacity;
  return Taken{static_cast<std::uint32_t>(blocks_.size() - 1), true};
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
