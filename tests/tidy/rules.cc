#include "tests/tidy/rules.h"

#include <algorithm>
#include <utility>

namespace stepcast::tidy {
namespace {

constexpr std::size_t kColumns = 120;
constexpr std::size_t kFileLines = 500;
constexpr std::size_t kTestFileLines = 800;
constexpr int kFunctionLines = 70;
constexpr std::size_t kReadmeLines = 60;

bool is_test(const Source& source) { return folder_of(source.path) == "tests"; }
bool is_header(const Source& source) { return source.path.ends_with(".h") || source.path.ends_with(".cuh"); }

// `names` is a list of words separated by spaces.
bool lists(std::string_view names, std::string_view name) {
  for (std::size_t at = names.find(name); at != std::string_view::npos; at = names.find(name, at + 1)) {
    const bool starts = at == 0 || names[at - 1] == ' ';
    const std::size_t end = at + name.size();
    if (starts && (end == names.size() || names[end] == ' ')) return true;
  }
  return false;
}

// The text form of a banned word, and where it is banned ("" = everywhere but in `except`).
struct BannedWord {
  std::string_view word;
  std::string_view folders;
  std::string_view except;
  std::string_view instead;
};

constexpr std::string_view kTimeless = "base config program models topology plan sim";
constexpr BannedWord kBannedInCode[] = {
    {"rand(", "", "", "RandomStream of base/random.h: seeded, addressed by index"},
    {"srand(", "", "", "RandomStream of base/random.h: seeded, addressed by index"},
    {"random_device", "", "", "a seed from the scenario"},
    {"mt19937", "", "", "RandomStream of base/random.h: seeded, addressed by index"},
    {"mt19937_64", "", "", "RandomStream of base/random.h: seeded, addressed by index"},
    {"system_clock", kTimeless, "", "SimTime: no result depends on the wall clock"},
    {"high_resolution_clock", "", "", "steady_clock, where time may be read at all"},
    {"steady_clock", "config program models topology plan sim", "", "SimTime: no result depends on the wall clock"},
    {"unordered_map", "sim", "", "a vector indexed by id, or std::map: iteration order reaches results"},
    {"unordered_set", "sim", "", "a sorted vector, or std::set: iteration order reaches results"},
    {"unordered_multimap", "sim", "", "a vector indexed by id, or std::map: iteration order reaches results"},
    {"using namespace", "", "", "qualified names, or a using-declaration of one name"},
    {"assert(", "", "", "CHECK(condition, values): on in release"},
    {"exit(", "", "cli", "an exception: only main decides the exit code"},
    {"abort(", "", "", "CHECK, which says what is broken"},
};
constexpr BannedWord kBannedInComments[] = {
    {"TODO", "", "", "an issue, and a comment that says what the code does today"},
    {"FIXME", "", "", "an issue, and a comment that says what the code does today"},
    {"XXX", "", "", "an issue, and a comment that says what the code does today"},
};

struct Floor {
  std::string_view folder;
  std::string_view sees;  // beside itself
};

constexpr Floor kFloors[] = {
    {"base", ""},
    {"config", "base"},
    {"program", "base"},
    {"models", "base config"},
    {"topology", "base config"},
    {"trace", "base"},
    {"kernels", "base program"},
    {"plan", "base config program models topology"},
    {"import", "base config models"},
    {"sim", "base config program topology trace"},
    {"exec", "base program kernels trace"},
    {"calibrate", "base config program models topology trace kernels plan sim exec"},
    {"report", "base config program models topology trace kernels plan sim exec"},
    {"cli", "base config program models topology trace kernels plan import sim exec calibrate report"},
    {"tests", "base config program models topology trace kernels plan import sim exec calibrate report cli"},
};

struct Fence {
  std::string_view header;   // the path starts with it
  std::string_view folders;  // may include it, in any file
  std::string_view where;    // for the message
};

constexpr Fence kFences[] = {
    {"boost/graph/", "topology tests", "topology/"},
    {"Eigen/", "calibrate tests", "calibrate/"},
    {"CLI/", "cli tests", "cli/"},
    {"yaml-cpp/", "config tests", "config/"},
    {"toml++/", "import tests", "import/"},
    {"nlohmann/", "config models report cli tests", "config/, models/, report/ and cli/"},
    {"fmt/", "config models topology plan sim calibrate report cli tests",
     "the folders above those that a GPU node builds: not base/, program/, kernels/, exec/, trace/"},
    {"gtest/", "tests", "tests/"},
    {"gmock/", "tests", "tests/"},
    {"benchmark/", "tests", "tests/"},
    {"mpi.h", "exec", "exec/mpi/port.cc"},
    {"cuda", "kernels exec tests", "*.cu, exec's backends and tests/device/"},
    {"cublas", "kernels tests", "kernels/cuda/ and tests/device/"},
    {"nccl.h", "exec tests", "exec's backends and tests/device/"},
    {"driver_types.h", "kernels", "kernels/cuda/"},
    {"oneapi/dnnl/", "kernels tests", "kernels/cpu_fast/, in one file"},
    {"omp.h", "kernels", "kernels/cpu_fast/"},
};

// C headers of the standard library and of POSIX; C++ headers are known by having neither a dot nor a slash.
constexpr std::string_view kSystemHeaders =
    "dlfcn.h errno.h fcntl.h fenv.h float.h immintrin.h limits.h malloc.h math.h poll.h pthread.h sched.h semaphore.h "
    "signal.h "
    "spawn.h stddef.h stdint.h stdio.h stdlib.h string.h time.h ucontext.h unistd.h sys/file.h sys/mman.h sys/prctl.h "
    "sys/resource.h sys/socket.h arpa/inet.h netdb.h netinet/tcp.h sys/stat.h sys/syscall.h sys/time.h sys/types.h "
    "sys/wait.h "
    "sys/ioctl.h sys/un.h netinet/in.h linux/futex.h";

bool is_protobuf(std::string_view path) { return path.ends_with(".pb.h") || path.starts_with("google/protobuf/"); }

// Protocol Buffers stay at the edges, where files are read and written: config/, and files named after a reader, a
// writer, the scenario's parts (scenario_reader, scenario_aliases), a calibration or the Perfetto format.
bool may_see_protobuf(const Source& source) {
  const std::string_view folder = folder_of(source.path);
  if (folder == "config" || folder == "tests") return true;
  if (!lists("models topology plan sim report calibrate", folder)) return false;
  const std::string_view name = std::string_view(source.path).substr(source.path.rfind('/') + 1);
  for (const char* edge : {"reader", "writer", "calibration", "perfetto", "scenario_"}) {
    if (name.find(edge) != std::string_view::npos) return true;
  }
  return false;
}

void check_project_include(const Source& source, const Include& include, Findings& findings) {
  const std::string_view from = folder_of(source.path);
  const std::string_view to = folder_of(include.path);
  const auto known = [](std::string_view name) {
    return std::any_of(std::begin(kFloors), std::end(kFloors), [&](const Floor& f) { return f.folder == name; });
  };
  if (include.path.find('/') == std::string::npos || !known(to)) {
    findings.push_back(
        {source.path, include.line, "\"" + include.path + "\": write the path from the root, as in \"base/units.h\""});
    return;
  }
  const auto floor =
      std::find_if(std::begin(kFloors), std::end(kFloors), [&](const Floor& f) { return f.folder == from; });
  if (from == to || floor == std::end(kFloors) || lists(floor->sees, to)) return;
  findings.push_back({source.path, include.line,
                      std::string(from) + "/ must not see " + std::string(to) + "/; it may include " +
                          (floor->sees.empty() ? "nothing of ours" : std::string(floor->sees))});
}

void check_foreign_include(const Source& source, const Include& include, Findings& findings) {
  const std::string_view path = include.path;
  const bool standard = path.find_first_of("./") == std::string_view::npos;
  if (standard || lists(kSystemHeaders, path)) return;
  for (const Fence& fence : kFences) {
    if (!path.starts_with(fence.header)) continue;
    if (!lists(fence.folders, folder_of(source.path))) {
      findings.push_back({source.path, include.line, "<" + include.path + "> belongs in " + std::string(fence.where)});
    }
    return;
  }
  findings.push_back(
      {source.path, include.line,
       "<" + include.path + "> is a library that no fence knows; decide its folder in tests/tidy/rules.cc"});
}

// Calls found(position) for every place where `word` stands by itself in `text`.
template <class Found>
void for_each_word(std::string_view text, std::string_view word, Found found) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool starts = at == 0 || !is_word_character(text[at - 1]);
    const bool ends = !is_word_character(word.back()) || end == text.size() || !is_word_character(text[end]);
    if (starts && ends) found(at);
  }
}

