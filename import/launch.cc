// Launchers: torchrun and torch.distributed (nproc_per_node, nnodes), srun and #SBATCH (nodes, ntasks-per-node,
// gpus-per-node), deepspeed (num_gpus, num_nodes), mpirun (np), accelerate (num_processes).
#include "import/launch.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "config/text.h"
#include "import/shell_nested.h"

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

struct DeviceCounts {
  std::array<std::optional<std::int64_t>, 3> counts;  // by Counts
  std::array<std::string, 3> origins;
  std::array<std::vector<MissingCount>, 3> missing;
  std::vector<MissingCount> refused;  // `variable` is the value

  void take(Counts kind, const std::string& name, const ShellWord& word, int line) {
    const auto i = static_cast<std::size_t>(kind);
    if (!word.unknown.empty()) {
      for (const std::string& variable : word.unknown) missing[i].push_back({variable, name, line});
      return;
    }
    std::string text = word.text.substr(word.text.rfind(':') + 1);  // elastic "1:4": the largest job
    const auto number = config::parse_integer(text);
    if (number && *number < 1) refused.push_back({text, name, line});
    if (number && *number > 0 && !counts[i]) {
      counts[i] = number;
      origins[i] = name + " " + text;
    }
  }

  // Reads words of a launcher or of #SBATCH lines. The first of several holds.
  void read(const std::vector<ShellWord>& words, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::string& text = words[i].text;
      const std::size_t equals = text.find('=');
      const std::string name = dashed(text.substr(0, equals));
      const auto option = std::find_if(kOptions.begin(), kOptions.end(), [&](const auto& o) { return o.name == name; });
      if (option == kOptions.end()) continue;
      if (equals != std::string::npos) {
        ShellWord value = words[i];
        value.text = text.substr(equals + 1);
        take(option->counts, name, value, value.line);
      } else if (i + 1 < end) {
        take(option->counts, name, words[i + 1], words[i].line);
      }
    }
  }

  StatedDevices stated(bool torchrun) const {
    constexpr std::int64_t kMost = std::int64_t{1} << 24;
    if (!counts[0] && !missing[0].empty()) return {std::nullopt, "", missing[0], ""};
    if (!counts[0]) return {counts[2], origins[2], missing[2], ""};
    if (*counts[0] > kMost || counts[1].value_or(1) > kMost) return {};
    if (counts[1]) return {*counts[0] * *counts[1], origins[0] + ", " + origins[1], {}, ""};
    if (!missing[1].empty()) return {std::nullopt, "", missing[1], ""};
    return {counts[0],
            origins[0],
            {},
            torchrun ? "1 node, torchrun's default: --nnodes is not given" : "1 node: nothing states how many"};
  }
};

// Where torchrun's own words start: what srun starts in front of it are its copies, one a node.
std::size_t torchrun_at(const std::vector<ShellWord>& words) {
  const auto found = std::find_if(words.begin(), words.end(), [](const ShellWord& word) {
    return word.text == "torchrun" || word.text.ends_with("/torchrun") || word.text.starts_with("torch.distributed.");
  });
  return static_cast<std::size_t>(found - words.begin());
}

// The launcher's words end at the program.
StatedDevices devices_of(const std::vector<ShellWord>& words, std::size_t end, const std::vector<ShellWord>& slurm,
                         Draft& draft) {
  DeviceCounts devices;
  const std::size_t torchrun = std::min(torchrun_at(words), end);
  devices.read(words, torchrun, end);
  devices.read(words, 0, torchrun);
  devices.read(slurm, 0, slurm.size());
  for (const MissingCount& bad : devices.refused) {
    draft.refuse(bad.option + " " + bad.variable, {draft.request().file, bad.line, bad.option},
                 {"a whole number from 1"});
  }
  StatedDevices stated = devices.stated(torchrun < end);
  if (stated.count) stated.origin.insert(0, draft.request().file + ": ");
  return stated;
}

struct Candidate {
  std::vector<ShellWord> words;
  std::size_t program = 0;  // index of the program; words.size() without one
  int line = 0;
  std::size_t score = 0;
  std::vector<ShellWord> lost;  // words that a shell's option -c does not read
};

