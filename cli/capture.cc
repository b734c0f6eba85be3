// See capture.h. The program has a process group of its own, so that what it starts ends with it.
#include "cli/capture.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>

namespace stepcast::cli {
namespace {

constexpr std::size_t kMostCaptured = 64 << 10;
constexpr int kNotExecuted = 127;

using Clock = std::chrono::steady_clock;

[[noreturn]] void execute(char* const* argv, int out) {
  ::setpgid(0, 0);
  const int empty = ::open("/dev/null", O_RDONLY);
  ::dup2(empty, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  ::execvp(argv[0], argv);
  ::_exit(kNotExecuted);
}

// Reads until the end of the file or of the time; whether it was the file's.
bool read_until(int fd, Clock::time_point end, std::string& text) {
  std::array<char, 4096> buffer;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd wanted{fd, POLLIN, 0};
    const int ready = ::poll(&wanted, 1, left > 0 ? static_cast<int>(left) : 0);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    if (text.size() < kMostCaptured) text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Captured capture(const std::vector<std::string>& words, double seconds) {
  Captured result;
  std::vector<std::string> copies = words;
  std::vector<char*> argv;
  for (std::string& word : copies) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return result;
  const auto limit = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const Clock::time_point end = Clock::now() + limit;
  const pid_t child = ::fork();
  if (child == 0) execute(argv.data(), ends[1]);
  ::close(ends[1]);
  if (child > 0) {
    result.ended = read_until(ends[0], end, result.out);
    if (!result.ended) ::kill(-child, SIGKILL);
    result.exit_code = wait_for(child);
    result.started = result.exit_code != kNotExecuted;
  }
  ::close(ends[0]);
  return result;
}

}  // namespace stepcast::cli
