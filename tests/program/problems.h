// Runs program/check for tests.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "program/check.h"

namespace stepcast::program::testing {

// Messages of every problem; empty when the Program is sound.
inline std::vector<std::string> problems_of(Program p) {
  std::vector<std::string> messages;
  try {
    const CheckedProgram checked(std::move(p));
  } catch (const Error& error) {
    for (const Problem& problem : error.problems()) messages.push_back(problem.message);
  }
  return messages;
}

// Whether there is exactly one problem and its message has all of `pieces`.
inline bool only_problem_has(const std::vector<std::string>& messages, const std::vector<std::string>& pieces) {
  if (messages.size() != 1) return false;
  for (const std::string& piece : pieces) {
    if (messages[0].find(piece) == std::string::npos) return false;
  }
  return true;
}

inline std::string joined(const std::vector<std::string>& messages) {
  std::string text;
  for (const std::string& m : messages) text += m + "\n";
  return text;
}

}  // namespace stepcast::program::testing
