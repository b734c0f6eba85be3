// One pass: a word is expanded as it is read, since every assignment before it has been read by then.
#include "import/shell_words.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "config/text.h"
#include "import/shell_arithmetic.h"

namespace stepcast::imports {
namespace {

constexpr std::size_t kMostCharacters = std::size_t{4} << 20;
constexpr int kDeepestExpansion = 32;
constexpr std::string_view kWordEnds = " \t\n;&|()<>";

}  // namespace

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_name_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

char ShellCursor::next() {
  const char c = text_[at_++];
  if (c == '\n') ++line_;
  return c;
}

bool ShellCursor::take(std::string_view word) {
  if (!sees(word)) return false;
  for (std::size_t i = 0; i < word.size(); ++i) next();
  return true;
}

void ShellCursor::skip_blanks() {
  while (!at_end() && (peek() == ' ' || peek() == '\t' || peek() == '\r' || sees("\\\n") || sees("\\\r\n"))) {
    if (!take("\\\r\n") && !take("\\\n")) next();
  }
}

void ShellCursor::skip_line() {
  while (!at_end() && peek() != '\n') next();
}

std::string_view ShellCursor::rest_of_line() const {
  return text_.substr(at_, std::min(text_.find('\n', at_), text_.size()) - at_);
}

void ShellCursor::fail(const std::string& message, int line) const {
  throw Error(ErrorKind::kInput, message, Location{file_, line, ""});
}

void ShellCursor::skip_balanced(char open, char close) {
  const int start = line_;
  int depth = 1;
  while (!at_end()) {
    const char c = next();
    if (c == '\\' && !at_end()) {
      next();
    } else if (c == '\'' || c == '"') {
      while (!at_end() && peek() != c) {
        if (next() == '\\' && c == '"' && !at_end()) next();
      }
      if (!at_end()) next();
    } else if (c == open) {
      ++depth;
    } else if (c == close && --depth == 0) {
      return;
    }
  }
  fail(std::string("no \"") + close + "\" closes what starts here", start);
}

std::vector<Pieces> ShellWordReader::fields() {
  FieldBuilder fields;
  read_word(fields, kWordEnds, true);
  charge(fields.characters());
  return fields.take();
}

Pieces ShellWordReader::value() {
  FieldBuilder fields;
  read_word(fields, kWordEnds, false);
  charge(fields.characters());
  std::vector<Pieces> all = fields.take();
  Pieces joined;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0) joined.push_back({" ", cursor_.line(), {}});
    joined.insert(joined.end(), all[i].begin(), all[i].end());
  }
  return joined;
}

ShellVariable ShellWordReader::array() {
  const int start = cursor_.line();
  ShellVariable array{{}, true};
  for (;;) {
    cursor_.skip_blanks();
    if (cursor_.at_end()) cursor_.fail("no \")\" closes the array that starts here", start);
    const char c = cursor_.peek();
    if (c == ')') {
      cursor_.next();
      return array;
    }
    if (c == '#') {
      cursor_.skip_line();
    } else if (kWordEnds.find(c) != std::string_view::npos) {
      cursor_.next();
    } else {
      for (Pieces& field : fields()) array.elements.push_back(std::move(field));
    }
  }
}

void ShellWordReader::charge(std::size_t characters) {
  produced_ += characters;
  if (produced_ > kMostCharacters) cursor_.fail("the expansions of this script grow beyond 4 MiB", cursor_.line());
}

// Without `split` (an assignment, a default inside quotes) expansions stay whole.
void ShellWordReader::read_word(FieldBuilder& fields, std::string_view stops, bool split) {
  while (!cursor_.at_end() && stops.find(cursor_.peek()) == std::string_view::npos) {
    const int line = cursor_.line();
    if (cursor_.take("\\\r\n") || cursor_.take("\\\n")) {
      // A continued word goes on in the next line.
    } else if (cursor_.take("\\")) {
      if (!cursor_.at_end()) fields.add(std::string(1, cursor_.next()), line, true);
    } else if (cursor_.take("'") || cursor_.take("$'")) {
      fields.add("", line, true);
      while (!cursor_.at_end() && cursor_.peek() != '\'') {
        const int at = cursor_.line();
        fields.add(std::string(1, cursor_.next()), at, true);
      }
      if (!cursor_.take("'")) cursor_.fail("no ' closes the quote that starts here", line);
    } else if (cursor_.take("\"")) {
      read_double_quotes(fields);
    } else if (cursor_.peek() == '$') {
      read_dollar(fields, !split);
    } else if (cursor_.peek() == '`') {
      cursor_.next();
      while (!cursor_.at_end() && cursor_.peek() != '`') cursor_.next();
      if (!cursor_.take("`")) cursor_.fail("no ` closes the command that starts here", line);
      add_unknown(fields, "`...`", line);
    } else {
      fields.add(std::string(1, cursor_.next()), line, false);
    }
  }
}

