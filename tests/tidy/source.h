// A source file as the tidy rules see it: its text split into code, comments and include lines.
//
// A lexer of comments, strings and raw strings, no more: rules look for words, not for meaning.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepcast::tidy {

struct Include {
  int line = 0;
  std::string path;     // base/units.h, vector
  bool angled = false;  // <vector>, not "base/units.h"
};

// All texts have the lines of the file; what belongs elsewhere is blanked with spaces.
struct Source {
  std::string path;  // relative to the root: sim/engine/engine.cc
  std::string text;
  std::string code;      // without comments and the insides of strings
  std::string comments;  // only comments
  std::vector<Include> includes;
};

Source read_source(std::string path, std::string text);

// A function body: the line its head starts on, the line of its closing brace.
struct Function {
  int first_line = 0;
  int last_line = 0;
};

// The outermost functions, by braces: a '{' after a head with a parameter list that is not a type or a namespace.
std::vector<Function> functions_of(const Source& source);

std::vector<std::string_view> lines_of(std::string_view text);
bool is_word_character(char c);

// The name of the top folder: "sim" of sim/engine/engine.cc.
std::string_view folder_of(std::string_view path);

}  // namespace stepcast::tidy
