// See fault.h.
#include "cli/fault.h"

#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <memory>
#include <string_view>
#include <thread>

#include "base/error.h"

namespace stepcast::cli {
namespace {

struct KindName {
  std::string_view name;
  FaultKind kind;
};
constexpr KindName kKindNames[] = {{"throw", FaultKind::kThrow},
                                   {"kill", FaultKind::kKill},
                                   {"stop", FaultKind::kStop},
                                   {"hang", FaultKind::kHang},
                                   {"slow", FaultKind::kSlow}};

template <class T>
std::optional<T> whole_number(std::string_view text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

bool read_when(std::string_view text, Fault& fault) {
  if (text.starts_with("step")) {
    fault.step = whole_number<std::int64_t>(text.substr(4));
    return fault.step.has_value() && *fault.step >= 1;
  }
  if (!text.ends_with("s")) return false;
  const std::optional<double> seconds = whole_number<double>(text.substr(0, text.size() - 1));
  fault.after_s = seconds.value_or(-1);
  return fault.after_s >= 0 && fault.after_s < 1e9;
}

bool read_kind(std::string_view text, Fault& fault) {
  for (const KindName& known : kKindNames) {
    if (known.name != text) continue;
    fault.kind = known.kind;
    return true;
  }
  return false;
}

void make(FaultKind kind) {
  switch (kind) {
    case FaultKind::kThrow:
      throw Error(ErrorKind::kExecution, "injected fault");
    case FaultKind::kKill:
      ::raise(SIGKILL);
      return;
    case FaultKind::kStop:
      ::kill(::getpid(), SIGSTOP);
      return;
    case FaultKind::kHang:
      for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
    case FaultKind::kSlow:
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return;
  }
}

using FaultClock = std::chrono::steady_clock;

// What the threads of the rank share.
struct FaultState {
  std::atomic<FaultClock::rep> first{0};  // when the rank's first kernel began
  std::atomic<bool> made{false};
};

bool is_time(const Fault& fault, FaultState& state, std::int64_t step) {
  if (fault.step) return step >= *fault.step;
  const FaultClock::rep now = FaultClock::now().time_since_epoch().count();
  FaultClock::rep first = 0;
  if (state.first.compare_exchange_strong(first, now)) first = now;
  return std::chrono::duration<double>(FaultClock::duration(now - first)).count() >= fault.after_s;
}

}  // namespace

Fault parse_fault(const std::string& text) {
  const std::string_view all = text;
  const std::size_t first = all.find(':');
  const std::size_t last = all.rfind(':');
  Fault fault;
  bool good = first != last;
  if (good) {
    const std::optional<std::uint32_t> rank = whole_number<std::uint32_t>(all.substr(0, first));
    fault.rank = rank.value_or(0);
    good = rank && read_when(all.substr(first + 1, last - first - 1), fault) && read_kind(all.substr(last + 1), fault);
  }
  if (good) return fault;
  throw Error(
      ErrorKind::kUsage, "--inject has the form RANK:WHEN:KIND, not '" + text + "'", {},
      {"WHEN is stepN, or seconds such as 1.5s; KIND is throw, kill, stop, hang or slow", "--inject 2:step3:kill"});
}

std::function<void(program::RankId, std::int64_t)> fault_maker(const Fault& fault) {
  return [fault, state = std::make_shared<FaultState>()](program::RankId rank, std::int64_t step) {
    if (rank.value != fault.rank || !is_time(fault, *state, step)) return;
    if (state->made.exchange(true) && fault.kind != FaultKind::kSlow) return;
    make(fault.kind);
  };
}

}  // namespace stepcast::cli
