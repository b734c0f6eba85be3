// See simt.h.
#include "kernels/cuda/simt/simt.h"

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/check.h"

namespace stepcast::kernels::cuda::simt {
namespace {

constexpr unsigned kLanes = 32;
constexpr std::size_t kStackBytes = 64 * 1024;
constexpr std::size_t kLaneBytes = 16;

enum class Phase : std::uint8_t { kReady, kAtWarp, kAtBlock, kEnded };

struct Fiber {
  ucontext_t context{};
  std::unique_ptr<std::byte[]> stack;
  Phase phase = Phase::kReady;
  dim3 thread;
  // What is shown to the warp, in turns: while some lanes still read one, others may already show the next.
  std::array<std::array<std::byte, kLaneBytes>, 2> values{};
  unsigned turn = 0;
};

// The fibers of the blocks that one thread of the process runs, one block at a time.
class Threads {
 public:
  void run_block(std::size_t count, const std::function<void()>& body);

  void wait(Phase phase) {
    Fiber& own = fibers_[current_];
    own.phase = phase;
    swapcontext(&own.context, &scheduler_);
    threadIdx = own.thread;
  }
  Fiber& current() { return fibers_[current_]; }
  Fiber& lane(unsigned lane) { return fibers_[current_ / kLanes * kLanes + lane]; }
  unsigned own_lane() const { return static_cast<unsigned>(current_ % kLanes); }
  // Of the warp of the thread that runs.
  unsigned lanes() const {
    return static_cast<unsigned>(std::min<std::size_t>(count_ - current_ / kLanes * kLanes, kLanes));
  }

  std::vector<std::byte> shared;
  std::vector<std::byte> scratch;
  bool meets = false;

 private:
  static void enter();
  void start(std::size_t thread);
  void resume(std::size_t thread);
  // Readies the threads that have met. Whether any had.
  bool release();
  bool release_if(std::size_t begin, std::size_t end, Phase met);

  std::vector<Fiber> fibers_;
  ucontext_t scheduler_{};
  const std::function<void()>* body_ = nullptr;
  std::size_t count_ = 0;
  std::size_t current_ = 0;
  std::uint64_t order_ = 1;
};

thread_local Threads threads;

void Threads::enter() {
  (*threads.body_)();
  threads.current().phase = Phase::kEnded;
  swapcontext(&threads.current().context, &threads.scheduler_);
}

void Threads::start(std::size_t thread) {
  Fiber& fiber = fibers_[thread];
  if (!fiber.stack) fiber.stack = std::make_unique<std::byte[]>(kStackBytes);
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, &Threads::enter, 0);
  fiber.phase = Phase::kReady;
  fiber.turn = 0;
  const auto flat = static_cast<unsigned>(thread);
  fiber.thread = dim3(flat % blockDim.x, flat / blockDim.x % blockDim.y, flat / blockDim.x / blockDim.y);
}

void Threads::resume(std::size_t thread) {
  current_ = thread;
  threadIdx = fibers_[thread].thread;
  swapcontext(&scheduler_, &fibers_[thread].context);
}

bool Threads::release_if(std::size_t begin, std::size_t end, Phase met) {
  bool any = false;
  for (std::size_t i = begin; i < end; ++i) {
    if (fibers_[i].phase != met && fibers_[i].phase != Phase::kEnded) return false;
    any = any || fibers_[i].phase == met;
  }
  if (!any) return false;
  for (std::size_t i = begin; i < end; ++i) {
    if (fibers_[i].phase == met) fibers_[i].phase = Phase::kReady;
  }
  return true;
}

bool Threads::release() {
  bool any = false;
  for (std::size_t warp = 0; warp < count_; warp += kLanes) {
    any = release_if(warp, std::min(warp + kLanes, count_), Phase::kAtWarp) || any;
  }
  return release_if(0, count_, Phase::kAtBlock) || any;
}

void Threads::run_block(std::size_t count, const std::function<void()>& body) {
  body_ = &body;
  count_ = count;
  if (fibers_.size() < count) fibers_.resize(count);
  for (std::size_t i = 0; i < count; ++i) start(i);
  for (;;) {
    // Another order each time: an odd stride through a number of threads rounded up to a power of two.
    order_ = order_ * 6364136223846793005U + 1442695040888963407U;
    std::size_t rounded = 1;
    while (rounded < count) rounded *= 2;
    for (std::size_t i = 0; i < rounded; ++i) {
      const std::size_t thread = (i * ((order_ >> 33) | 1U) + (order_ >> 17)) & (rounded - 1);
      if (thread < count && fibers_[thread].phase == Phase::kReady) resume(thread);
    }
    if (release()) continue;
    std::size_t ended = 0;
    for (std::size_t i = 0; i < count; ++i) ended += fibers_[i].phase == Phase::kEnded ? 1 : 0;
    if (ended == count) return;
    CHECK(ended == count, "threads of a block wait for others that cannot come", ended, count);
  }
}

}  // namespace

void run(dim3 blocks, dim3 block_threads, std::size_t shared_size, bool meets, const std::function<void()>& body) {
  const std::size_t count = std::size_t{block_threads.x} * block_threads.y * block_threads.z;
  CHECK(count >= 1 && count <= 1024, count);
  gridDim = blocks;
  blockDim = block_threads;
  threads.meets = meets;
  for (unsigned z = 0; z < blocks.z; ++z) {
    for (unsigned y = 0; y < blocks.y; ++y) {
      for (unsigned x = 0; x < blocks.x; ++x) {
        blockIdx = dim3(x, y, z);
        threads.shared.assign(shared_size, std::byte{0xff});
        if (meets) {
          threads.run_block(count, body);
          continue;
        }
        for (unsigned i = 0; i < count; ++i) {
          threadIdx = dim3(i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y);
          body();
        }
      }
    }
  }
}

std::byte* scratch(std::size_t bytes) {
  threads.scratch.assign(bytes, std::byte{0xff});  // NaN until a kernel writes it
  return threads.scratch.data();
}

std::byte* shared_bytes() { return threads.shared.data(); }

void meet_block() {
  CHECK(threads.meets, "Grid::meets is false, but threads meet");
  threads.wait(Phase::kAtBlock);
}

void meet_warp() {
  CHECK(threads.meets, "Grid::meets is false, but threads meet");
  threads.wait(Phase::kAtWarp);
}

void exchange(const void* own, std::size_t bytes, unsigned lane, void* other) {
  CHECK(bytes <= kLaneBytes && lane < kLanes, bytes, lane);
  Fiber& fiber = threads.current();
  const unsigned turn = fiber.turn;
  fiber.turn = 1 - turn;
  std::memcpy(fiber.values[turn].data(), own, bytes);
  meet_warp();
  std::memcpy(other, threads.lane(lane).values[turn].data(), bytes);
}

unsigned votes(bool own) {
  Fiber& fiber = threads.current();
  const unsigned turn = fiber.turn;
  fiber.turn = 1 - turn;
  fiber.values[turn][0] = std::byte{own};
  meet_warp();
  unsigned bits = 0;
  for (unsigned lane = 0; lane < threads.lanes(); ++lane) {
    bits |= static_cast<unsigned>(threads.lane(lane).values[turn][0]) << lane;
  }
  return bits;
}

unsigned own_lane() { return threads.own_lane(); }

}  // namespace stepcast::kernels::cuda::simt
