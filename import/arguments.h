// Arguments of a training program, whatever they were written as: flags, keys of a YAML file, overrides.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/document.h"
#include "import/draft.h"
#include "import/shell_text.h"

namespace stepcast::imports {

struct Argument {
  std::string name;     // without dashes in front, words joined by "-": tensor-model-parallel-size
  std::string written;  // as the source has it: --tensor_model_parallel_size
  std::vector<std::string> values;
  bool off = false;  // a key that is false
  Location where;
  std::vector<std::string> unknown;  // variables that its values lack
};

// "--name value ..." and "--name=value"; a word that starts with "--" ends the values of the one before. Words before
// the first flag are no arguments. A word that is nothing but an unknown variable may hide flags: that is a problem.
std::vector<Argument> arguments_of_words(const std::vector<ShellWord>& words, const std::string& file, Draft& draft);

// The leaves of a tree, named by their last key with "_" as "-"; null is absent, keys that start with "_" are skipped.
// With `path` the name keeps the keys above it, joined by dots.
std::vector<Argument> arguments_of_tree(const config::Node& root, bool path);

// A name, or the beginning of names, of a framework that the import does not act on, and why.
struct KnownName {
  std::string_view beginning;
  Reason reason = Reason::kNoInfluence;
  std::string_view detail;
  bool refused = false;        // it changes what is computed, stored or sent
  std::string_view idle = {};  // a value that is the same as no such name, as for is_idle
};

// Whether it says the same as nothing: off, 0, none, null, or `idle`.
bool is_idle(const Argument& argument, std::string_view idle);

// Whether `name` is at most two letters off `known` (one in short names), which it is not; names that differ only in
// digits are told apart.
bool is_mistyped(std::string_view name, std::string_view known);

// Looks arguments up by name and remembers which were asked for. The last of several holds; different values of one
// name are told as a contradiction. A value that lacks a variable is a problem that names it.
class ArgumentTable {
 public:
  ArgumentTable(std::vector<Argument> arguments, Draft& draft) : arguments_(std::move(arguments)), draft_(draft) {}

  const Argument* find(std::string_view name);
  // A switch that is there and not false.
  bool on(std::string_view name);
  std::optional<std::string> word(std::string_view name);
  std::vector<std::string> words(std::string_view name);
  // A whole number from 0 to 2^31 (1e6 counts as one); anything else is a problem.
  std::optional<std::int64_t> integer(std::string_view name);
  // The same from 1.
  std::optional<std::int64_t> positive(std::string_view name);
  std::optional<double> number(std::string_view name);
  // "launch.sh:12: --micro-batch-size 2"; empty when the argument is not there.
  std::string origin(std::string_view name) const;
  Location where(std::string_view name) const;

  // Those never asked for, each spelling once, in order.
  std::vector<const Argument*> rest() const;
  // What becomes of those never asked for. One whose last word is nearly one that was asked for, in the same section,
  // is refused (kInput); the first of `known` whose name begins theirs tells of the others, or refuses (kUnsupported);
  // the rest is unknown.
  void ignore_rest(std::span<const KnownName> known);

 private:
  const Argument* last(std::string_view name) const;
  // True when it was refused.
  bool refuse_mistyped(const Argument& argument, std::span<const KnownName> known);
  void tell_repeats(std::string_view name, const Argument& holds);

  std::vector<Argument> arguments_;
  Draft& draft_;
  std::set<std::string, std::less<>> asked_;
  std::set<std::string, std::less<>> told_;
};

std::string as_written(const Argument& argument);

// The arguments without those whose only value is `text`, such as "auto".
std::vector<Argument> without_value(std::vector<Argument> arguments, std::string_view text);

}  // namespace stepcast::imports
