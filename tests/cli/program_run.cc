// Output goes through files, so that a large one cannot block.
#include "tests/cli/program_run.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace stepcast::cli {

std::string scratch(const std::string& name) {
  return (std::filesystem::path(testing::TempDir()) / ("stepcast_cli_" + std::to_string(::getpid()) + "_" + name))
      .string();
}

std::string file_text(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

ProgramRun stepcast(const std::string& arguments) {
  const std::string out = scratch("out");
  const std::string err = scratch("err");
  const std::string command = std::string("cd '") + STEPCAST_SOURCE_DIR + "' && '" + STEPCAST_BINARY + "' " +
                              arguments + " > '" + out + "' 2> '" + err + "'";
  const int status = std::system(command.c_str());  // NOLINT(concurrency-mt-unsafe): tests run one at a time
  ProgramRun run{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), file_text(out), file_text(err)};
  std::filesystem::remove(out);
  std::filesystem::remove(err);
  return run;
}

namespace {

int decoded(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

[[noreturn]] void become_stepcast(const std::vector<std::string>& arguments) {
  std::string program = STEPCAST_BINARY;
  std::vector<std::string> copies = arguments;
  std::vector<char*> argv = {program.data()};
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ::dup2(null, 1);
  ::dup2(null, 2);
  if (::chdir(STEPCAST_SOURCE_DIR) == 0) ::execv(program.c_str(), argv.data());
  ::_exit(99);
}

// Of a process, or of the one that it supervises.
bool has_threads(pid_t pid) {
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  std::error_code gone;
  if (std::distance(std::filesystem::directory_iterator(tasks, gone), {}) > 1) return true;
  std::istringstream children(file_text(tasks + "/" + std::to_string(pid) + "/children"));
  pid_t child = 0;
  return static_cast<bool>(children >> child) && has_threads(child);
}

}  // namespace

int interrupted(const std::vector<std::string>& arguments) {
  const pid_t child = ::fork();
  if (child == 0) become_stepcast(arguments);
  int status = 0;
  while (true) {
    if (::waitpid(child, &status, WNOHANG) == child) return decoded(status);
    if (has_threads(child)) break;
    ::usleep(1000);
  }
  ::kill(child, SIGINT);
  ::waitpid(child, &status, 0);
  return decoded(status);
}

}  // namespace stepcast::cli
