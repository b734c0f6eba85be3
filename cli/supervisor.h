// The process that a user started, while ranks run: it starts them, watches them, and when one dies, fails, is stopped
// or holds the others up, ends all of them and says which one it was, in which call, and what the others were at.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/launcher_text.h"
#include "cli/processes.h"
#include "cli/verdict.h"
#include "program/check.h"

namespace stepcast::cli {

struct SupervisedJob {
  explicit SupervisedJob(const program::CheckedProgram& p) : program(p) {}

  const program::CheckedProgram& program;
  std::vector<std::string> words;  // the program that is or starts the ranks, and its arguments
  std::vector<std::size_t> ranks;  // those that are watched here
  double timeout_s = 60;           // StallWatch
  bool launcher = false;           // the program is mpirun: its notices are not for the user
  // This process is itself one of several that a launcher has started: the others have supervisors of their own.
  bool one_of_several = false;
  bool json = false;
};

class Supervisor {
 public:
  explicit Supervisor(const SupervisedJob& job);

  // Runs the job to its end and gives its exit code: 130 after SIGINT and 143 after SIGTERM. Throws Error: kExecution
  // naming the rank that ended it, or what a rank has thrown; InternalError for a defect of ours in a rank. None of the
  // processes is left, whatever happens.
  int run();

 private:
  std::optional<Cause> look();
  void pass_on_errors(bool at_end = false);
  std::vector<RankSight> sights();
  std::vector<pid_t> pids() const;
  double watched_seconds();
  int end_by_signal(int number);
  int ended(int status);
  int fail(const Cause& cause);
  void wait_for_leader();

  std::string named(std::size_t rank) const;
  std::string where(std::size_t rank) const;
  std::string where_died(std::size_t rank) const;
  std::string process_of(std::size_t rank) const;
  std::string how_died(std::size_t rank);
  std::string headline(const Cause& cause);
  std::string table() const;

  SupervisedJob job_;
  std::shared_ptr<exec::StatusPage> page_;
  std::vector<const exec::RankSlot*> slots_;  // by rank; null where others watch
  StallWatch stalls_;
  LauncherText text_;
  std::vector<double> stopped_s_;
  double watched_s_ = 0;
  double last_look_s_ = 0;
  ProcessTree tree_;  // last: it starts the program
};

}  // namespace stepcast::cli
