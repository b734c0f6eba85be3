// Fields are split where bash splits them: at blanks of unquoted expansions.
#include "import/shell_text.h"

#include <algorithm>
#include <utility>

namespace stepcast::imports {
namespace {

bool holds_arguments(const ShellVariable& variable) {
  return variable.array || std::any_of(variable.elements.begin(), variable.elements.end(), [](const Pieces& element) {
           const std::string text = text_of(element);
           return text.starts_with("--") || text.find_first_of(" \t\n") != std::string::npos;
         });
}

}  // namespace

ShellWord word_of(const Pieces& pieces, int line) {
  ShellWord word{text_of(pieces), line, {}, pieces};
  for (const Piece& piece : pieces) {
    if (!piece.unknown.empty()) word.unknown.push_back(piece.unknown);
    word.hides = word.hides || piece.hides;
  }
  for (const Piece& piece : pieces) {
    if (piece.text.empty() && !(piece.hides && word.text.empty())) continue;
    word.line = piece.line;
    break;
  }
  return word;
}

std::string text_of(const Pieces& pieces) {
  std::string text;
  for (const Piece& piece : pieces) text += piece.text;
  return text;
}

std::string first_unknown(const Pieces& pieces) {
  for (const Piece& piece : pieces) {
    if (!piece.unknown.empty()) return piece.unknown;
  }
  return {};
}

ShellVariables::ShellVariables(const std::map<std::string, std::string>& defines) {
  for (const auto& [name, text] : defines) {
    variables_[name] = {{{Piece{text, 0, {}}}}, false};
    fixed_[name] = true;
  }
}

const ShellVariable* ShellVariables::find(std::string_view name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : &found->second;
}

void ShellVariables::assign(const std::string& name, ShellVariable value, bool append) {
  if (fixed_.contains(name)) return;
  ShellVariable& variable = variables_[name];
  if (!append || variable.elements.empty()) {
    variable = std::move(value);
  } else if (value.array) {
    variable.array = true;
    for (Pieces& element : value.elements) variable.elements.push_back(std::move(element));
  } else if (!value.elements.empty()) {
    Pieces& first = variable.elements.front();
    for (Piece& piece : value.elements.front()) first.push_back(std::move(piece));
  }
}

void ShellVariables::forget(const std::string& name, int line) {
  if (fixed_.contains(name)) return;
  variables_[name] = {{{Piece{"", line, name}}}, false};
}

void ShellVariables::skip(const std::string& name, const ShellVariable& value) {
  if (holds_arguments(value) && find(name) == nullptr) variables_[name] = {{}, value.array};
}

void ShellVariables::doubt(const std::string& name, const ShellVariable& value, int line, const std::string& cause) {
  if (fixed_.contains(name)) return;
  ShellVariable& variable = variables_[name];
  const bool hides = holds_arguments(variable) || holds_arguments(value);
  const Piece place{"", line, cause, hides};
  const auto is_place = [&](const Pieces& p) { return !p.empty() && p.back().unknown == cause && p.back().hides; };
  if (!variable.elements.empty() && is_place(variable.elements.back())) return;
  if (variable.elements.empty() || variable.array) {
    variable.elements.push_back({place});
  } else {
    Pieces& text = variable.elements.front();
    if (hides) text.push_back({" ", line, {}});
    text.push_back(place);
  }
}

void FieldBuilder::add(std::string_view text, int line, bool quoted) {
  characters_ += text.size();
  open_ = open_ || quoted || !text.empty();
  if (text.empty()) return;
  const bool continues = !current_.empty() && current_.back().line == line && current_.back().unknown.empty();
  if (continues) {
    current_.back().text += text;
  } else {
    current_.push_back({std::string(text), line, {}});
  }
}

void FieldBuilder::add_expansion(const Pieces& value, bool quoted) {
  open_ = open_ || quoted;
  for (const Piece& piece : value) {
    if (!piece.unknown.empty()) {
      ++characters_;
      open_ = true;
      current_.push_back(piece);
    } else if (quoted) {
      add(piece.text, piece.line, true);
    } else {
      add_split(piece);
    }
  }
}

void FieldBuilder::add_split(const Piece& piece) {
  constexpr std::string_view kBlanks = " \t\n";
  const std::string_view text = piece.text;
  for (std::size_t at = 0; at < text.size();) {
    if (kBlanks.find(text[at]) != std::string_view::npos) {
      end_field();
      ++at;
      continue;
    }
    const std::size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
    add(text.substr(at, end - at), piece.line, false);
    at = end;
  }
}

void FieldBuilder::end_field() {
  if (open_) fields_.push_back(std::move(current_));
  current_.clear();
  open_ = false;
}

std::vector<Pieces> FieldBuilder::take() {
  end_field();
  return std::exchange(fields_, {});
}

}  // namespace stepcast::imports
