// Memory that the ranks of one host and the process that watches them share: where each rank is, and how it ended. A
// rank that is killed, stopped or hung says nothing more; what it wrote here last can still be read.
//
// The page has no name in any file system. Its maker holds it open, and the others of its host and user open it through
// the maker's descriptors, so that nothing is left of it when the last of them has ended, however they did.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "exec/status.h"

namespace stepcast::exec {

// What is known of one rank. The rank's process alone writes it, `seen` excepted; all of it can be read at any time.
class RankSlot {
 public:
  StatusBoard board;
  std::atomic<std::int32_t> pid{0};  // 0: not started
  // The rank is busy with what the others have no part in, such as the comparison with the reference: it may take as
  // long as it likes.
  std::atomic<bool> aside{false};
  std::atomic<bool> ended_well{false};
  // When the process took SIGTERM, which it got because something else had happened; 0: it did not.
  std::atomic<std::int64_t> terminated_at{0};
  std::atomic<bool> seen{false};  // the watcher has read the failure

  struct Failure {
    std::int64_t at = 0;  // now_ns()
    int code = 0;         // exit code
    std::string text;
  };
  // The first one is kept, its text up to kLongestText bytes.
  void fail(int code, std::string_view text);
  std::optional<Failure> failure() const;

  static constexpr std::size_t kLongestText = 4096;

 private:
  std::atomic<bool> failing_{false};
  std::atomic<std::int64_t> failed_at_{0};  // written last
  std::int32_t code_ = 0;
  std::uint32_t bytes_ = 0;
  std::array<char, kLongestText> text_;
};

// Nanoseconds of the clock that all processes of a host share. Safe in a signal handler.
std::int64_t now_ns();

class StatusPage {
 public:
  // Throws Error (kEnvironment) where the system has no memory for it.
  static std::shared_ptr<StatusPage> create(std::size_t ranks);
  // The page that `where` names; null where there is none: on another host, or after its maker has ended.
  static std::shared_ptr<StatusPage> open(const std::string& where);
  ~StatusPage();
  StatusPage(const StatusPage&) = delete;
  StatusPage& operator=(const StatusPage&) = delete;

  // For open() in another process, while this one lives.
  std::string where() const;
  std::size_t ranks() const;
  RankSlot& rank(std::size_t rank) const;

 private:
  struct Head;

  StatusPage(int descriptor, void* memory, std::size_t bytes);

  int descriptor_;
  void* memory_;
  std::size_t bytes_;
};

}  // namespace stepcast::exec
