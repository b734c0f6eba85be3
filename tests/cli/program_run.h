// Runs the built program as a user does and collects what it says.
#pragma once

#include <string>
#include <vector>

namespace stepcast::cli {

inline const std::string kEight = "scenarios/runs/llama-3.1-8b-h100x8.yaml";  // of the shipped runs the smallest

struct ProgramRun {
  int exit_code = -1;
  std::string out;
  std::string err;
};

// Runs `stepcast ARGUMENTS` through the shell in the repository's root.
ProgramRun stepcast(const std::string& arguments);

// Starts `stepcast` with the arguments, sends SIGINT once it executes ranks (it has threads), and gives its exit code;
// 128 + the signal's number when it was killed.
int interrupted(const std::vector<std::string>& arguments);

// A fresh path in the tests' temporary folder.
std::string scratch(const std::string& name);

std::string file_text(const std::string& path);

}  // namespace stepcast::cli
