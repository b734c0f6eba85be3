// The names of Megatron-LM's flags and configuration fields (import/megatron_flags.txt, embedded).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepcast::imports {

// The embedded list, one name a line.
std::string_view megatron_flags_text();

// Names have no leading dashes and "-" between words.
bool is_megatron_flag(std::string_view name);
// A flag of that name, or the one flag it is the beginning of (as argparse completes); empty when there is none or
// more.
std::string complete_megatron_flag(std::string_view name);
// The flag that is meant by a name at most two letters off (one in short names); empty when there is none, or when only
// digits differ, as in the flags that forks add.
std::string mistyped_megatron_flag(std::string_view name);
// The flag that a name shortens, word by word or as people speak: use-dist-optimizer, cp-size, tp, mbs. Empty for a
// name of the list.
std::string abbreviated_megatron_flag(std::string_view name);
// Flags close enough to be a typing mistake, with their dashes, nearest first.
std::vector<std::string> nearest_megatron_flags(std::string_view name);

}  // namespace stepcast::imports
