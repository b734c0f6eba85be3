// A `stepcast run` in the background, to which something happens. Everything that it starts is known by a variable in
// its environment, whoever its parent is.
#pragma once

#include <sys/types.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace stepcast::cli {

class FaultyRun {
 public:
  // Runs `command` in the repository's root; its temporary files go to a folder of its own.
  explicit FaultyRun(const std::vector<std::string>& command);
  // Ends what is left, if there is anything.
  ~FaultyRun();
  FaultyRun(const FaultyRun&) = delete;
  FaultyRun& operator=(const FaultyRun&) = delete;

  pid_t pid() const { return pid_; }
  // Waits until `ranks` ranks execute: their processes have threads. By rank; a process that executes several ranks is
  // rank 0. Empty when the run has ended before, or after a minute.
  std::map<int, pid_t> wait_for_ranks(std::size_t ranks);

  struct End {
    int code = -1;  // 128 + number after a signal
    double seconds = 0;
    std::string err;
  };
  // Waits for its end and tells how long that took; kills it after a minute.
  End wait();
  // Processes of it that are there: "PID NAME" each. Waits up to `seconds` for them to end.
  std::vector<std::string> left_processes(double seconds = 0) const;
  // Files of it in its temporary folder and in shared memory, of those that wait_for_ranks has seen there.
  std::vector<std::string> left_files() const;

 private:
  std::vector<pid_t> processes() const;

  std::string mark_;
  std::string folder_;
  pid_t pid_ = 0;
  bool ended_ = false;
  std::set<std::string> shared_;
};

}  // namespace stepcast::cli
