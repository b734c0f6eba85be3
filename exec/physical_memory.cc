// See physical_memory.h.
#include "exec/physical_memory.h"

#include <unistd.h>

#include <cstring>
#include <new>

#include "base/quantity.h"

namespace stepcast::exec {
namespace {

// A cache line: vector loads of kernels never straddle one at a block's start.
constexpr std::align_val_t kHostAlignment{64};

}  // namespace

std::byte* HostMemory::allocate(std::int64_t bytes) {
  return static_cast<std::byte*>(::operator new(static_cast<std::size_t>(bytes), kHostAlignment, std::nothrow));
}

void HostMemory::release(std::byte* memory, std::int64_t) { ::operator delete(memory, kHostAlignment); }

void HostMemory::fill(std::byte* memory, int value, std::int64_t bytes) {
  std::memset(memory, value, static_cast<std::size_t>(bytes));
}

std::string HostMemory::room() const {
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  const Bytes total(sysconf(_SC_PHYS_PAGES) * page);
  const Bytes free(sysconf(_SC_AVPHYS_PAGES) * page);
  return "the host has " + format_bytes(total) + ", " + format_bytes(free) + " of them free";
}

std::byte* LimitedMemory::allocate(std::int64_t bytes) {
  if (taken_ + bytes > limit_) return nullptr;
  std::byte* memory = memory_.allocate(bytes);
  if (memory != nullptr) taken_ += bytes;
  return memory;
}

void LimitedMemory::release(std::byte* memory, std::int64_t bytes) {
  memory_.release(memory, bytes);
  taken_ -= bytes;
}

std::string LimitedMemory::room() const {
  const std::string limit = "the rank is limited to " + format_bytes(Bytes(limit_));
  const std::string under = memory_.room();
  return under.empty() ? limit : limit + "; " + under;
}

}  // namespace stepcast::exec
