// See processes.h. What the system knows of a process is read from /proc.
#include "cli/processes.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/error.h"

namespace stepcast::cli {
namespace {

std::string text_of_file(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

[[noreturn]] void become_program(const StartedProgram& program, const std::vector<char*>& argv, pid_t parent,
                                 int errors) {
  ::setpgid(0, 0);
  if (program.death_signal != 0) ::prctl(PR_SET_PDEATHSIG, program.death_signal);
  if (::getppid() != parent) ::_exit(127);
  const int empty = ::open("/dev/null", O_RDONLY);
  ::dup2(empty, STDIN_FILENO);
  if (errors >= 0) ::dup2(errors, STDERR_FILENO);
  for (const auto& [name, value] : program.environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

// Files of shared memory that a process has mapped, of those that Open MPI makes (vader_segment.*, sm_segment.*).
void add_shared_files(pid_t pid, std::set<std::string>& files) {
  std::istringstream maps(text_of_file("/proc/" + std::to_string(pid) + "/maps"));
  for (std::string line; std::getline(maps, line);) {
    const std::size_t at = line.find("/dev/shm/");
    if (at != std::string::npos && line.find("_segment.", at) != std::string::npos) files.insert(line.substr(at));
  }
}

// Open MPI's folder of a job: $TMPDIR/ompi.HOST.USER/pid.LAUNCHER.
void remove_session_folder(pid_t launcher) {
  std::error_code none;
  const std::filesystem::path base = std::filesystem::temp_directory_path(none);
  if (none) return;
  for (const auto& entry : std::filesystem::directory_iterator(base, none)) {
    if (!entry.path().filename().string().starts_with("ompi.")) continue;
    const std::filesystem::path own = entry.path() / ("pid." + std::to_string(launcher));
    if (!std::filesystem::exists(own, none)) continue;
    std::filesystem::remove_all(own, none);
    std::filesystem::remove(entry.path(), none);  // unless another job is in it
  }
}

std::vector<pid_t> children_of_this() {
  const std::string self = std::to_string(::getpid());
  std::istringstream list(text_of_file("/proc/" + self + "/task/" + self + "/children"));
  std::vector<pid_t> children;
  for (pid_t pid = 0; list >> pid;) children.push_back(pid);
  return children;
}

// A stopped process takes no signal but those that continue or kill it.
void send(pid_t pid, int number) {
  ::kill(pid, number);
  if (process_state(pid) == ProcessState::kStopped) ::kill(pid, SIGCONT);
}

}  // namespace

ProcessState process_state(pid_t pid) {
  const std::string text = text_of_file("/proc/" + std::to_string(pid) + "/stat");
  // "PID (NAME) STATE ...", where the name may hold anything.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return ProcessState::kGone;
  switch (text[name_end + 2]) {
    case 'Z':
    case 'X':
      return ProcessState::kGone;
    case 'T':
      return ProcessState::kStopped;
    default:
      return ProcessState::kRuns;
  }
}

std::string signal_text(int number) {
  const char* name = ::strsignal(number);  // NOLINT(concurrency-mt-unsafe): the only thread
  return "signal " + std::to_string(number) + (name != nullptr ? " (" + std::string(name) + ")" : "");
}

ProcessTree::ProcessTree(const StartedProgram& program) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  int ends[2] = {-1, -1};
  if (program.keep_errors && ::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(ErrorKind::kEnvironment, std::string("no pipe: ") + std::strerror(errno));
  }
  std::vector<std::string> words = program.words;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t self = ::getpid();
  leader_ = ::fork();
  if (leader_ == 0) become_program(program, argv, self, ends[1]);
  if (ends[1] >= 0) ::close(ends[1]);
  errors_ = ends[0];
  if (leader_ < 0) {
    const int reason = errno;
    if (errors_ >= 0) ::close(errors_);
    throw Error(ErrorKind::kEnvironment, "cannot start " + words[0] + ": " + std::strerror(reason));
  }
  if (errors_ >= 0) ::fcntl(errors_, F_SETFL, O_NONBLOCK);
}

ProcessTree::~ProcessTree() {
  end_all({});
  if (errors_ >= 0) ::close(errors_);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

void ProcessTree::reap() {
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(-1, &status, WNOHANG)) > 0) {
    if (ended == leader_) status_ = status;
  }
  childless_ = ended < 0 && errno == ECHILD;
}

std::optional<int> ProcessTree::leader_status() {
  reap();
  return status_;
}

bool ProcessTree::wait_for_all(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (reap(); !childless_ && std::chrono::steady_clock::now() < end; reap()) ::usleep(2000);
  return childless_;
}

void ProcessTree::end_all(const std::vector<pid_t>& others) {
  reap();
  std::set<std::string> shared;
  for (const pid_t pid : others) add_shared_files(pid, shared);
  if (!status_) send(leader_, SIGTERM);
  for (const pid_t pid : others) ::kill(pid, SIGKILL);
  for (double patience = kPatience; !wait_for_all(patience); patience = 0.1) {
    if (!status_) ::kill(-leader_, SIGKILL);
    for (const pid_t pid : children_of_this()) ::kill(pid, SIGKILL);
  }
  std::error_code none;
  for (const std::string& file : shared) std::filesystem::remove(file, none);
  remove_session_folder(leader_);
}

}  // namespace stepcast::cli
