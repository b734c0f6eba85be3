// See supervisor.h.
#include "cli/supervisor.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>

#include "base/check.h"
#include "base/error.h"
#include "cli/command_line.h"
#include "cli/interrupt.h"
#include "cli/rank_process.h"
#include "exec/status_page.h"
#include "report/error_output.h"

namespace stepcast::cli {
namespace {

constexpr int kLookMs = 25;
// A stop shorter than this may be somebody's look at the process.
constexpr double kStoppedTooLong = 2;
// How long the leader may take to end after a rank: its threads end one by one, and mpirun says by which signal a rank
// has died after it has ended the others.
constexpr double kWaitForLeader = 1.5;
constexpr std::size_t kMostLines = 16;

double seconds_now() { return static_cast<double>(exec::now_ns()) * 1e-9; }

std::vector<const exec::RankSlot*> watched(const exec::StatusPage& page, const std::vector<std::size_t>& ranks) {
  std::vector<const exec::RankSlot*> slots(page.ranks(), nullptr);
  for (const std::size_t rank : ranks) slots[rank] = &page.rank(rank);
  return slots;
}

// Exit code of a program that ended by itself: its own, or that of a real run that failed.
int exit_code_of(int status) {
  if (!WIFEXITED(status)) return static_cast<int>(ErrorKind::kExecution);
  const int code = WEXITSTATUS(status);
  const bool own = code <= static_cast<int>(ErrorKind::kExecution) || code == kInterruptedCode;
  return own ? code : static_cast<int>(ErrorKind::kExecution);
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", seconds);
  return text;
}

StartedProgram started_program(const SupervisedJob& job, const exec::StatusPage& page) {
  return {.words = job.words,
          .environment = {{kPageVariable, page.where()}},
          .keep_errors = job.launcher,
          .death_signal = job.launcher ? SIGTERM : SIGKILL};
}

}  // namespace

Supervisor::Supervisor(const SupervisedJob& job)
    : job_(job),
      page_(exec::StatusPage::create(job.program.program().ranks.size())),
      slots_(watched(*page_, job.ranks)),
      stalls_(job.program, slots_, job.timeout_s),
      stopped_s_(slots_.size(), 0),
      last_look_s_(seconds_now()),
      tree_((note_end_signals(), started_program(job, *page_))) {}

// Time in which this process ran, so that a pause of the whole machine counts against nobody.
double Supervisor::watched_seconds() {
  constexpr double kLongestLook = 0.25;
  const double now = seconds_now();
  const double passed = std::min(now - last_look_s_, kLongestLook);
  last_look_s_ = now;
  watched_s_ += passed;
  return passed;
}

std::vector<RankSight> Supervisor::sights() {
  const double passed = watched_seconds();
  std::vector<RankSight> sights;
  for (const std::size_t rank : job_.ranks) {
    const exec::RankSlot& slot = *slots_[rank];
    RankSight sight;
    const pid_t pid = slot.pid.load();
    sight.started = pid != 0;
    // Asked before what the rank has said of its end, which it does while it is there.
    if (sight.started) sight.process = process_state(pid);
    stopped_s_[rank] = sight.process == ProcessState::kStopped ? stopped_s_[rank] + passed : 0;
    sight.stopped_s = stopped_s_[rank];
    sight.ended_well = slot.ended_well.load();
    sight.terminated_at = slot.terminated_at.load();
    if (const auto failure = slot.failure()) sight.failed_at = failure->at;
    sights.push_back(sight);
  }
  return sights;
}

std::optional<Cause> Supervisor::look() {
  std::optional<Cause> cause = cause_seen(sights(), kStoppedTooLong);
  if (cause) {
    cause->rank = job_.ranks[cause->rank];
    return cause;
  }
  return stalls_.look(watched_s_);
}

std::vector<pid_t> Supervisor::pids() const {
  std::vector<pid_t> pids;
  for (const std::size_t rank : job_.ranks) {
    const pid_t pid = slots_[rank]->pid.load();
    if (pid != 0 && process_state(pid) != ProcessState::kGone) pids.push_back(pid);
  }
  return pids;
}

void Supervisor::pass_on_errors(bool at_end) {
  if (tree_.errors() < 0) return;
  char bytes[4096];
  for (ssize_t n = 0; (n = ::read(tree_.errors(), bytes, sizeof bytes)) > 0;) {
    text_.add({bytes, static_cast<std::size_t>(n)});
  }
  std::fputs(text_.take(at_end).c_str(), stderr);
}

int Supervisor::run() {
  for (;;) {
    if (const int number = end_signal()) return end_by_signal(number);
    pollfd errors = {tree_.errors(), POLLIN, 0};
    const bool hangs_up = ::poll(&errors, 1, kLookMs) > 0 && (errors.revents & POLLIN) == 0;
    if (hangs_up) ::usleep(kLookMs * 1000);
    pass_on_errors();
    // Asked first: what ranks say of their end is there when the leader has ended.
    const std::optional<int> status = tree_.leader_status();
    const std::optional<Cause> cause = look();
    if (const int number = end_signal()) return end_by_signal(number);
    if (cause) return fail(*cause);
    if (status) return ended(*status);
  }
}

int Supervisor::end_by_signal(int number) {
  tree_.end_all(pids());
  // Under a launcher it is the launcher's to speak.
  if (!job_.one_of_several) std::fputs(number == SIGINT ? "interrupted\n" : "ended by SIGTERM\n", stderr);
  return 128 + number;
}

// The program has ended, and no rank has failed that could be seen.
int Supervisor::ended(int status) {
  tree_.end_all(pids());
  pass_on_errors(true);
  const bool all_well = std::all_of(job_.ranks.begin(), job_.ranks.end(),
                                    [this](std::size_t rank) { return slots_[rank]->ended_well.load(); });
  if (all_well) return exit_code_of(status);
  const std::string& program = job_.words.front();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
    throw Error(ErrorKind::kEnvironment, "cannot start " + program, {},
                job_.launcher ? std::vector<std::string>{"install Open MPI (Debian: openmpi-bin)", "--ranks-as threads"}
                              : std::vector<std::string>{});
  }
  const bool any_started = std::any_of(job_.ranks.begin(), job_.ranks.end(),
                                       [this](std::size_t rank) { return slots_[rank]->pid.load() != 0; });
  const std::string how = WIFSIGNALED(status) ? " was killed by " + signal_text(WTERMSIG(status))
                                              : " ended with code " + std::to_string(WEXITSTATUS(status));
  throw Error(any_started ? ErrorKind::kExecution : ErrorKind::kEnvironment,
              program + how + (any_started ? " before the ranks had ended" : " before a rank had started"));
}

