// Three values: a condition holds, does not, or is open. An open branch may or may not run; one behind a branch that
// runs for sure does not.
#include "import/shell_conditions.h"

#include <algorithm>
#include <utility>

#include "config/text.h"

namespace stepcast::imports {
namespace {

using Texts = std::vector<std::string>;

std::optional<bool> compare_numbers(const std::string& left, std::string_view how, const std::string& right) {
  const auto a = config::parse_integer(left);
  const auto b = config::parse_integer(right);
  if (!a || !b) return std::nullopt;
  if (how == "-eq") return *a == *b;
  if (how == "-ne") return *a != *b;
  if (how == "-lt") return *a < *b;
  if (how == "-le") return *a <= *b;
  if (how == "-gt") return *a > *b;
  if (how == "-ge") return *a >= *b;
  return std::nullopt;
}

std::optional<bool> outcome_of_texts(const Texts& texts) {
  if (texts.size() == 1) return !texts[0].empty();
  if (texts.size() == 2 && texts[0] == "-z") return texts[1].empty();
  if (texts.size() == 2 && texts[0] == "-n") return !texts[1].empty();
  if (texts.size() != 3) return std::nullopt;
  const bool pattern = texts[2].find_first_of("*?[") != std::string::npos;
  if (texts[1] == "=" || texts[1] == "==") return pattern ? std::nullopt : std::optional(texts[0] == texts[2]);
  if (texts[1] == "!=") return pattern ? std::nullopt : std::optional(texts[0] != texts[2]);
  return compare_numbers(texts[0], texts[1], texts[2]);
}

void add_causes(const std::vector<std::string>& more, std::vector<std::string>& causes) {
  for (const std::string& name : more) {
    const bool is_name = !name.empty() && name.find_first_of("$`{#") == std::string::npos;
    if (is_name && std::find(causes.begin(), causes.end(), name) == causes.end()) causes.push_back(name);
  }
}

// As && and || combine two of them; the second of two commands that are not joined counts alone.
ShellOutcome combined(const ShellOutcome& first, const ShellOutcome& second, bool with_and) {
  const bool decides = !with_and;  // "true || x" is true, "false && x" false
  if (first.holds == decides || second.holds == decides) return {decides, {}};
  if (first.holds && second.holds) return {!decides, {}};
  ShellOutcome result{std::nullopt, first.holds ? std::vector<std::string>() : first.causes};
  if (!second.holds) add_causes(second.causes, result.causes);
  return result;
}

}  // namespace

ShellOutcome outcome_of(const std::vector<ShellWord>& words) {
  ShellOutcome outcome;
  const std::string command = words.empty() ? "" : words.front().text;
  if (command == "true" || command == ":") return {true, {}};
  if (command == "false") return {false, {}};
  if (command != "[" && command != "test" && command != "[[") return outcome;
  Texts texts;
  for (std::size_t i = 1; i < words.size(); ++i) {
    add_causes(words[i].unknown, outcome.causes);
    texts.push_back(words[i].text);
  }
  const bool known =
      std::all_of(words.begin(), words.end(), [](const ShellWord& word) { return word.unknown.empty(); });
  if (command == "[" && !texts.empty() && texts.back() == "]") texts.pop_back();
  const bool negated = !texts.empty() && texts.front() == "!" && texts.size() > 1;
  if (negated) texts.erase(texts.begin());
  if (known) outcome.holds = texts.empty() ? std::optional(false) : outcome_of_texts(texts);
  if (negated && outcome.holds) outcome.holds = !*outcome.holds;
  return outcome;
}

void ShellBlocks::open(std::string_view end, const std::vector<std::string>& causes) {
  // The condition of an `if` itself runs.
  const bool runs = end == "group" || end == "fi";
  Block block{std::string(end), runs ? Runs::kYes : Runs::kUnknown, {}, false, false};
  add_causes(causes, block.causes);
  blocks_.push_back(std::move(block));
  status_ = {};
}

void ShellBlocks::close() {
  if (!blocks_.empty()) blocks_.pop_back();
  status_ = {};
}

void ShellBlocks::enter_branch() {
  if (blocks_.empty() || blocks_.back().end != "fi") return;
  Block& block = blocks_.back();
  const ShellOutcome outcome = std::exchange(status_, {});
  if (block.taken || outcome.holds == false) {
    block.runs = Runs::kNo;
  } else if (outcome.holds && !block.open) {
    block.runs = Runs::kYes;
    block.taken = true;
  } else {
    block.runs = Runs::kUnknown;
    block.open = true;
    add_causes(outcome.causes, block.causes);
  }
}

void ShellBlocks::next_branch(bool has_condition) {
  if (blocks_.empty() || blocks_.back().end != "fi") return;
  Block& block = blocks_.back();
  status_ = {};
  block.runs = block.taken ? Runs::kNo : block.open ? Runs::kUnknown : Runs::kYes;
  if (has_condition && !block.taken) block.runs = Runs::kYes;
}

void ShellBlocks::take_outcome(ShellOutcome outcome) {
  const bool negated = std::exchange(negates_, false);
  if (list_ == Runs::kNo) return;
  if (negated && outcome.holds) outcome.holds = !*outcome.holds;
  status_ = joined_with_and_ ? combined(status_, outcome, *joined_with_and_) : std::move(outcome);
}

void ShellBlocks::join_list(bool with_and) {
  joined_with_and_ = with_and;
  list_ = !status_.holds ? Runs::kUnknown : *status_.holds == with_and ? Runs::kYes : Runs::kNo;
}

void ShellBlocks::end_list() {
  joined_with_and_.reset();
  list_ = Runs::kYes;
}

bool ShellBlocks::skipped() const {
  return list_ == Runs::kNo ||
         std::any_of(blocks_.begin(), blocks_.end(), [](const Block& b) { return b.runs == Runs::kNo; });
}

bool ShellBlocks::doubtful() const {
  return list_ == Runs::kUnknown ||
         std::any_of(blocks_.begin(), blocks_.end(), [](const Block& b) { return b.runs == Runs::kUnknown; });
}

std::string ShellBlocks::cause() const {
  for (const Block& block : blocks_) {
    if (block.runs == Runs::kUnknown && !block.causes.empty()) return block.causes.front();
  }
  return list_ == Runs::kUnknown && !status_.causes.empty() ? status_.causes.front() : "";
}

}  // namespace stepcast::imports
