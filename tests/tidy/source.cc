#include "tests/tidy/source.h"

#include <algorithm>
#include <utility>

namespace stepcast::tidy {
namespace {

enum class Part { kCode, kComment, kLiteral };

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n'; }

// Where the comment or literal that starts at `at` ends (one past its last character), and what it is.
struct Piece {
  Part part = Part::kCode;
  std::size_t end = 0;
};

std::size_t end_of_quoted(std::string_view text, std::size_t at) {
  const char quote = text[at];
  for (std::size_t i = at + 1; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      return i + 1;
    }
  }
  return at + 1;  // not closed: a stray quote
}

std::size_t end_after(std::string_view text, std::string_view mark, std::size_t from) {
  const std::size_t at = text.find(mark, from);
  return at == std::string_view::npos ? text.size() : at + mark.size();
}

Piece piece_at(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at);
  const bool after_word = at > 0 && is_word_character(text[at - 1]);
  if (rest.starts_with("//")) return {Part::kComment, std::min(text.find('\n', at), text.size())};
  if (rest.starts_with("/*")) return {Part::kComment, end_after(text, "*/", at + 2)};
  if (rest.starts_with("R\"") && !after_word) {
    const std::size_t open = text.find('(', at);
    if (open == std::string_view::npos) return {Part::kCode, at + 1};
    const std::string close = ")" + std::string(text.substr(at + 2, open - at - 2)) + "\"";
    return {Part::kLiteral, end_after(text, close, open)};
  }
  if (rest.front() == '"') return {Part::kLiteral, end_of_quoted(text, at)};
  // After a word character a ' separates digits: 1'000.
  if (rest.front() == '\'' && !after_word) return {Part::kLiteral, end_of_quoted(text, at)};
  return {Part::kCode, at + 1};
}

// `text` with everything but line ends blanked.
std::string blank(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c != '\n') c = ' ';
  }
  return result;
}

std::vector<Include> includes_of(std::string_view text) {
  std::vector<Include> includes;
  int number = 0;
  for (const std::string_view line : lines_of(text)) {
    ++number;
    if (!line.starts_with("#include ")) continue;
    const std::size_t open = line.find_first_of("<\"");
    if (open == std::string_view::npos) continue;
    const std::size_t close = line.find(line[open] == '<' ? '>' : '"', open + 1);
    if (close == std::string_view::npos) continue;
    includes.push_back({number, std::string(line.substr(open + 1, close - open - 1)), line[open] == '<'});
  }
  return includes;
}

// Code without preprocessor lines, whose braces need not balance.
std::string without_directives(std::string_view code) {
  std::string result;
  bool directive = false;
  for (const std::string_view line : lines_of(code)) {
    const std::size_t first = line.find_first_not_of(' ');
    directive = directive || (first != std::string_view::npos && line[first] == '#');
    result += directive ? blank(line) : std::string(line);
    result += '\n';
    directive = directive && line.ends_with('\\');
  }
  return result;
}

void drop_prefix(std::string_view& head, std::string_view prefix) {
  if (head.starts_with(prefix)) head.remove_prefix(prefix.size());
}

// Skips spaces, access labels, attributes and template<...> in front of a declaration.
std::string_view declaration_of(std::string_view head) {
  for (std::size_t before = 0; before != head.size();) {
    before = head.size();
    while (!head.empty() && is_space(head.front())) head.remove_prefix(1);
    for (const char* label : {"public:", "private:", "protected:", "inline ", "extern ", "export "}) {
      drop_prefix(head, label);
    }
    if (head.starts_with("[[")) head.remove_prefix(end_after(head, "]]", 0));
    if (head.starts_with("template")) {
      int depth = 0;
      for (std::size_t i = 8; i < head.size(); ++i) {
        depth += head[i] == '<' ? 1 : (head[i] == '>' ? -1 : 0);
        if (head[i] == '>' && depth == 0) {
          head.remove_prefix(i + 1);
          break;
        }
      }
    }
  }
  return head;
}

bool is_function_head(std::string_view head) {
  const std::string_view declaration = declaration_of(head);
  for (const char* word : {"namespace", "class ", "struct ", "union ", "enum "}) {
    if (declaration.starts_with(word)) return false;
  }
  const std::size_t open = declaration.find('(');
  if (open == std::string_view::npos) return false;
  const std::string_view before = declaration.substr(0, open);
  return before.find('=') == std::string_view::npos || before.find("operator") != std::string_view::npos;
}

// Walks the braces of a file.
class Walker {
 public:
  std::vector<Function> walk(std::string_view code) {
    for (std::size_t i = 0; i < code.size(); ++i) step(code, i);
    return std::move(functions_);
  }

 private:
  void step(std::string_view code, std::size_t i) {
    const char c = code[i];
    if (c == '\n') ++line_;
    if (c == '{') {
      open(code, i);
    } else if (c == '}') {
      close(code, i);
    } else if (c == ';' && function_depth_ == 0) {
      head_ = i + 1;
    }
  }

  void open(std::string_view code, std::size_t i) {
    ++depth_;
    if (function_depth_ != 0) return;
    const std::string_view head = code.substr(head_, i - head_);
    if (!is_function_head(head)) {
      head_ = i + 1;
      return;
    }
    const auto start = declaration_of(head);
    function_depth_ = depth_;
    first_line_ = line_ - static_cast<int>(std::count(start.begin(), start.end(), '\n'));
  }

  void close(std::string_view code, std::size_t i) {
    if (depth_ == function_depth_) {
      function_depth_ = 0;
      const std::size_t next = code.find_first_not_of(" \n", i + 1);
      // `a_{1}, b_{2} {`: a brace of a constructor's initialisers, its body still to come.
      if (next != std::string_view::npos && (code[next] == ',' || code[next] == '{')) {
        --depth_;
        return;
      }
      functions_.push_back({first_line_, line_});
    }
    if (function_depth_ == 0) head_ = i + 1;
    --depth_;
  }

  std::vector<Function> functions_;
  std::size_t head_ = 0;
  int line_ = 1;
  int first_line_ = 0;
  int depth_ = 0;
  int function_depth_ = 0;  // 0: outside of functions
};

}  // namespace

bool is_word_character(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::string_view folder_of(std::string_view path) { return path.substr(0, path.find('/')); }

Source read_source(std::string path, std::string text) {
  Source source{.path = std::move(path), .text = std::move(text), .code = {}, .comments = {}, .includes = {}};
  const std::string_view all = source.text;
  for (std::size_t at = 0; at < all.size();) {
    const Piece piece = piece_at(all, at);
    const std::string_view body = all.substr(at, piece.end - at);
    source.code += piece.part == Part::kCode ? std::string(body) : blank(body);
    source.comments += piece.part == Part::kComment ? std::string(body) : blank(body);
    at = piece.end;
  }
  source.includes = includes_of(source.text);
  return source;
}

std::vector<Function> functions_of(const Source& source) { return Walker().walk(without_directives(source.code)); }

}  // namespace stepcast::tidy