void Supervisor::wait_for_leader() {
  const double end = seconds_now() + kWaitForLeader;
  while (!tree_.leader_status() && seconds_now() < end && end_signal() == 0) {
    ::usleep(5000);
    pass_on_errors();
  }
}

int Supervisor::fail(const Cause& cause) {
  const std::string status = table();
  if (cause.kind == CauseKind::kDied) wait_for_leader();
  const std::string first = headline(cause);
  const std::optional<exec::RankSlot::Failure> failure =
      cause.kind == CauseKind::kFailed ? slots_[cause.rank]->failure() : std::nullopt;
  if (!job_.one_of_several) {
    tree_.end_all(pids());
    pass_on_errors(true);
  }
  const FailureNote note = FailureNote::unpacked(failure ? failure->text : "");
  const int code = failure ? failure->code : static_cast<int>(ErrorKind::kExecution);
  if (code == kInternalCode) throw InternalError(first + "\n" + status);
  const bool of_the_run = code >= static_cast<int>(ErrorKind::kExecution);
  std::vector<std::string> help = note.help;
  if (cause.kind == CauseKind::kHolds) help.emplace_back("--timeout SECONDS, where a rank may take longer");
  const Error error(of_the_run ? ErrorKind::kExecution : static_cast<ErrorKind>(code),
                    of_the_run ? first + "\n" + status : note.message, {}, help);
  if (!job_.one_of_several) throw Error(error);
  // The launcher ends this process too, as soon as it knows: what is to be said is said before. What all ranks find is
  // said by rank 0.
  const bool speaks = of_the_run || cause.rank == 0;
  if (speaks) std::fputs(error.what(), stderr);
  if (speaks && job_.json) std::fputs(report::error_json(error).c_str(), stdout);
  std::fflush(stdout);
  for (const std::size_t rank : job_.ranks) page_->rank(rank).seen.store(true);
  wait_for_leader();
  tree_.end_all(pids());
  return error.exit_code();
}

