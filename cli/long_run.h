// What is said of a simulation that takes long: a note before it, a progress line on a terminal, and an end at Ctrl-C.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "base/progress.h"
#include "sim/watch.h"

namespace stepcast::cli {

// Ops of one simulated step from which on it is announced: about a second with its what-ifs.
inline constexpr std::uint64_t kManyOps = 1'000'000;
// From which on the what-ifs beside the answer are left out: each takes as long as the answer, some ten seconds, and as
// much memory, 2 GB.
inline constexpr std::uint64_t kMostOpsWithWhatIfs = 20'000'000;

// "note: simulating 2,048 classes of 16,384 ranks: about 11 million ops, up to 9 times (the answer and its what-ifs)".
std::string long_run_note(std::int64_t ranks, std::int64_t classes, std::uint64_t ops, std::size_t runs);

class LongRun {
 public:
  // Not long until told.
  LongRun() = default;
  // Of `ops` ops in all: from here on a progress line is shown on a terminal.
  void expect(std::uint64_t ops);
  // Ops that will not be simulated after all.
  void skip(std::uint64_t ops) { look(static_cast<std::int64_t>(ops)); }
  // Throws Interrupted at the first look after an interrupt. May be called by several threads at once.
  sim::Watch watch();

 private:
  void look(std::int64_t ops);

  std::atomic<std::int64_t> done_{0};
  std::mutex mutex_;  // of progress_
  std::optional<Progress> progress_;
};

}  // namespace stepcast::cli