int line_at(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  return 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
}

void check_banned(const Source& source, std::string_view text, const BannedWord& banned, Findings& findings) {
  const std::string_view folder = folder_of(source.path);
  if (!banned.folders.empty() && !lists(banned.folders, folder)) return;
  if (lists(banned.except, folder)) return;
  for_each_word(text, banned.word, [&](std::size_t at) {
    findings.push_back({source.path, line_at(text, at),
                        "\"" + std::string(banned.word) + "\" is banned; instead: " + std::string(banned.instead)});
  });
}

// std::normal_distribution and its family, by their ending.
void check_distributions(const Source& source, Findings& findings) {
  constexpr std::string_view kEnding = "_distribution";
  const std::string_view code = source.code;
  for (std::size_t at = code.find(kEnding); at != std::string_view::npos; at = code.find(kEnding, at + 1)) {
    const std::size_t end = at + kEnding.size();
    if (end < code.size() && is_word_character(code[end])) continue;
    std::size_t begin = at;
    while (begin > 0 && is_word_character(code[begin - 1])) --begin;
    if (begin < 5 || code.substr(begin - 5, 5) != "std::") continue;
    findings.push_back({source.path, line_at(code, at),
                        "std::" + std::string(code.substr(begin, end - begin)) +
                            " differs between libraries; instead: RandomStream of base/random.h"});
  }
}

