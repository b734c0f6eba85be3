// The list is read once, when it is first asked for.
#include "import/megatron_flags.h"

#include <algorithm>
#include <array>

#include "config/text.h"
#include "import/arguments.h"

namespace stepcast::imports {
namespace {

struct Names {
  std::vector<std::string> flags;  // sorted
  std::vector<std::string> fields;
};

Names read_names() {
  Names names;
  std::string_view text = megatron_flags_text();
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t blank = line.find(' ');
    (blank == std::string_view::npos ? names.flags : names.fields).emplace_back(line.substr(0, blank));
  }
  std::sort(names.fields.begin(), names.fields.end());  // those of older releases stand at the end
  return names;
}

const Names& names() {
  static const Names list = read_names();
  return list;
}

struct Spoken {
  std::string_view word;
  std::string_view words;
};
constexpr std::array<Spoken, 10> kSpoken = {{{"tp", "tensor-model-parallel"},
                                             {"pp", "pipeline-model-parallel"},
                                             {"cp", "context-parallel"},
                                             {"ep", "expert-model-parallel"},
                                             {"etp", "expert-tensor-parallel"},
                                             {"mbs", "micro-batch-size"},
                                             {"gbs", "global-batch-size"},
                                             {"tensor-parallel", "tensor-model-parallel"},
                                             {"pipeline-parallel", "pipeline-model-parallel"},
                                             {"expert-parallel", "expert-model-parallel"}}};

// Whether `flag` has the words of `name`, some of them longer; single letters shorten nothing.
bool shortens(std::string_view name, std::string_view flag) {
  constexpr std::size_t kShortest = 3;
  for (;;) {
    const std::string_view word = name.substr(0, name.find('-'));
    const std::string_view whole = flag.substr(0, flag.find('-'));
    if (!whole.starts_with(word) || (word != whole && word.size() < kShortest)) return false;
    const bool last = word.size() == name.size();
    if (last || whole.size() == flag.size()) return last && whole.size() == flag.size();
    name.remove_prefix(word.size() + 1);
    flag.remove_prefix(whole.size() + 1);
  }
}

}  // namespace

bool is_megatron_flag(std::string_view name) {
  return std::binary_search(names().flags.begin(), names().flags.end(), name) ||
         std::binary_search(names().fields.begin(), names().fields.end(), name);
}

std::string complete_megatron_flag(std::string_view name) {
  if (is_megatron_flag(name)) return std::string(name);
  std::string only;
  for (const std::string& flag : names().flags) {
    if (!flag.starts_with(name)) continue;
    if (!only.empty()) return {};
    only = flag;
  }
  return only;
}

std::string mistyped_megatron_flag(std::string_view name) {
  if (is_megatron_flag(name)) return {};
  const std::vector<std::string> nearest = config::nearest_names(name, names().flags, 1);
  return !nearest.empty() && is_mistyped(name, nearest[0]) ? nearest[0] : std::string();
}

std::string abbreviated_megatron_flag(std::string_view name) {
  if (is_megatron_flag(name)) return {};
  for (const Spoken& spoken : kSpoken) {
    const bool begins =
        name.starts_with(spoken.word) && (name.size() == spoken.word.size() || name[spoken.word.size()] == '-');
    if (!begins) continue;
    const std::string whole = std::string(spoken.words) + std::string(name.substr(spoken.word.size()));
    for (const std::string& flag : {whole, whole + "-size"}) {
      if (std::binary_search(names().flags.begin(), names().flags.end(), flag)) return flag;
    }
  }
  const auto found = std::find_if(names().flags.begin(), names().flags.end(),
                                  [&](const std::string& flag) { return shortens(name, flag); });
  return found == names().flags.end() ? std::string() : *found;
}

std::vector<std::string> nearest_megatron_flags(std::string_view name) {
  std::vector<std::string> nearest = config::nearest_names(name, names().flags, 2);
  for (std::string& flag : nearest) flag.insert(0, "--");
  return nearest;
}

}  // namespace stepcast::imports
