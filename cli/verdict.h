// Which rank ended a job, judged by what can be seen of all of them. When one dies, a launcher ends the others; when
// one stops or hangs, the others wait: none of those is named.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "cli/processes.h"
#include "exec/status_page.h"
#include "exec/waiting.h"

namespace stepcast::cli {

enum class CauseKind : std::uint8_t {
  kDied,        // its process is gone and has not said why
  kFailed,      // it has said why
  kTerminated,  // it took SIGTERM
  kStopped,     // its process is stopped
  kHolds,       // others wait for it and it does not move
  kNotStarted,
};

struct Cause {
  std::size_t rank = 0;
  CauseKind kind = CauseKind::kDied;
  std::optional<std::size_t> waiter;  // of kHolds
};

// A rank as its supervisor sees it.
struct RankSight {
  bool started = false;
  ProcessState process = ProcessState::kRuns;
  bool ended_well = false;
  std::int64_t failed_at = 0;      // 0: it has not
  std::int64_t terminated_at = 0;  // 0: it was not
  double stopped_s = 0;            // for how long its process has been stopped
};

// The first of: dead without a word, failed, ended by SIGTERM, stopped for at least `patience_s`. Of several the
// earliest, else the lowest rank.
std::optional<Cause> cause_seen(const std::vector<RankSight>& ranks, double patience_s);

// Finds ranks that others have waited for too long, from boards that it looks at now and then.
class StallWatch {
 public:
  StallWatch(const program::CheckedProgram& program, std::vector<const exec::RankSlot*> slots, double timeout_s);

  // `now_s` is time in which this process ran: when it was stopped, nobody was late. A rank that others have waited for
  // `timeout_s` or longer, in a collective, a message or before a step, and that has completed no op for so long; or
  // one that has not started by start_timeout_s().
  std::optional<Cause> look(double now_s);

  // Starting a rank takes as long as the machine is busy, whatever is asked of a step.
  double start_timeout_s() const { return std::max(timeout_s_, 60.0); }

  const exec::Waiting& waiting() const { return waiting_; }

 private:
  // What a rank was at and since when.
  struct Since {
    std::uint64_t step = 0;
    std::uint64_t value = 0;
    double seconds = 0;
    void see(std::uint64_t new_step, std::uint64_t new_value, double now_s);
  };
  struct RankTimes {
    Since progress;                                    // ops completed
    Since host;                                        // the host's word
    std::array<Since, program::kStreamCount> streams;  // words
  };

  const exec::StatusBoard* board(program::RankId rank) const;
  std::optional<Cause> missing(double now_s) const;
  bool waits_too_long(std::size_t rank, double now_s);
  bool stuck(program::RankId rank, double now_s) const;

  std::vector<const exec::RankSlot*> slots_;  // by rank; null where it cannot be seen
  bool all_seen_;
  double timeout_s_;
  std::vector<RankTimes> times_;
  exec::Waiting waiting_;
};

}  // namespace stepcast::cli
