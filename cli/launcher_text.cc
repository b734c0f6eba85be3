// The notices are those of Open MPI 4.1 (orte/tools/orterun/help-orterun.txt, ompi/mpi/help/help-mpi-api.txt).
#include "cli/launcher_text.h"

#include <cstdio>
#include <utility>

namespace stepcast::cli {
namespace {

constexpr std::string_view kKnownNotices[] = {"mpirun noticed that process", "Primary job  terminated normally",
                                              "mpirun detected that one or more processes", "MPI_ABORT was invoked",
                                              "mpirun noticed that the job aborted"};
// The last of them comes from a rank whose partner is gone.
constexpr std::string_view kKnownLines[] = {"sent help message help-mpi-api.txt", "\"orte_base_help_aggregate\"",
                                            "mpirun: Forwarding signal", "Read -1, expected "};

bool is_rule(std::string_view line) {
  return line.size() >= 40 && line.find_first_not_of('-') == std::string_view::npos;
}

template <class Texts>
bool holds_any(std::string_view text, const Texts& known) {
  for (const std::string_view part : known) {
    if (text.find(part) != std::string_view::npos) return true;
  }
  return false;
}

std::optional<LauncherText::Death> death_in(const std::string& notice) {
  const std::size_t rank_at = notice.find("process rank ");
  const std::size_t signal_at = notice.find("exited on signal ");
  LauncherText::Death death;
  if (rank_at == std::string::npos || signal_at == std::string::npos) return std::nullopt;
  if (std::sscanf(notice.c_str() + rank_at, "process rank %d", &death.rank) != 1) return std::nullopt;
  if (std::sscanf(notice.c_str() + signal_at, "exited on signal %d", &death.signal) != 1) return std::nullopt;
  return death;
}

}  // namespace

void LauncherText::add(std::string_view bytes) {
  pending_ += bytes;
  for (std::size_t end = pending_.find('\n'); end != std::string::npos; end = pending_.find('\n')) {
    add_line(pending_.substr(0, end));
    pending_.erase(0, end + 1);
  }
}

void LauncherText::add_line(const std::string& line) {
  if (is_rule(line)) {
    if (in_notice_) end_notice();
    in_notice_ = !in_notice_;
    return;
  }
  if (in_notice_) {
    notice_ += line + "\n";
  } else if (!holds_any(line, kKnownLines)) {
    passed_on_ += line + "\n";
  }
}

void LauncherText::end_notice() {
  if (!death_) death_ = death_in(notice_);
  if (!holds_any(notice_, kKnownNotices)) passed_on_ += notice_;
  notice_.clear();
}

std::string LauncherText::take(bool at_end) {
  if (at_end) {
    if (!pending_.empty()) add_line(std::exchange(pending_, ""));
    if (in_notice_) end_notice();
    in_notice_ = false;
  }
  return std::exchange(passed_on_, "");
}

}  // namespace stepcast::cli