Candidate candidate_of(std::vector<ShellWord> words, int line, bool (*counts)(const std::string&)) {
  Candidate result{std::move(words), 0, line, 0, {}};
  const auto program = std::find_if(result.words.begin(), result.words.end(), is_program);
  result.program = static_cast<std::size_t>(program - result.words.begin());
  const std::size_t start = program == result.words.end() ? 0 : result.program;
  for (std::size_t i = start; i < result.words.size(); ++i) {
    if (counts(result.words[i].text)) ++result.score;
  }
  return result;
}

// Of programs whose arguments are all in variables without a value: the variables. True when there are any.
bool ask_for_arguments(const ShellScript& script, Draft& draft) {
  std::set<std::string> asked;
  for (const ShellCommand& command : script.commands) {
    if (prints(command)) continue;
    const auto names_program = [](const ShellWord& word) { return word.text.find(".py") != std::string::npos; };
    const std::vector<ShellWord>& words = command.words;
    for (auto word = std::find_if(words.begin(), words.end(), names_program); word != words.end(); ++word) {
      for (const std::string& variable : word->unknown) {
        if (asked.insert(variable).second) draft.ask_for(variable, {draft.request().file, command.line, ""});
      }
    }
  }
  return !asked.empty();
}

// "${A[@]}" in a quoted text makes several words, of which `bash -c` reads the first. What is
// missing then would be told of flags that are there.
bool refuse_lost(const Candidate& launch, Draft& draft) {
  if (launch.lost.empty()) return false;
  const ShellWord& first = launch.lost.front();
  draft.refuse(
      "the shell's -c reads one word; what follows it, from \"" + config::printable(first.text, 60) +
          "\" on, never reaches the program",
      {draft.request().file, first.line, ""},
      {"an array inside a quoted command is one word as ${NAME[*]}; ${NAME[@]} ends the word at its elements"});
  return true;
}

}  // namespace

std::int64_t take_devices(const StatedDevices& stated, Draft& draft, std::vector<std::string> help) {
  if (draft.request().gpus || stated.count || stated.missing.empty()) {
    if (!stated.assumed.empty() && !draft.request().gpus) draft.assume(stated.assumed);
    return draft.take_gpus(stated.count, stated.count ? stated.origin : "", std::move(help));
  }
  for (const MissingCount& missing : stated.missing) {
    draft.ask_for(missing.variable, {draft.request().file, missing.line, missing.option}, "=VALUE, or --gpus N");
  }
  return 0;
}

std::optional<Launch> find_launch(const ShellScript& script, bool (*counts)(const std::string& argument),
                                  Draft& draft) {
  std::optional<Candidate> best;
  std::vector<int> others;
  for (const ShellCommand& command : script.commands) {
    if (prints(command)) continue;
    OpenedCommand opened = open_command(command, script.variables);
    for (std::vector<ShellWord>& words : opened.commands) {
      Candidate candidate = candidate_of(std::move(words), command.line, counts);
      if (candidate.score == 0) continue;
      candidate.lost = opened.lost;
      if (best && candidate.score < best->score) {
        if (candidate.program < candidate.words.size()) others.push_back(candidate.line);
        continue;
      }
      if (best && best->program < best->words.size()) others.push_back(best->line);
      best = std::move(candidate);
    }
  }
  if (!best && ask_for_arguments(script, draft)) return std::nullopt;
  if (!best) {
    draft.refuse("no command of the script starts a training with arguments of " + draft.request().format,
                 {draft.request().file, 0, ""}, {"formats: " + config::join(import_formats())});
    return std::nullopt;
  }
  for (const int line : others) {
    draft.contradict("line " + std::to_string(best->line) + " is read; line " + std::to_string(line) +
                     " starts a program, too");
  }
  if (refuse_lost(*best, draft)) return std::nullopt;
  const bool has_program = best->program < best->words.size();
  Launch launch;
  launch.line = best->line;
  launch.devices = devices_of(best->words, best->program, script.slurm, draft);
  if (has_program) launch.program = best->words[best->program].text;
  const auto first = best->words.begin() + static_cast<std::ptrdiff_t>(has_program ? best->program + 1 : 0);
  launch.arguments.assign(first, best->words.end());
  return launch;
}

}  // namespace stepcast::imports
