// A program that was started and everything it starts: whether each of them still runs, and how all of it is ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stepcast::cli {

enum class ProcessState : std::uint8_t { kRuns, kStopped, kGone };

// Of any process of this host. One that has ended is gone, whether or not its parent has asked for it.
ProcessState process_state(pid_t pid);

// "signal 9 (Killed)".
std::string signal_text(int number);

struct StartedProgram {
  std::vector<std::string> words;  // found in PATH
  std::vector<std::pair<std::string, std::string>> environment;
  bool keep_errors = false;  // its standard error can be read through errors()
  int death_signal = 0;      // what the system sends it when this process ends
};

// The program, the leader, is in a process group of its own, so that a Ctrl-C of the terminal ends this process alone,
// which then ends the others in order; its standard input is empty. Processes whose parents end become children of this
// one, so that none can get away. One at a time.
class ProcessTree {
 public:
  // Throws Error (kEnvironment) when there is no process to be had.
  explicit ProcessTree(const StartedProgram& program);
  // Ends what still runs.
  ~ProcessTree();
  ProcessTree(const ProcessTree&) = delete;
  ProcessTree& operator=(const ProcessTree&) = delete;

  pid_t leader() const { return leader_; }
  // How the leader ended, as waitpid() says it; none while it runs.
  std::optional<int> leader_status();
  // A descriptor that does not block; -1 unless they are kept.
  int errors() const { return errors_; }

  // Asks the leader to end (it removes its files then), kills `others` at once, and after kPatience seconds whatever is
  // left. Returns when none of them is there, and removes shared memory that `others` had mapped.
  void end_all(const std::vector<pid_t>& others);

  static constexpr double kPatience = 2.5;

 private:
  void reap();
  bool wait_for_all(double seconds);

  pid_t leader_ = 0;
  int errors_ = -1;
  std::optional<int> status_;
  bool childless_ = false;
};

}  // namespace stepcast::cli
