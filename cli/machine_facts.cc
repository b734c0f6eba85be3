// See machine_facts.h. Linux: /proc/meminfo and /proc/cpuinfo (proc(5)).
#include "cli/machine_facts.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "base/error.h"
#include "cli/backends.h"
#include "cli/capture.h"
#include "exec/launched_rank.h"

namespace stepcast::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kPatience = 10;  // seconds

// What the first line of `path` that starts with `key` says behind the colon.
std::string proc_value(const char* path, std::string_view key) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos) continue;
    const std::size_t first = line.find_first_not_of(" \t", colon + 1);
    return first == std::string::npos ? "" : line.substr(first);
  }
  return "";
}

double memory_bytes(std::string_view key) {
  return std::strtod(proc_value("/proc/meminfo", key).c_str(), nullptr) * 1024;  // "16384 kB"
}

int usable_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return CPU_COUNT(&cores);
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

bool has_flag(const std::string& flags, std::string_view flag) {
  std::istringstream words(flags);
  for (std::string word; words >> word;) {
    if (word == flag) return true;
  }
  return false;
}

// Up to the end of its first line that says something.
std::string first_line(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t-") != std::string::npos) return line;
  }
  return "";
}

std::string failure_of(const Captured& run) {
  if (run.succeeded()) return "";
  if (!run.ended && run.started) return "no answer in ten seconds";
  const std::string said = first_line(run.out);
  return said.empty() ? "exit code " + std::to_string(run.exit_code) : said;
}

// A rank program, and what it says of its libraries.
report::RankProgramFacts ask(const fs::path& folder, const std::string& name, std::string& said) {
  report::RankProgramFacts facts{.name = name, .path = "", .failure = ""};
  std::error_code unknown;
  const fs::path path = folder / name;
  if (!fs::exists(path, unknown)) return facts;
  facts.path = path.string();
  const Captured run = capture({facts.path, "--probe"}, kPatience);
  facts.failure = failure_of(run);
  if (run.succeeded()) said = run.out;
  return facts;
}

void ask_programs(report::MachineFacts& facts) {
  std::error_code unknown;
  const fs::path folder = fs::read_symlink("/proc/self/exe", unknown).parent_path();
  facts.folder = folder.string();
  std::string ignored;
  std::string cuda;
  facts.rank = ask(folder, "stepcast-rank", facts.onednn);
  facts.onednn = first_line(facts.onednn);
  facts.rank_mpi = ask(folder, "stepcast-rank-mpi", ignored);
  facts.rank_cuda = ask(folder, "stepcast-rank-cuda", cuda);
  if (!cuda.empty()) facts.cuda = exec::parse_cuda_facts(cuda);
}

void ask_mpirun(report::MachineFacts& facts) {
  const Captured version = capture({"mpirun", "--version"}, kPatience);
  if (!version.succeeded()) return;
  facts.mpirun = first_line(version.out);
  std::vector<std::string> words = {"mpirun"};
  if (::geteuid() == 0) words.emplace_back("--allow-run-as-root");
  words.insert(words.end(), {"--oversubscribe", "-n", "1", "true"});
  facts.mpirun_failure = failure_of(capture(words, kPatience));
}

bool ranks_read(std::string_view name) {
  constexpr std::string_view kFamilies[] = {"NCCL_", "SLURM_", "OMPI_COMM_WORLD_", "STEPCAST_"};
  constexpr std::string_view kNames[] = {
      "RANK",           "WORLD_SIZE",           "LOCAL_RANK", "MASTER_ADDR",
      "MASTER_PORT",    "CUDA_VISIBLE_DEVICES", "PMIX_RANK",  "CUDA_DEVICE_MAX_CONNECTIONS",
      "OMP_NUM_THREADS"};
  const auto starts = [&](std::string_view family) { return name.starts_with(family); };
  return std::any_of(std::begin(kFamilies), std::end(kFamilies), starts) ||
         std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// In the order of their names.
std::vector<report::EnvironmentVariable> environment_of_ranks() {
  std::vector<report::EnvironmentVariable> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || !ranks_read(text.substr(0, equals))) continue;
    found.push_back({std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return found;
}

std::string launcher_of_this() {
  std::string launcher = launcher_here();
  if (!launcher.empty()) return launcher;
  try {
    const auto rank = exec::launched_rank([](const char* name) { return std::getenv(name); });
    return rank ? rank->launcher : "";
  } catch (const Error& error) {
    return "a launcher that is not understood: " + error.problems().front().message;
  }
}

}  // namespace

report::MachineFacts machine_facts() {
  report::MachineFacts facts;
  facts.version = "stepcast " STEPCAST_VERSION;
  facts.processor = proc_value("/proc/cpuinfo", "model name");
  if (facts.processor.empty()) facts.processor = "processor not named by /proc/cpuinfo";
  facts.cores = usable_cores();
  facts.memory_bytes = memory_bytes("MemTotal");
  facts.available_bytes = memory_bytes("MemAvailable");
  const std::string flags = proc_value("/proc/cpuinfo", "flags");
  facts.avx512 = has_flag(flags, "avx512f");
  facts.bf16 = has_flag(flags, "avx512_bf16");
  ask_programs(facts);
  ask_mpirun(facts);
  facts.launcher = launcher_of_this();
  facts.environment = environment_of_ranks();
  return facts;
}

}  // namespace stepcast::cli
