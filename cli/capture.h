// Runs another program and reads what it says, for as long as is worth waiting.
#pragma once

#include <string>
#include <vector>

namespace stepcast::cli {

struct Captured {
  bool started = false;  // found and executed
  bool ended = false;    // within the time; else it has been killed
  int exit_code = -1;    // of a program that ended by itself, else 128 + the signal
  std::string out;       // standard output and standard error, at most 64 KiB
  bool succeeded() const { return started && ended && exit_code == 0; }
};

// `words` are the program, looked for on PATH unless it has a slash, and its arguments. Its standard input is empty.
Captured capture(const std::vector<std::string>& words, double seconds);

}  // namespace stepcast::cli
