// The words of a shell script: quotes, escapes and expansions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "import/shell_text.h"

namespace stepcast::imports {

bool is_name_start(char c);
bool is_name_part(char c);

// A position in the script that counts lines.
class ShellCursor {
 public:
  ShellCursor(std::string_view text, std::string file, int line = 1)
      : text_(text), file_(std::move(file)), line_(line) {}

  bool at_end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool sees(std::string_view word) const { return text_.substr(at_, word.size()) == word; }
  char next();
  bool take(std::string_view word);
  // Blanks and line continuations.
  void skip_blanks();
  void skip_line();
  std::string_view rest_of_line() const;
  std::string_view from(std::size_t start) const { return text_.substr(start, at_ - start); }
  std::size_t at() const { return at_; }
  int line() const { return line_; }
  const std::string& file() const { return file_; }
  [[noreturn]] void fail(const std::string& message, int line) const;
  // Skips to the bracket that closes the one just read; quotes inside count as text.
  void skip_balanced(char open, char close);

 private:
  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0;
  int line_;
};

class ShellWordReader {
 public:
  ShellWordReader(ShellCursor& cursor, ShellVariables& variables) : cursor_(cursor), variables_(variables) {}

  // The fields of the word at the cursor, which stands on its first character. Ends at a blank or an operator.
  std::vector<Pieces> fields();
  // The word as one value, as assignments read it.
  Pieces value();
  // The words up to the ")" of an array whose "(" was read.
  ShellVariable array();

 private:
  void read_word(FieldBuilder& fields, std::string_view stops, bool split);
  void read_double_quotes(FieldBuilder& fields);
  void read_dollar(FieldBuilder& fields, bool quoted);
  void read_braces(FieldBuilder& fields, bool quoted, int line);
  void read_operator(FieldBuilder& fields, bool quoted, const std::string& name, std::string_view index, int line);
  void read_default(FieldBuilder& fields, bool quoted, char kind, const std::string& name);
  void read_arithmetic(FieldBuilder& fields, bool quoted, int line);
  void add_variable(FieldBuilder& fields, bool quoted, const std::string& name, std::string_view index, int line);
  void add_unknown(FieldBuilder& fields, const std::string& name, int line);
  // Text made by all expansions so far stays bounded.
  void charge(std::size_t characters);

  ShellCursor& cursor_;
  ShellVariables& variables_;
  std::size_t produced_ = 0;
  int nesting_ = 0;
};

}  // namespace stepcast::imports
