// See status_page.h. Zeroed memory is a page of ranks that have not started, as its maker and nobody else constructs
// it.
#include "exec/status_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/error.h"

namespace stepcast::exec {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "processes share no locks");

// Before the slots. The stamp tells this page from what another host has at the same place.
struct alignas(64) StatusPage::Head {
  std::uint64_t stamp = 0;
  std::uint64_t ranks = 0;
  std::uint64_t slot_bytes = sizeof(RankSlot);
};

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void RankSlot::fail(int code, std::string_view text) {
  if (failing_.exchange(true)) return;
  code_ = code;
  bytes_ = static_cast<std::uint32_t>(std::min(text.size(), kLongestText));
  std::memcpy(text_.data(), text.data(), bytes_);
  failed_at_.store(now_ns(), std::memory_order_release);
}

std::optional<RankSlot::Failure> RankSlot::failure() const {
  const std::int64_t at = failed_at_.load(std::memory_order_acquire);
  if (at == 0) return std::nullopt;
  return Failure{at, code_, std::string(text_.data(), bytes_)};
}

StatusPage::StatusPage(int descriptor, void* memory, std::size_t bytes)
    : descriptor_(descriptor), memory_(memory), bytes_(bytes) {}

StatusPage::~StatusPage() {
  ::munmap(memory_, bytes_);
  ::close(descriptor_);
}

std::shared_ptr<StatusPage> StatusPage::create(std::size_t ranks) {
  const std::size_t bytes = sizeof(Head) + ranks * sizeof(RankSlot);
  const int descriptor = ::memfd_create("stepcast-status", MFD_CLOEXEC);
  void* memory = MAP_FAILED;
  if (descriptor >= 0 && ::ftruncate(descriptor, static_cast<off_t>(bytes)) == 0) {
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  }
  if (memory == MAP_FAILED) {
    const int reason = errno;
    if (descriptor >= 0) ::close(descriptor);
    throw Error(ErrorKind::kEnvironment,
                std::string("no shared memory for the status of ranks: ") + std::strerror(reason));
  }
  std::shared_ptr<StatusPage> page(new StatusPage(descriptor, memory, bytes));
  auto* head = new (memory) Head;
  head->ranks = ranks;
  head->stamp = static_cast<std::uint64_t>(now_ns()) << 16 ^ static_cast<std::uint64_t>(::getpid());
  for (std::size_t i = 0; i < ranks; ++i) new (&page->rank(i)) RankSlot;
  return page;
}

std::shared_ptr<StatusPage> StatusPage::open(const std::string& where) {
  int pid = 0;
  int number = 0;
  unsigned long long stamp = 0;
  if (std::sscanf(where.c_str(), "%d:%d:%llx", &pid, &number, &stamp) != 3) return nullptr;
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(number);
  struct stat what = {};
  const bool memory_file = ::stat(path.c_str(), &what) == 0 && S_ISREG(what.st_mode) && what.st_nlink == 0;
  if (!memory_file || what.st_size < static_cast<off_t>(sizeof(Head))) return nullptr;
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  const auto bytes = static_cast<std::size_t>(what.st_size);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) {
    ::close(descriptor);
    return nullptr;
  }
  std::shared_ptr<StatusPage> page(new StatusPage(descriptor, memory, bytes));
  const auto* head = static_cast<const Head*>(memory);
  const bool same = head->stamp == stamp && head->slot_bytes == sizeof(RankSlot) &&
                    bytes == sizeof(Head) + head->ranks * sizeof(RankSlot);
  return same ? page : nullptr;
}

std::string StatusPage::where() const {
  char text[64];
  std::snprintf(text, sizeof text, "%d:%d:%llx", static_cast<int>(::getpid()), descriptor_,
                static_cast<unsigned long long>(static_cast<const Head*>(memory_)->stamp));
  return text;
}

std::size_t StatusPage::ranks() const { return static_cast<const Head*>(memory_)->ranks; }

RankSlot& StatusPage::rank(std::size_t rank) const {
  CHECK(rank < ranks(), rank, ranks());
  return *reinterpret_cast<RankSlot*>(static_cast<std::byte*>(memory_) + sizeof(Head) + rank * sizeof(RankSlot));
}

}  // namespace stepcast::exec
