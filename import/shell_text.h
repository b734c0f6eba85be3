// What a shell script's words are made of while it is read: pieces of text that remember their line, and places where a
// variable has no value.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::imports {

// Characters from one line of the script; or, with `unknown`, the place of a variable (or another expansion) whose
// value only a run of the script would tell.
struct Piece {
  std::string text;
  int line = 0;
  std::string unknown;
  bool hides = false;  // arguments of a program may stand there, not just a part of one value
};
using Pieces = std::vector<Piece>;

// One word after expansion.
struct ShellWord {
  std::string text;
  int line = 0;
  std::vector<std::string> unknown;  // what is missing in the text, by name, in order
  Pieces pieces;
  bool hides = false;
};
ShellWord word_of(const Pieces& pieces, int line);
std::string text_of(const Pieces& pieces);
// The first missing name, empty when nothing is missing.
std::string first_unknown(const Pieces& pieces);

// A scalar has one element.
struct ShellVariable {
  std::vector<Pieces> elements;
  bool array = false;
};

// The variables of a script as it is read from top to bottom. A definition given from outside wins over every
// assignment.
class ShellVariables {
 public:
  explicit ShellVariables(const std::map<std::string, std::string>& defines);

  const ShellVariable* find(std::string_view name) const;
  void assign(const std::string& name, ShellVariable value, bool append);
  // From here on nothing is known about it: it is set by a loop or by a command.
  void forget(const std::string& name, int line);
  // It is not given `value`, in a branch that does not run: arguments that only such branches set are none.
  void skip(const std::string& name, const ShellVariable& value);
  // It may have been given `value`: what it holds stays, with the place of `cause`, the variable that would tell.
  void doubt(const std::string& name, const ShellVariable& value, int line, const std::string& cause);

 private:
  std::map<std::string, ShellVariable, std::less<>> variables_;
  std::map<std::string, bool, std::less<>> fixed_;
};

// Collects the fields that one written word becomes: unquoted expansions are split at blanks, an array makes a field
// per element.
class FieldBuilder {
 public:
  void add(std::string_view text, int line, bool quoted);
  void add_expansion(const Pieces& value, bool quoted);
  void end_field();
  // "${A[@]}" of an empty array is no field, although it is quoted.
  void drop_empty() { open_ = open_ && !current_.empty(); }
  // Ends the word and gives its fields; a quoted empty word is a field.
  std::vector<Pieces> take();
  std::size_t characters() const { return characters_; }

 private:
  void add_split(const Piece& piece);

  std::vector<Pieces> fields_;
  Pieces current_;
  bool open_ = false;  // the current field exists, even if it is empty
  std::size_t characters_ = 0;
};

}  // namespace stepcast::imports