// "rank 2 (stage1)".
std::string Supervisor::named(std::size_t rank) const {
  const program::Program& p = job_.program.program();
  const std::string& stage = p.rank_programs[p.ranks[program::RankId(rank)].program].name;
  return "rank " + std::to_string(rank) + (stage.empty() ? "" : " (" + stage + ")");
}

// " in F.m0.L1.attn.qkv of step 3"; of a process with several ranks the step alone.
std::string Supervisor::where_died(std::size_t rank) const {
  if (process_of(rank) == named(rank)) return where(rank);
  const std::uint64_t step = slots_[rank]->board.step();
  return step == 0 ? " before its first step" : " in step " + std::to_string(step);
}

std::string Supervisor::where(std::size_t rank) const {
  const std::uint64_t step = slots_[rank]->board.step();
  if (step == 0) return " before its first step";
  const std::string call = stalls_.waiting().current_call(program::RankId(rank));
  return (call.empty() ? " in" : " in " + call + " of") + (" step " + std::to_string(step));
}

// The rank, or all that are threads of its process.
std::string Supervisor::process_of(std::size_t rank) const {
  std::vector<std::size_t> same;
  for (const std::size_t other : job_.ranks) {
    if (slots_[other]->pid.load() == slots_[rank]->pid.load()) same.push_back(other);
  }
  if (same.size() == 1) return named(rank);
  return "the process of ranks " + std::to_string(same.front()) + " to " + std::to_string(same.back());
}

std::string Supervisor::how_died(std::size_t rank) {
  if (job_.launcher) {
    const auto death = text_.death();
    if (death && static_cast<std::size_t>(death->rank) == rank) return " was killed by " + signal_text(death->signal);
    return " died without saying why";
  }
  const std::optional<int> status = tree_.leader_status();
  if (status && WIFSIGNALED(*status)) return " was killed by " + signal_text(WTERMSIG(*status));
  if (status) return " ended with code " + std::to_string(WEXITSTATUS(*status)) + " without saying why";
  return " died without saying why";
}

std::string Supervisor::headline(const Cause& cause) {
  const std::size_t rank = cause.rank;
  switch (cause.kind) {
    case CauseKind::kDied:
      return process_of(rank) + how_died(rank) + where_died(rank);
    case CauseKind::kTerminated:
      return process_of(rank) + " was ended by " + signal_text(SIGTERM) + where_died(rank);
    case CauseKind::kStopped:
      return process_of(rank) + " is stopped" + where_died(rank);
    case CauseKind::kNotStarted:
      return named(rank) + " has not started for " + seconds_text(stalls_.start_timeout_s());
    case CauseKind::kHolds:
      return named(rank) + " has completed no op for " + seconds_text(job_.timeout_s) +
             (slots_[rank] != nullptr ? where(rank) : "") + ", and rank " + std::to_string(*cause.waiter) +
             " waits for it" + where(*cause.waiter);
    case CauseKind::kFailed:
      break;
  }
  // "rank 2 failed in ...: why", and its own view of the others behind it.
  std::string message = FailureNote::unpacked(slots_[rank]->failure()->text).message;
  message = message.substr(0, message.find("\n  rank "));
  std::size_t own = rank;
  unsigned long number = 0;
  if (std::sscanf(message.c_str(), "rank %lu failed in", &number) == 1 && number < slots_.size()) own = number;
  const std::string plain = "rank " + std::to_string(own) + " ";
  if (message.starts_with(plain)) return named(own) + message.substr(plain.size() - 1);
  return process_of(rank) + " failed" + where_died(rank) + ": " + message;
}

std::string Supervisor::table() const {
  std::string text;
  const std::size_t shown = std::min(job_.ranks.size(), kMostLines);
  for (std::size_t i = 0; i < shown; ++i) {
    text += (i == 0 ? "  " : "\n  ") + stalls_.waiting().line(program::RankId(job_.ranks[i]));
  }
  if (shown < job_.ranks.size()) text += "\n  and " + std::to_string(job_.ranks.size() - shown) + " more ranks";
  return text;
}

}  // namespace stepcast::cli
