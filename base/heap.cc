// glibc extends its heap with brk in steps of M_TOP_PAD. One large step is made at once, because advice to the kernel
// is kept per mapping: what is added later would be pages of 4 KiB again. Reserved bytes that nobody touches cost no
// memory.
//
// A range of 2 MiB becomes one page only if none of its bytes was touched before the advice, so that the step starts a
// little below a boundary of 2 MiB: what glibc writes while it takes the step lies below.
#include "base/heap.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#if defined(__linux__) && defined(__GLIBC__)  // the second is defined once a header of the C library is included
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace stepcast {

#if defined(__linux__) && defined(__GLIBC__) && defined(MADV_HUGEPAGE)

void prepare_heap() {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  constexpr std::size_t kReserved = std::size_t{512} << 20;
  constexpr std::size_t kProbe = std::size_t{256} << 10;  // more than is left of the heap that start-up code used
  constexpr std::size_t kBelow = kProbe + (std::size_t{16} << 10);
  constexpr int kKept = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, kKept);
  mallopt(M_TRIM_THRESHOLD, kKept);
  mallopt(M_TOP_PAD, static_cast<int>(kReserved));
  const auto end = reinterpret_cast<std::uintptr_t>(sbrk(0));
  const std::uintptr_t boundary = (end + kBelow + kHugePage - 1) / kHugePage * kHugePage;
  if (sbrk(static_cast<std::intptr_t>(boundary - kBelow - end)) == reinterpret_cast<void*>(-1)) return;
  void* volatile probe = std::malloc(kProbe);  // volatile: the pair must not be optimised away
  std::free(probe);
  const auto new_end = reinterpret_cast<std::uintptr_t>(sbrk(0));
  if (new_end > boundary) madvise(reinterpret_cast<void*>(boundary), new_end - boundary, MADV_HUGEPAGE);
}

#else

void prepare_heap() {}

#endif

}  // namespace stepcast
