// Names are compared in one spelling, messages keep the source's.
#include "import/arguments.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "config/text.h"

namespace stepcast::imports {
namespace {

std::string dashed(std::string_view text) {
  std::string result(text);
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

// A word that is nothing but an unknown variable where no value is due, or where a branch may have put arguments.
bool hides_arguments(const ShellWord& word, const std::vector<Argument>& before) {
  if (!word.text.empty() || word.unknown.empty()) return false;
  return word.hides || before.empty() || !before.back().values.empty();
}

bool is_flag(const ShellWord& word) { return word.text.size() > 2 && word.text.starts_with("--"); }

void add_leaf(const config::Node& node, const std::string& key, std::vector<Argument>& arguments, bool path) {
  Argument argument;
  argument.written = key;
  argument.where = node.where;
  const std::string name = path ? key : key.substr(key.rfind('.') + 1);
  argument.name = dashed(name.starts_with("--") ? name.substr(2) : name);
  if (node.kind == config::Node::Kind::kList) {
    for (const config::Node& item : node.children) argument.values.push_back(config::flow_text(item));
    argument.off = argument.values.empty();
  } else {
    const bool plain = !node.quoted;
    argument.off = plain && (node.text == "false" || node.text == "False");
    const bool on = plain && (node.text == "true" || node.text == "True");
    if (!argument.off && !on) argument.values.push_back(node.text);
  }
  arguments.push_back(std::move(argument));
}

void add_tree(const config::Node& node, const std::string& above, std::vector<Argument>& arguments, bool path) {
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    const std::string& key = node.keys[i];
    const config::Node& child = node.children[i];
    if (key.starts_with('_') || child.kind == config::Node::Kind::kNull) continue;
    const std::string name = above.empty() ? key : above + "." + key;
    if (child.kind == config::Node::Kind::kMap) {
      add_tree(child, name, arguments, path);
    } else {
      add_leaf(child, name, arguments, path);
    }
  }
}

std::string without_digits(std::string_view name) {
  std::string text(name);
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

}  // namespace

bool is_mistyped(std::string_view name, std::string_view known) {
  constexpr std::size_t kShortest = 5;
  constexpr std::size_t kLong = 10;
  if (name.size() < kShortest || name == known || without_digits(name) == without_digits(known)) return false;
  return config::edit_distance(name, known) <= (std::min(name.size(), known.size()) < kLong ? 1 : 2);
}

bool is_idle(const Argument& argument, std::string_view idle) {
  constexpr std::array<std::string_view, 9> kIdle = {"",     "0",     "0.0",   "none",    "None",
                                                     "null", "false", "False", "no_shard"};
  if (argument.off) return true;
  if (argument.values.size() != 1) return false;
  const std::string& value = argument.values[0];
  return value == idle || std::find(kIdle.begin(), kIdle.end(), value) != kIdle.end();
}

std::string as_written(const Argument& argument) {
  std::string text = argument.written;
  for (const std::string& value : argument.values) text += " " + value;
  if (argument.off) text += " false";
  return config::printable(text, 120);
}

std::vector<Argument> arguments_of_words(const std::vector<ShellWord>& words, const std::string& file, Draft& draft) {
  std::vector<Argument> arguments;
  std::set<std::string> asked;
  for (const ShellWord& word : words) {
    if (is_flag(word)) {
      const std::size_t equals = word.text.find('=');
      Argument argument;
      argument.written = word.text.substr(0, equals);
      argument.name = dashed(std::string_view(argument.written).substr(2));
      argument.where = {file, word.line, ""};
      argument.unknown = word.unknown;
      if (equals != std::string::npos) argument.values.push_back(word.text.substr(equals + 1));
      arguments.push_back(std::move(argument));
    } else if (hides_arguments(word, arguments)) {
      const std::string& name = word.unknown.front();
      if (asked.insert(name).second) {
        draft.ask_for(name, {file, word.line, ""}, word.hides ? "=VALUE" : "=\"...\" (empty if it adds nothing)");
      }
    } else if (!arguments.empty()) {
      arguments.back().values.push_back(word.text);
      for (const std::string& name : word.unknown) arguments.back().unknown.push_back(name);
    }
  }
  return arguments;
}

std::vector<Argument> arguments_of_tree(const config::Node& root, bool path) {
  std::vector<Argument> arguments;
  if (root.kind == config::Node::Kind::kMap) add_tree(root, "", arguments, path);
  return arguments;
}

const Argument* ArgumentTable::last(std::string_view name) const {
  const auto found =
      std::find_if(arguments_.rbegin(), arguments_.rend(), [&](const Argument& a) { return a.name == name; });
  return found == arguments_.rend() ? nullptr : &*found;
}

const Argument* ArgumentTable::find(std::string_view name) {
  const Argument* found = last(name);
  asked_.emplace(name);
  if (found == nullptr) return nullptr;
  if (told_.emplace(name).second) {
    tell_repeats(name, *found);
    for (const std::string& variable : found->unknown) {
      draft_.ask_for(variable, {found->where.file, found->where.line, found->written});
    }
  }
  return found->unknown.empty() ? found : nullptr;
}

void ArgumentTable::tell_repeats(std::string_view name, const Argument& holds) {
  for (const Argument& other : arguments_) {
    if (other.name != name || (other.values == holds.values && other.off == holds.off)) continue;
    draft_.contradict(config::origin_text(holds.where) + ": " + as_written(holds) + " holds; " +
                      config::origin_text(other.where) + " says " + as_written(other));
    return;
  }
}

bool ArgumentTable::on(std::string_view name) {
  const Argument* found = find(name);
  if (found == nullptr || found->off) return false;
  const bool stated = found->values.size() == 1;
  return !stated || (found->values[0] != "false" && found->values[0] != "False");
}

std::vector<std::string> ArgumentTable::words(std::string_view name) {
  const Argument* found = find(name);
  return found == nullptr ? std::vector<std::string>() : found->values;
}

std::optional<std::string> ArgumentTable::word(std::string_view name) {
  const Argument* found = find(name);
  if (found == nullptr || found->off) return std::nullopt;
  if (found->values.size() == 1) return found->values.front();
  draft_.refuse("expected one value, " + std::to_string(found->values.size()) + " are given",
                {found->where.file, found->where.line, found->written});
  return std::nullopt;
}

std::optional<double> ArgumentTable::number(std::string_view name) {
  const auto text = word(name);
  if (!text) return std::nullopt;
  const auto value = config::parse_number(*text);
  if (!value) draft_.refuse("\"" + config::printable(*text) + "\" is not a number", where(name));
  return value;
}

std::optional<std::int64_t> ArgumentTable::integer(std::string_view name) {
  constexpr double kMost = 2147483648.0;  // 2^31
  const auto text = word(name);
  if (!text) return std::nullopt;
  const auto value = config::parse_number(*text);
  if (value && *value >= 0 && *value <= kMost && *value == std::floor(*value)) {
    return static_cast<std::int64_t>(*value);
  }
  draft_.refuse("\"" + config::printable(*text) + "\" is not a whole number from 0 to 2^31", where(name));
  return std::nullopt;
}

std::optional<std::int64_t> ArgumentTable::positive(std::string_view name) {
  const auto value = integer(name);
  if (!value || *value > 0) return value;
  draft_.refuse("0 is no value of it", where(name), {"a whole number from 1"});
  return std::nullopt;
}

std::string ArgumentTable::origin(std::string_view name) const {
  const Argument* found = last(name);
  return found == nullptr ? "" : config::origin_text(found->where) + ": " + as_written(*found);
}

Location ArgumentTable::where(std::string_view name) const {
  const Argument* found = last(name);
  return found == nullptr ? Location{} : Location{found->where.file, found->where.line, found->written};
}

std::vector<const Argument*> ArgumentTable::rest() const {
  std::vector<const Argument*> rest;
  std::set<std::string_view> seen;
  for (const Argument& argument : arguments_) {
    if (!asked_.contains(argument.name) && seen.insert(argument.written).second) rest.push_back(&argument);
  }
  return rest;
}

bool ArgumentTable::refuse_mistyped(const Argument& argument, std::span<const KnownName> known) {
  const std::string_view name = argument.name;
  const std::size_t word = name.rfind('.') + 1;
  const bool is_known =
      std::any_of(known.begin(), known.end(), [&](const KnownName& k) { return k.beginning == name; });
  if (is_known) return false;
  for (const std::string& other : asked_) {
    const std::size_t dot = other.rfind('.') + 1;
    if (dot != word || !name.starts_with(other.substr(0, dot))) continue;
    if (!is_mistyped(name.substr(word), other.substr(dot)) || last(other) != nullptr) continue;
    std::string meant = other.substr(dot);
    if (argument.written.find('_') != std::string::npos) std::replace(meant.begin(), meant.end(), '-', '_');
    draft_.refuse("no key of " + draft_.request().format + " is called so",
                  {argument.where.file, argument.where.line, argument.written}, {"did you mean " + meant + "?"});
    return true;
  }
  return false;
}

void ArgumentTable::ignore_rest(std::span<const KnownName> known) {
  const std::vector<std::string> names(asked_.begin(), asked_.end());
  for (const Argument* argument : rest()) {
    if (refuse_mistyped(*argument, known)) continue;
    const auto entry = std::find_if(known.begin(), known.end(),
                                    [&](const KnownName& k) { return argument->name.starts_with(k.beginning); });
    if (entry != known.end() && entry->refused && !is_idle(*argument, entry->idle)) {
      draft_.refuse(as_written(*argument) + ": " + std::string(entry->detail),
                    {argument->where.file, argument->where.line, argument->written},
                    {"leave it out to import the run without it"}, ErrorKind::kUnsupported);
      continue;
    }
    if (entry != known.end()) {
      draft_.ignore(argument->written, entry->reason, std::string(entry->detail), argument->where);
      continue;
    }
    std::vector<std::string> nearest = config::nearest_names(argument->name, names, 1);
    if (!nearest.empty() && argument->written.find('_') != std::string::npos) {
      std::replace(nearest[0].begin(), nearest[0].end(), '-', '_');
    }
    draft_.ignore(argument->written, Reason::kUnknown, nearest.empty() ? "" : "did you mean " + nearest[0] + "?",
                  argument->where);
  }
}

std::vector<Argument> without_value(std::vector<Argument> arguments, std::string_view text) {
  std::erase_if(arguments, [&](const Argument& a) { return a.values.size() == 1 && a.values[0] == text; });
  return arguments;
}

}  // namespace stepcast::imports
