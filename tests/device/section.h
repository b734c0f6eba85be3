// What a part of the check has found, and how long it may take.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace stepcast::device_check {

// Until when the whole check may run.
class Budget {
 public:
  explicit Budget(double seconds);
  double seconds_left() const;
  bool is_over() const { return seconds_left() <= 0; }
  // The same with at most `share` of what is left.
  Budget part(double share) const { return Budget(seconds_left() * share); }

 private:
  std::chrono::steady_clock::time_point end_;
};

// Of one section. What is skipped is no failure, but is never silent either.
struct Outcome {
  std::string section = {};
  int passed = 0;
  std::vector<std::string> failures = {};  // what and by how much, one line each
  std::vector<std::string> skipped = {};   // what and why
  std::vector<std::string> notes = {};     // figures worth a line of the summary
  double seconds = 0;
  bool failed() const { return !failures.empty(); }
};

// The last lines of the check, at most `most` failures and skipped things of each section with a count of the others.
std::string summary(const std::vector<Outcome>& outcomes, std::size_t most);

}  // namespace stepcast::device_check