// Macros: CHECK and the status wrappers only, and what others ask for as one: toml++ its assertion, sources in CUDA's
// language their keywords where a C++ compiler reads them.
void check_macros(const Source& source, Findings& findings) {
  constexpr std::string_view kKeywords = "__global__ __device__ __host__ __forceinline__ __shared__ __launch_bounds__";
  const bool stands_for_cuda = source.path.starts_with("kernels/cuda/simt/");
  int number = 0;
  for (const std::string_view line : lines_of(source.code)) {
    ++number;
    if (!line.starts_with("#define ")) continue;
    std::size_t end = 8;
    while (end < line.size() && is_word_character(line[end])) ++end;
    const std::string_view name = line.substr(8, end - 8);
    if (lists("CHECK CUDA_TRY NCCL_TRY MPI_TRY TOML_ASSERT", name)) continue;
    if (stands_for_cuda && lists(kKeywords, name)) continue;
    findings.push_back({source.path, number, "macro " + std::string(name) + "; instead: a constant or a function"});
  }
}

// Characters of a UTF-8 line: bytes that do not continue one.
std::size_t columns_of(std::string_view line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// a/b.cc and a/b.h tell one story: the header's opening speaks for both.
bool has_own_header(const Source& source) {
  const std::size_t dot = source.path.rfind('.');
  return !is_header(source) && !source.includes.empty() && !source.includes.front().angled &&
         source.includes.front().path == source.path.substr(0, dot) + ".h";
}

}  // namespace

void check_includes(const Source& source, Findings& findings) {
  for (const Include& include : source.includes) {
    if (is_protobuf(include.path) && !may_see_protobuf(source)) {
      findings.push_back(
          {source.path, include.line,
           "Protocol Buffers stay at file edges (config/, scenario_*, *_reader, *_writer, calibration, perfetto)"});
    }
    if (!include.angled) {
      check_project_include(source, include, findings);
    } else if (!is_protobuf(include.path)) {
      check_foreign_include(source, include, findings);
    }
  }
}

void check_sizes(const Source& source, Findings& findings) {
  const std::vector<std::string_view> lines = lines_of(source.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (columns_of(lines[i]) > kColumns) {
      findings.push_back({source.path, static_cast<int>(i + 1), "longer than 120 columns"});
    }
  }
  const std::size_t limit = is_test(source) ? kTestFileLines : kFileLines;
  if (lines.size() > limit) {
    findings.push_back(
        {source.path, 0, std::to_string(lines.size()) + " lines; one idea per file, at most " + std::to_string(limit)});
  }
  for (const Function& function : functions_of(source)) {
    const int length = function.last_line - function.first_line + 1;
    if (length <= kFunctionLines) continue;
    findings.push_back({source.path, function.first_line,
                        "a function of " + std::to_string(length) + " lines; at most 70, aim for 30"});
  }
}

void check_words(const Source& source, Findings& findings) {
  for (const BannedWord& banned : kBannedInCode) check_banned(source, source.code, banned, findings);
  for (const BannedWord& banned : kBannedInComments) check_banned(source, source.comments, banned, findings);
  check_distributions(source, findings);
  check_macros(source, findings);
}

void check_opening(const Source& source, Findings& findings) {
  if (!source.text.starts_with("//") && !source.text.starts_with("/*") && !has_own_header(source)) {
    findings.push_back({source.path, 1, "open with a comment: what the file models, its assumptions, its source"});
  }
  if (is_header(source) && source.code.find("#pragma once") == std::string::npos) {
    findings.push_back({source.path, 1, "a header says #pragma once"});
  }
}

Findings check_source(const Source& source) {
  Findings findings;
  check_includes(source, findings);
  check_sizes(source, findings);
  check_words(source, findings);
  check_opening(source, findings);
  return findings;
}

void check_build_file(std::string_view path, std::string_view text, Findings& findings) {
  for (const std::string_view flag : {"ffast-math", "Ofast", "funsafe-math-optimizations"}) {
    const std::size_t at = text.find(flag);
    if (at == std::string_view::npos) continue;
    findings.push_back({std::string(path), line_at(text, at),
                        "-" + std::string(flag) + " changes results between machines; instead: -O3 -ffp-contract=off"});
  }
}

void check_readme(std::string_view folder, bool exists, std::string_view text, Findings& findings) {
  const std::string path = std::string(folder) + "/README.md";
  if (!exists) {
    findings.push_back({path, 0, "missing: purpose, main types, what it may include, how to extend it"});
  } else if (lines_of(text).size() > kReadmeLines) {
    findings.push_back({path, 0, "longer than 60 lines"});
  }
}

std::string to_text(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += finding.path + (finding.line > 0 ? ":" + std::to_string(finding.line) : "") + ": " + finding.message + "\n";
  }
  return text;
}

}  // namespace stepcast::tidy
