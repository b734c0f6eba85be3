// The formats by name, and those that are Megatron arguments in another dress.
#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "config/text.h"
#include "import/formats.h"
#include "import/launch.h"
#include "import/megatron.h"
#include "import/megatron_flags.h"

namespace stepcast::imports {
namespace {

struct Format {
  std::string_view name;
  void (*import)(Draft&);
};

constexpr std::array<Format, 5> kFormats = {{
    {"megatron", import_megatron},
    {"megatron-bridge", import_megatron_bridge},
    {"torchtitan", import_torchtitan},
    {"nanotron", import_nanotron},
    {"deepspeed", import_deepspeed},
}};

bool is_megatron_argument(const std::string& word) {
  if (word.size() < 3 || !word.starts_with("--")) return false;
  std::string name = word.substr(2, word.find('=') - 2);
  std::replace(name.begin(), name.end(), '_', '-');
  return !complete_megatron_flag(name).empty();
}

// Variables that steer the libraries; the scenario's reader knows which of them act.
void take_environment(const std::vector<std::pair<std::string, ShellWord>>& environment, Draft& draft) {
  std::vector<std::string> texts;
  std::set<std::string> names;
  for (auto entry = environment.rbegin(); entry != environment.rend(); ++entry) {
    const auto& [name, word] = *entry;
    const bool steers = name == "CUDA_DEVICE_MAX_CONNECTIONS" || name.starts_with("NCCL_");
    if (!steers || !word.unknown.empty() || word.text.empty() || !names.insert(name).second) continue;
    texts.push_back(name + ": " + yaml_text(word.text));
  }
  std::reverse(texts.begin(), texts.end());
  if (!texts.empty()) draft.set("stack.env", "{" + config::join(texts) + "}", draft.request().file + ": environment");
}

// Segments that grow are asked for by a variable (PyTorch, "Memory Management"); without it they are of fixed sizes.
void take_allocator(const std::vector<std::pair<std::string, ShellWord>>& environment, Draft& draft) {
  std::string value;
  std::string name;
  int line = 0;
  for (const auto& [variable, word] : environment) {
    if (variable != "PYTORCH_CUDA_ALLOC_CONF" && variable != "PYTORCH_ALLOC_CONF") continue;
    name = variable;
    value = word.text;
    line = word.line;
  }
  const std::string origin = config::origin_text({draft.request().file, line, ""}) + ": " + name + "=" + value;
  std::erase(value, ' ');
  const bool expandable = value.find("expandable_segments:True") != std::string::npos ||
                          value.find("expandable_segments:true") != std::string::npos;
  if (expandable) return draft.set("stack.allocator", "expandable", origin);
  draft.set("stack.allocator", "default", name.empty() ? "PyTorch default" : origin);
  draft.assume(
      "stack.allocator default: " +
      (name.empty() ? "PYTORCH_CUDA_ALLOC_CONF is not set here" : name + " does not say expandable_segments:True") +
      "; what fragmentation takes is an estimate (explain device)");
}

void take_environment_map(config::Node& root, Draft& draft) {
  const config::Node* variables = root.find("ENV_VARS");
  if (variables == nullptr || variables->kind != config::Node::Kind::kMap) return;
  std::vector<std::pair<std::string, ShellWord>> environment;
  for (std::size_t i = 0; i < variables->children.size(); ++i) {
    environment.emplace_back(variables->keys[i], ShellWord{variables->children[i].text, 0, {}, {}});
  }
  root.erase("ENV_VARS");
  take_environment(environment, draft);
  take_allocator(environment, draft);
}

config::Node read_tree(const Draft& draft) {
  const std::string& file = draft.request().file;
  return config::parse_document(config::read_file(file), file);
}

ShellScript read_script(const Draft& draft) {
  const ImportRequest& request = draft.request();
  return read_shell(config::read_file(request.file), request.file, request.defines);
}

// "section.key=value", with Hydra's "+" or "++" in front; a mixed precision stands in no section.
bool is_override(const std::string& word) {
  const std::size_t equals = word.find('=');
  const std::size_t dot = word.find('.');
  const bool section = dot != std::string::npos && dot < equals;
  return !word.starts_with('-') && equals != std::string::npos && (section || word.starts_with("mixed_precision="));
}

Argument override_of(std::string text, const ShellWord& word, const std::string& file) {
  text.erase(0, text.find_first_not_of('+'));
  const std::size_t equals = text.find('=');
  const std::size_t key = text.rfind('.', equals) + 1;
  const std::string value = text.substr(equals + 1);
  Argument argument;
  argument.name = text.substr(key, equals - key);
  std::replace(argument.name.begin(), argument.name.end(), '_', '-');
  argument.written = text.substr(0, equals);
  argument.off = value == "false" || value == "False" || value == "null" || value == "None";
  if (!argument.off && value != "true" && value != "True") argument.values.push_back(value);
  argument.where = {file, word.line, ""};
  argument.unknown = word.unknown;
  return argument;
}

// Overrides of every command, and --num_gpus of the performance scripts.
std::vector<Argument> overrides_of(const ShellScript& script, Draft& draft) {
  const std::string& file = draft.request().file;
  std::vector<Argument> arguments;
  for (const ShellCommand& command : script.commands) {
    for (const ShellWord& word : command.words) {
      if (is_override(word.text)) arguments.push_back(override_of(word.text, word, file));
    }
    for (Argument& flag : arguments_of_words(command.words, file, draft)) {
      if (flag.name == "num-gpus") flag.name = "world-size";
      if (!is_override(flag.written)) arguments.push_back(std::move(flag));
    }
  }
  // A word after a flag's value is the flag's to arguments_of_words: overrides are no values.
  for (Argument& argument : arguments) {
    if (argument.written.starts_with("--")) std::erase_if(argument.values, is_override);
  }
  return arguments;
}

struct MixedPrecision {
  std::string_view part;  // of the recipe's name
  std::string_view recipe;
};
constexpr std::array<MixedPrecision, 5> kMixedPrecisions = {{{"current_scaling", "tensorwise"},
                                                             {"delayed_scaling", "delayed"},
                                                             {"_fp8_mixed", "delayed"},
                                                             {"mxfp8", "mxfp8"},
                                                             {"subchannel", "blockwise"}}};

// Megatron-Bridge names a precision by one word: bf16_with_fp8_current_scaling_mixed.
void spell_out_precision(std::vector<Argument>& arguments) {
  std::vector<Argument> added;
  const auto add = [&added](const Argument& like, std::string name, std::vector<std::string> values) {
    added.push_back({std::move(name), like.written, std::move(values), false, like.where, {}});
  };
  for (const Argument& argument : arguments) {
    if (argument.name != "mixed-precision" || argument.values.size() != 1) continue;
    const std::string& word = argument.values[0];
    add(argument, word.starts_with("fp16") ? "fp16" : "bf16", {});
    if (word.find("fp4") != std::string::npos) add(argument, "fp4-format", {"e2m1"});
    for (const MixedPrecision& known : kMixedPrecisions) {
      if (word.find(known.part) == std::string::npos) continue;
      add(argument, "fp8-format", {"hybrid"});
      add(argument, "fp8-recipe", {std::string(known.recipe)});
    }
  }
  std::erase_if(arguments, [](const Argument& a) { return a.name == "mixed-precision"; });
  arguments.insert(arguments.end(), added.begin(), added.end());
}

// What every recipe of Megatron-Bridge sets unless it is overridden (megatron/bridge/recipes at 067f987).
void assume_recipe(std::vector<Argument>& arguments, Draft& draft) {
  const auto has = [&arguments](std::string_view name) {
    return std::any_of(arguments.begin(), arguments.end(), [&](const Argument& a) { return a.name == name; });
  };
  const bool reduces_late = std::any_of(arguments.begin(), arguments.end(),
                                        [](const Argument& a) { return a.name == "overlap-grad-reduce" && a.off; });
  std::vector<std::string> assumed;
  for (const char* const name : {"bf16", "use-distributed-optimizer", "overlap-grad-reduce", "overlap-param-gather",
                                 "cross-entropy-loss-fusion"}) {
    const std::string_view what = name;
    if (has(what) || (what == "bf16" && has("fp16")) || (what == "overlap-param-gather" && reduces_late)) continue;
    arguments.push_back({name, "recipe", {}, false, {"recipe", 0, ""}, {}});
    assumed.emplace_back(name);
  }
  for (const char* const name : {"hidden-dropout", "attention-dropout"}) {
    if (!has(name)) arguments.push_back({name, "recipe", {"0"}, false, {"recipe", 0, ""}, {}});
  }
  draft.assume("the recipe's own values beside the overrides: " + config::join(assumed) +
               ", no dropout, every degree 1; the YAML that --save_config_filepath writes says them all");
}

}  // namespace

bool is_yaml_file(std::string_view file) {
  return file.ends_with(".yaml") || file.ends_with(".yml") || file.ends_with(".json");
}

void import_megatron(Draft& draft) {
  if (is_yaml_file(draft.request().file)) {
    config::Node root = read_tree(draft);
    take_environment_map(root, draft);
    ArgumentTable args(as_megatron_flags(arguments_of_tree(root, false)), draft);
    return translate_megatron(args, draft, {});
  }
  const ShellScript script = read_script(draft);
  const auto launch = find_launch(script, is_megatron_argument, draft);
  if (!launch) return;
  take_environment(script.environment, draft);
  take_allocator(script.environment, draft);
  ArgumentTable args(as_megatron_flags(arguments_of_words(launch->arguments, draft.request().file, draft)), draft);
  const std::string program = launch->program.substr(launch->program.rfind('/') + 1);
  translate_megatron(args, draft, launch->devices, program == "pretrain_gpt.py");
}

void import_megatron_bridge(Draft& draft) {
  std::vector<Argument> arguments;
  if (is_yaml_file(draft.request().file)) {
    arguments = arguments_of_tree(read_tree(draft), false);
  } else {
    const ShellScript script = read_script(draft);
    take_environment(script.environment, draft);
    take_allocator(script.environment, draft);
    arguments = overrides_of(script, draft);
    if (arguments.empty()) {
      draft.refuse("no override such as model.tensor_model_parallel_size=4", {draft.request().file, 0, ""});
    }
  }
  arguments = as_megatron_flags(std::move(arguments));
  spell_out_precision(arguments);
  if (!is_yaml_file(draft.request().file)) assume_recipe(arguments, draft);
  ArgumentTable args(std::move(arguments), draft);
  translate_megatron(args, draft, {});
}

std::vector<std::string> import_formats() {
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.emplace_back(format.name);
  return names;
}

Imported import_file(const ImportRequest& request) {
  const auto format = std::find_if(kFormats.begin(), kFormats.end(),
                                   [&](const Format& candidate) { return candidate.name == request.format; });
  if (format == kFormats.end()) {
    throw Error(ErrorKind::kUsage, "no import format is called \"" + config::printable(request.format) + "\"", {},
                {"formats: " + config::join(import_formats())});
  }
  Draft draft(request);
  format->import(draft);
  return draft.finish();
}

}  // namespace stepcast::imports
