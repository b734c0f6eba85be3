#include "tests/cli/faulty_run.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace stepcast::cli {
namespace {

namespace fs = std::filesystem;

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string text_of(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

fs::path proc(pid_t pid) { return "/proc/" + std::to_string(pid); }

// A variable of a process's environment; -1 without.
int number_of(const std::string& environment, const std::string& name) {
  const std::size_t at = environment.find('\0' + name + '=');
  return at == std::string::npos ? -1 : std::atoi(environment.c_str() + at + name.size() + 2);
}

std::size_t threads_of(pid_t pid) {
  std::error_code gone;
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(proc(pid) / "task", gone), {}));
}

}  // namespace

FaultyRun::FaultyRun(const std::vector<std::string>& command) {
  static int number = 0;
  mark_ = "STEPCAST_FAULTY_RUN=" + std::to_string(::getpid()) + "." + std::to_string(++number) + ".";
  folder_ =
      (fs::path(testing::TempDir()) / ("sf" + std::to_string(::getpid()) + "." + std::to_string(number))).string();
  fs::create_directory(folder_);
  pid_ = ::fork();
  if (pid_ != 0) return;
  ::setpgid(0, 0);
  ::putenv(mark_.data());
  ::setenv("TMPDIR", folder_.c_str(), 1);
  std::vector<std::string> words = command;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
  ::dup2(::open((folder_ + ".err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), STDERR_FILENO);
  if (::chdir(STEPCAST_SOURCE_DIR) == 0) ::execvp(argv[0], argv.data());
  ::_exit(99);
}

FaultyRun::~FaultyRun() {
  for (const pid_t pid : processes()) ::kill(pid, SIGKILL);
  if (!ended_) ::waitpid(pid_, nullptr, 0);
  fs::remove_all(folder_);
  fs::remove(folder_ + ".err");
}

std::vector<pid_t> FaultyRun::processes() const {
  std::vector<pid_t> pids;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    // That of a process that has ended is empty.
    if (text_of(entry.path() / "environ").find(mark_) != std::string::npos) pids.push_back(std::stoi(name));
  }
  return pids;
}

std::map<int, pid_t> FaultyRun::wait_for_ranks(std::size_t ranks) {
  std::map<int, pid_t> found;
  for (const double end = now_s() + 60; now_s() < end; ::usleep(5000)) {
    found.clear();
    for (const pid_t pid : processes()) {
      if (!text_of(proc(pid) / "comm").starts_with("stepcast-rank") || threads_of(pid) < 2) continue;
      found[std::max(0, number_of(text_of(proc(pid) / "environ"), "PMIX_RANK"))] = pid;
    }
    if (found.size() == ranks) break;
    siginfo_t end_of_run = {};
    ::waitid(P_PID, static_cast<id_t>(pid_), &end_of_run, WEXITED | WNOHANG | WNOWAIT);
    if (end_of_run.si_pid != 0) return {};
  }
  for (const auto& [rank, pid] : found) {
    std::istringstream maps(text_of(proc(pid) / "maps"));
    for (std::string line; std::getline(maps, line);) {
      const std::size_t at = line.find("/dev/shm/");
      if (at != std::string::npos) shared_.insert(line.substr(at));
    }
  }
  return found.size() == ranks ? found : std::map<int, pid_t>();
}

FaultyRun::End FaultyRun::wait() {
  const double begin = now_s();
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    if (now_s() - begin > 60) ::kill(pid_, SIGKILL);
    ::usleep(5000);
  }
  ended_ = true;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), now_s() - begin, text_of(folder_ + ".err")};
}

std::vector<std::string> FaultyRun::left_processes(double seconds) const {
  std::vector<pid_t> pids = processes();
  for (const double end = now_s() + seconds; !pids.empty() && now_s() < end; pids = processes()) ::usleep(10'000);
  std::vector<std::string> left;
  for (const pid_t pid : pids) left.push_back(std::to_string(pid) + " " + text_of(proc(pid) / "comm"));
  return left;
}

std::vector<std::string> FaultyRun::left_files() const {
  std::vector<std::string> left;
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) left.push_back(entry.path());
  for (const std::string& file : shared_) {
    if (fs::exists(file)) left.push_back(file);
  }
  return left;
}

}  // namespace stepcast::cli
