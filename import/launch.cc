// Launchers: torchrun and torch.distributed (nproc_per_node, nnodes), srun and #SBATCH (nodes, ntasks-per-node,
// gpus-per-node), deepspeed (num_gpus, num_nodes), mpirun (np), accelerate (num_processes).
#include "import/launch.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "config/text.h"

namespace stepcast::imports {
namespace {

enum class Counts : std::uint8_t { kPerNode, kNodes, kAll };

struct LauncherOption {
  std::string_view name;
  Counts counts;
};

constexpr std::array<LauncherOption, 15> kOptions = {{
    {"--nproc-per-node", Counts::kPerNode},
    {"--ntasks-per-node", Counts::kPerNode},
    {"--gpus-per-node", Counts::kPerNode},
    {"--num-gpus", Counts::kPerNode},
    {"--npernode", Counts::kPerNode},
    {"-npernode", Counts::kPerNode},
    {"--nnodes", Counts::kNodes},
    {"--nodes", Counts::kNodes},
    {"-N", Counts::kNodes},
    {"--num-nodes", Counts::kNodes},
    {"--num-processes", Counts::kAll},
    {"--ntasks", Counts::kAll},
    {"-np", Counts::kAll},
    {"-n", Counts::kAll},
    {"--world-size", Counts::kAll},
}};

std::string dashed(std::string text) {
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

bool is_program(const ShellWord& word) { return word.text.ends_with(".py"); }

bool prints(const ShellCommand& command) {
  const std::string& first = command.words.front().text;
  return first == "echo" || first == "printf" || first == "cat";
}

// A command whose text is one quoted word (bash -c "python ...") is opened up.
std::vector<ShellWord> opened(const ShellCommand& command) {
  std::vector<ShellWord> words;
  for (const ShellWord& word : command.words) {
    const bool nested = word.text.find(' ') != std::string::npos && word.text.find("--") != std::string::npos &&
                        (word.text.find(".py") != std::string::npos || word.text.find("torchrun") != std::string::npos);
    if (!nested) {
      words.push_back(word);
      continue;
    }
    for (ShellWord& inner : split_words(word)) words.push_back(std::move(inner));
  }
  return words;
}

struct DeviceCounts {
  std::array<std::optional<std::int64_t>, 3> counts;  // by Counts
  std::array<std::string, 3> origins;
  std::vector<std::string> missing;

  void take(Counts kind, const std::string& name, const ShellWord& word) {
    const auto i = static_cast<std::size_t>(kind);
    if (!word.unknown.empty()) {
      missing.insert(missing.end(), word.unknown.begin(), word.unknown.end());
      return;
    }
    std::string text = word.text.substr(word.text.rfind(':') + 1);  // elastic "1:4": the largest job
    if (const auto number = config::parse_integer(text); number && *number > 0 && !counts[i]) {
      counts[i] = number;
      origins[i] = name + " " + text;
    }
  }

  // Reads `words`, the launcher's own or those of #SBATCH lines.
  void read(const std::vector<ShellWord>& words, std::size_t end) {
    for (std::size_t i = 0; i < end; ++i) {
      const std::string& text = words[i].text;
      const std::size_t equals = text.find('=');
      const std::string name = dashed(text.substr(0, equals));
      const auto option = std::find_if(kOptions.begin(), kOptions.end(), [&](const auto& o) { return o.name == name; });
      if (option == kOptions.end()) continue;
      if (equals != std::string::npos) {
        ShellWord value = words[i];
        value.text = text.substr(equals + 1);
        take(option->counts, name, value);
      } else if (i + 1 < end) {
        take(option->counts, name, words[i + 1]);
      }
    }
  }

  std::optional<std::int64_t> devices() const {
    if (counts[2] && !counts[0]) return counts[2];
    constexpr std::int64_t kMost = std::int64_t{1} << 24;
    if (!counts[0] || *counts[0] > kMost || counts[1].value_or(1) > kMost) return std::nullopt;
    return *counts[0] * counts[1].value_or(1);
  }

  std::string origin() const {
    if (counts[2] && !counts[0]) return origins[2];
    return origins[1].empty() ? origins[0] : origins[0] + ", " + origins[1];
  }
};

struct Candidate {
  std::vector<ShellWord> words;
  std::size_t program = 0;  // index of the program; words.size() without one
  int line = 0;
  std::size_t score = 0;
};

Candidate candidate_of(const ShellCommand& command, bool (*counts)(const std::string&)) {
  Candidate result{opened(command), 0, command.line, 0};
  const auto program = std::find_if(result.words.begin(), result.words.end(), is_program);
  result.program = static_cast<std::size_t>(program - result.words.begin());
  const std::size_t start = program == result.words.end() ? 0 : result.program;
  for (std::size_t i = start; i < result.words.size(); ++i) {
    if (counts(result.words[i].text)) ++result.score;
  }
  return result;
}

}  // namespace

std::optional<Launch> find_launch(const ShellScript& script, bool (*counts)(const std::string& argument),
                                  Draft& draft) {
  std::optional<Candidate> best;
  std::vector<int> others;
  for (const ShellCommand& command : script.commands) {
    if (prints(command)) continue;
    Candidate candidate = candidate_of(command, counts);
    if (candidate.score == 0) continue;
    if (best && candidate.score < best->score) {
      if (candidate.program < candidate.words.size()) others.push_back(candidate.line);
      continue;
    }
    if (best && best->program < best->words.size()) others.push_back(best->line);
    best = std::move(candidate);
  }
  if (!best) {
    draft.refuse("no command of the script starts a training with arguments of " + draft.request().format,
                 {draft.request().file, 0, ""}, {"formats: " + config::join(import_formats())});
    return std::nullopt;
  }
  for (const int line : others) {
    draft.contradict("line " + std::to_string(best->line) + " is read; line " + std::to_string(line) +
                     " starts a program, too");
  }
  const bool has_program = best->program < best->words.size();
  Launch launch;
  launch.line = best->line;
  DeviceCounts devices;
  devices.read(best->words, has_program ? best->program : best->words.size());
  devices.read(script.slurm, script.slurm.size());
  launch.devices = devices.devices();
  launch.devices_origin = devices.origin();
  launch.devices_missing = devices.missing;
  if (has_program) launch.program = best->words[best->program].text;
  const auto first = best->words.begin() + static_cast<std::ptrdiff_t>(has_program ? best->program + 1 : 0);
  launch.arguments.assign(first, best->words.end());
  return launch;
}

}  // namespace stepcast::imports
