// A table of plain records, not filled before it is used: a step of thousands of ranks has hundreds of MB of times,
// each written once. Large ones ask for huge pages, which spare most page faults and address-translation misses.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace stepcast::sim {

template <class T>
class LargeTable {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  explicit LargeTable(std::size_t size) : size_(size), items_(allocate(size)) {}

  T& operator[](std::size_t i) { return items_.get()[i]; }
  const T& operator[](std::size_t i) const { return items_.get()[i]; }
  std::size_t size() const { return size_; }
  T* begin() { return items_.get(); }
  T* end() { return items_.get() + size_; }
  const T* begin() const { return items_.get(); }
  const T* end() const { return items_.get() + size_; }

 private:
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;
  struct Free {
    void operator()(T* items) const { std::free(items); }
  };

  static T* allocate(std::size_t size) {
    const std::size_t bytes = size * sizeof(T);
    const std::size_t alignment = bytes >= 2 * kHugePage ? kHugePage : alignof(std::max_align_t);
    void* memory = std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
    if (memory == nullptr) throw std::bad_alloc();
    // A wish: where it is not granted, nothing but speed is lost.
    if (alignment == kHugePage) static_cast<void>(madvise(memory, bytes, MADV_HUGEPAGE));
    return static_cast<T*>(memory);
  }

  std::size_t size_;
  std::unique_ptr<T, Free> items_;
};

}  // namespace stepcast::sim
