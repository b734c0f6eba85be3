// The list is read once, when it is first asked for.
#include "import/megatron_flags.h"

#include <algorithm>

#include "config/text.h"

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
  return names;
}

const Names& names() {
  static const Names list = read_names();
  return list;
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

std::vector<std::string> nearest_megatron_flags(std::string_view name) {
  std::vector<std::string> nearest = config::nearest_names(name, names().flags, 2);
  for (std::string& flag : nearest) flag.insert(0, "--");
  return nearest;
}

}  // namespace stepcast::imports
