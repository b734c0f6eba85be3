// A progress line on stderr: only on a terminal, only for jobs longer than a second, erased when the job ends.
//
// Reads the steady clock; nothing of it reaches a result, so results stay free of wall time.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace stepcast {

class Progress {
 public:
  // `total` in units of `label` ("sweep: plans"); 0 when it is not known. Writes to `out` (stderr), which `terminal`
  // says is one; both are parameters for tests.
  explicit Progress(std::string label, std::int64_t total = 0);
  Progress(std::string label, std::int64_t total, std::FILE* out, bool terminal);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Says how far the job is. Cheap to call often: at most ten lines a second are written.
  void update(std::int64_t done);
  // The same with the time since construction given by the caller.
  void update_at(std::int64_t done, std::chrono::nanoseconds elapsed);

 private:
  std::string label_;
  std::int64_t total_;
  std::FILE* out_;
  bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_;
  std::chrono::nanoseconds next_ = std::chrono::seconds(1);
};

}  // namespace stepcast