void ShellWordReader::read_double_quotes(FieldBuilder& fields) {
  const int start = cursor_.line();
  fields.add("", start, true);
  while (!cursor_.at_end() && cursor_.peek() != '"') {
    const int line = cursor_.line();
    if (cursor_.take("\\\r\n") || cursor_.take("\\\n")) continue;
    const bool escapes = cursor_.peek() == '\\' && std::string_view("\"\\$`").find(cursor_.peek(1)) < 4;
    if (escapes) {
      cursor_.next();
      fields.add(std::string(1, cursor_.next()), line, true);
    } else if (cursor_.peek() == '$') {
      read_dollar(fields, true);
    } else if (cursor_.take("`")) {
      while (!cursor_.at_end() && cursor_.peek() != '`') cursor_.next();
      if (!cursor_.take("`")) cursor_.fail("no ` closes the command that starts here", line);
      add_unknown(fields, "`...`", line);
    } else {
      fields.add(std::string(1, cursor_.next()), line, true);
    }
  }
  if (!cursor_.take("\"")) cursor_.fail("no \" closes the quote that starts here", start);
}

void ShellWordReader::read_dollar(FieldBuilder& fields, bool quoted) {
  const int line = cursor_.line();
  cursor_.next();
  if (cursor_.take("((")) {
    read_arithmetic(fields, quoted, line);
  } else if (cursor_.take("(")) {
    cursor_.skip_balanced('(', ')');
    add_unknown(fields, "$(...)", line);
  } else if (cursor_.take("{")) {
    if (++nesting_ > kDeepestExpansion) cursor_.fail("expansions nest too deep", line);
    read_braces(fields, quoted, line);
    --nesting_;
  } else if (cursor_.take("@") || cursor_.take("*")) {
    fields.drop_empty();  // the script's own arguments: none
  } else if (is_name_start(cursor_.peek())) {
    const std::size_t start = cursor_.at();
    while (is_name_part(cursor_.peek())) cursor_.next();
    add_variable(fields, quoted, std::string(cursor_.from(start)), "", line);
  } else if (std::string_view("0123456789#?$!-").find(cursor_.peek()) != std::string_view::npos && !cursor_.at_end()) {
    add_variable(fields, quoted, std::string(1, cursor_.next()), "", line);
  } else {
    fields.add("$", line, quoted);
  }
}

void ShellWordReader::read_braces(FieldBuilder& fields, bool quoted, int line) {
  const std::size_t start = cursor_.at();
  const bool length = cursor_.peek() == '#' && cursor_.peek(1) != '}';
  if (length) cursor_.next();
  const std::size_t name_start = cursor_.at();
  if (is_name_start(cursor_.peek())) {
    while (is_name_part(cursor_.peek())) cursor_.next();
  } else {
    while (std::isdigit(static_cast<unsigned char>(cursor_.peek())) != 0) cursor_.next();
    if (cursor_.at() == name_start && (cursor_.peek() == '@' || cursor_.peek() == '*')) cursor_.next();
  }
  const std::string name(cursor_.from(name_start));
  std::string index;
  if (cursor_.peek() == '[') {
    cursor_.next();
    const std::size_t index_start = cursor_.at();
    while (!cursor_.at_end() && cursor_.peek() != ']' && cursor_.peek() != '\n') cursor_.next();
    index = cursor_.from(index_start);
    if (!cursor_.take("]")) cursor_.fail("no \"]\" closes the index that starts here", line);
  }
  if (length && cursor_.peek() == '}') {
    cursor_.next();
    const ShellVariable* variable = variables_.find(name);
    const bool counted = variable != nullptr && !index.empty() && variable->array &&
                         std::all_of(variable->elements.begin(), variable->elements.end(),
                                     [](const Pieces& element) { return first_unknown(element).empty(); });
    if (counted) return fields.add(std::to_string(variable->elements.size()), line, quoted);
    return add_unknown(fields, "#" + name, line);
  }
  if (cursor_.take("}")) return add_variable(fields, quoted, name, index, line);
  if (name.empty() || length) {
    cursor_.skip_balanced('{', '}');
    return add_unknown(fields, "${" + config::printable(cursor_.from(start), 40), line);
  }
  read_operator(fields, quoted, name, index, line);
}

