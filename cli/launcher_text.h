// What mpirun says on standard error: lines of the ranks, which are passed on, and notices of its own between two lines
// of dashes. Most notices only say that the job has ended; who ended it is said better by what supervises the ranks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stepcast::cli {

class LauncherText {
 public:
  void add(std::string_view bytes);

  // What has come so far and has to be passed on: whole lines, notices without those that are known. At the end also a
  // last line that is not whole.
  std::string take(bool at_end = false);

  // What a notice says of the first process that has died.
  struct Death {
    int rank = 0;
    int signal = 0;
  };
  std::optional<Death> death() const { return death_; }

 private:
  void add_line(const std::string& line);
  void end_notice();

  std::string pending_;  // a line that has no end yet
  bool in_notice_ = false;
  std::string notice_;
  std::string passed_on_;
  std::optional<Death> death_;
};

}  // namespace stepcast::cli