// The cursor stands behind the name: :- and its relatives are read, anything else makes the value unknown.
void ShellWordReader::read_operator(FieldBuilder& fields, bool quoted, const std::string& name, std::string_view index,
                                    int line) {
  const bool colon = cursor_.peek() == ':';
  const char kind = cursor_.peek(colon ? 1 : 0);
  if (std::string_view("-=+?").find(kind) == std::string_view::npos || cursor_.at_end()) {
    cursor_.skip_balanced('{', '}');
    return add_unknown(fields, name, line);
  }
  cursor_.take(":");
  cursor_.next();
  const ShellVariable* variable = variables_.find(name);
  const bool empty = variable == nullptr || variable->elements.empty() || variable->elements.front().empty() ||
                     (text_of(variable->elements.front()).empty() && first_unknown(variable->elements.front()).empty());
  const bool set = variable != nullptr && !(colon && empty);
  if (set && kind != '+') {
    cursor_.skip_balanced('{', '}');
    return add_variable(fields, quoted, name, index, line);
  }
  if ((set && kind == '+') || (!set && (kind == '-' || kind == '='))) {
    read_default(fields, quoted, kind, name);
  } else {
    cursor_.skip_balanced('{', '}');
    if (kind == '?') add_unknown(fields, name, line);
  }
}

void ShellWordReader::read_default(FieldBuilder& fields, bool quoted, char kind, const std::string& name) {
  const int line = cursor_.line();
  FieldBuilder inner;
  read_word(inner, "}", !quoted);
  if (!cursor_.take("}")) cursor_.fail("no \"}\" closes what starts here", line);
  charge(inner.characters());
  Pieces value;
  for (const Pieces& field : inner.take()) {
    if (!value.empty()) value.push_back({" ", line, {}});
    value.insert(value.end(), field.begin(), field.end());
  }
  fields.add_expansion(value, quoted);
  if (kind == '=') variables_.assign(name, {{value}, false}, false);
}

void ShellWordReader::read_arithmetic(FieldBuilder& fields, bool quoted, int line) {
  const std::size_t start = cursor_.at();
  cursor_.skip_balanced('(', ')');
  const std::string_view text = cursor_.from(start);
  if (!cursor_.take(")")) cursor_.fail("no \"))\" closes the arithmetic that starts here", line);
  const NumberOf number_of = [this](const std::string& name) -> std::optional<std::int64_t> {
    const ShellVariable* variable = variables_.find(name);
    if (variable == nullptr || variable->elements.empty()) return std::nullopt;
    const Pieces& value = variable->elements.front();
    return first_unknown(value).empty() ? config::parse_integer(text_of(value)) : std::nullopt;
  };
  const ArithmeticResult result = evaluate_arithmetic(text.substr(0, text.size() - 1), number_of);
  if (result.value) return fields.add(std::to_string(*result.value), line, quoted);
  add_unknown(fields, result.unknown.empty() ? "$((...))" : result.unknown, line);
}

void ShellWordReader::add_variable(FieldBuilder& fields, bool quoted, const std::string& name, std::string_view index,
                                   int line) {
  if (name == "@" || name == "*") return;
  const ShellVariable* variable = variables_.find(name);
  if (variable == nullptr) return add_unknown(fields, name, line);
  const bool all = index == "@" || index == "*";
  if (!all) {
    const auto position = index.empty() ? std::optional<std::int64_t>(0) : config::parse_integer(index);
    const bool there = position && *position >= 0 && *position < static_cast<std::int64_t>(variable->elements.size());
    if (index.empty() && variable->elements.empty()) return;
    if (!there) return add_unknown(fields, name, line);
    return fields.add_expansion(variable->elements[static_cast<std::size_t>(*position)], quoted);
  }
  if (variable->elements.empty() && index == "@") fields.drop_empty();
  // "${A[*]}" is one word. A definition from outside is one text: as an array it is the words of it.
  const bool joined = quoted && index == "*";
  for (std::size_t i = 0; i < variable->elements.size(); ++i) {
    if (i > 0 && joined) fields.add(" ", line, true);
    if (i > 0 && !joined) fields.end_field();
    fields.add_expansion(variable->elements[i], quoted && variable->array);
  }
}

void ShellWordReader::add_unknown(FieldBuilder& fields, const std::string& name, int line) {
  fields.add_expansion({{"", line, name}}, true);
}

}  // namespace stepcast::imports
