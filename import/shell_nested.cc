// A text is read character by character, with the line of each and the places of what has no value.
#include "import/shell_nested.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "import/shell_words.h"

namespace stepcast::imports {
namespace {

constexpr std::string_view kNestedEnds = ";|&()\n";
constexpr std::size_t kMostNested = std::size_t{4} << 20;  // beyond, variables are unknown

struct Character {
  char text = '\0';
  int line = 0;
  const Piece* unknown = nullptr;  // instead of a character
};

class NestedReader {
 public:
  NestedReader(const ShellWord& word, const ShellVariables& variables) : variables_(variables) {
    for (const Piece& piece : word.pieces) {
      if (!piece.unknown.empty()) text_.push_back({'\0', piece.line, &piece});
      for (const char c : piece.text) text_.push_back({c, piece.line, nullptr});
    }
  }

  std::vector<std::vector<ShellWord>> run() {
    while (at_ < text_.size()) step();
    end_command();
    return std::move(commands_);
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() && text_[at_ + ahead].unknown == nullptr ? text_[at_ + ahead].text : '\0';
  }
  int line() const { return text_[std::min(at_, text_.size() - 1)].line; }
  bool blank(char c) const { return c == ' ' || c == '\t' || c == '\r'; }

  void step() {
    const Character here = text_[at_];
    if (here.unknown != nullptr) {
      fields_.add_expansion({*here.unknown}, true);
      word_ = true;
      ++at_;
    } else if (here.text == '\\') {
      read_escape();
    } else if (here.text == '$') {
      read_dollar();
    } else if (here.text == '`') {
      skip_to('`');
      fields_.add_expansion({{"", here.line, "`...`"}}, true);
    } else if (here.text == '"') {
      quoted_ = !quoted_;
      if (quoted_) add("", here.line, true);
      ++at_;
    } else if (quoted_) {
      add(std::string(1, here.text), here.line, true);
      ++at_;
    } else {
      step_unquoted(here);
    }
  }

  void step_unquoted(const Character& here) {
    if (here.text == '\'') {
      add("", here.line, true);
      for (++at_; at_ < text_.size() && peek() != '\''; ++at_) add_character();
      ++at_;
    } else if (redirects()) {
      skip_redirection();
    } else if (blank(here.text)) {
      end_field();
      ++at_;
    } else if (here.text == '#' && !word_) {
      while (at_ < text_.size() && peek() != '\n') ++at_;
    } else if (kNestedEnds.find(here.text) != std::string_view::npos) {
      end_command();
      ++at_;
    } else {
      add(std::string(1, here.text), here.line, false);
      ++at_;
    }
  }

  void add(const std::string& text, int line, bool quoted) {
    fields_.add(text, line, quoted);
    word_ = true;
  }

  // Inside single quotes: as it stands.
  void add_character() {
    const Character& here = text_[at_];
    if (here.unknown != nullptr) return fields_.add_expansion({*here.unknown}, true);
    add(std::string(1, here.text), here.line, true);
  }

  void read_escape() {
    const int line = text_[at_++].line;
    const char c = peek();
    if (quoted_ && std::string_view("\"\\$`\n").find(c) == std::string_view::npos) return add("\\", line, true);
    if (c != '\n' && c != '\0') add(std::string(1, c), line, true);
    if (c != '\0') ++at_;
  }

  // "2>", ">" and "&>"; digits count where they start a word.
  bool redirects() const {
    std::size_t ahead = 0;
    while (!word_ && peek(ahead) >= '0' && peek(ahead) <= '9') ++ahead;
    if (ahead == 0 && peek() == '&') return peek(1) == '>';
    return peek(ahead) == '>' || peek(ahead) == '<';
  }

  void skip_redirection() {
    end_field();
    while (peek() != '>' && peek() != '<') ++at_;
    while (peek() == '>' || peek() == '<' || peek() == '&') ++at_;
    while (blank(peek())) ++at_;
    while (at_ < text_.size() && !blank(peek()) && kNestedEnds.find(peek()) == std::string_view::npos) ++at_;
  }

  // To behind the next `close`.
  std::string skip_to(char close) {
    std::string skipped;
    for (++at_; at_ < text_.size() && peek() != close; ++at_) skipped += peek();
    ++at_;
    return skipped;
  }

  void read_dollar() {
    const int line = text_[at_++].line;
    const char c = peek();
    if (c == '(') {
      int depth = 0;
      do {
        depth += peek() == '(' ? 1 : peek() == ')' ? -1 : 0;
        ++at_;
      } while (at_ < text_.size() && depth > 0);
      fields_.add_expansion({{"", line, "$(...)"}}, true);
      word_ = true;
    } else if (c == '{') {
      const std::string inner = skip_to('}');
      const auto end = std::find_if_not(inner.begin(), inner.end(), is_name_part);
      const std::string name(inner.begin(), end);
      std::string rest(end, inner.end());
      const bool otherwise = rest.starts_with(":-");
      expand(name, otherwise ? rest.substr(2) : "", otherwise, line);
    } else if (is_name_start(c)) {
      std::string name;
      for (; is_name_part(peek()); ++at_) name += peek();
      expand(name, "", false, line);
    } else if (c == '@' || c == '*' || (c >= '0' && c <= '9')) {
      ++at_;  // a parameter of the text: its words are put behind the command
      if (quoted_) fields_.drop_empty();
    } else {
      add("$", line, quoted_);
    }
  }

  void expand(const std::string& name, const std::string& otherwise, bool has_otherwise, int line) {
    const ShellVariable* variable = variables_.find(name);
    if (fields_.characters() > kMostNested) variable = nullptr;
    const bool known = variable != nullptr && !variable->array && !variable->elements.empty();
    word_ = word_ || quoted_ || known;
    if (known) return fields_.add_expansion(variable->elements.front(), quoted_);
    if (has_otherwise) return fields_.add_expansion({{otherwise, line, {}}}, quoted_);
    word_ = true;
    fields_.add_expansion({{"", line, name.empty() ? "${...}" : name}}, true);
  }

  void end_field() {
    fields_.end_field();
    word_ = false;
  }

  void end_command() {
    std::vector<ShellWord> words;
    for (const Pieces& field : fields_.take()) words.push_back(word_of(field, field.empty() ? 0 : field.front().line));
    if (!words.empty()) commands_.push_back(std::move(words));
    word_ = false;
  }

  const ShellVariables& variables_;
  std::vector<Character> text_;
  std::size_t at_ = 0;
  bool quoted_ = false;
  bool word_ = false;  // the current word has begun
  FieldBuilder fields_;
  std::vector<std::vector<ShellWord>> commands_;
};

bool is_shell(std::string_view word) {
  constexpr std::array<std::string_view, 5> kShells = {"bash", "sh", "zsh", "dash", "ksh"};
  return std::find(kShells.begin(), kShells.end(), word.substr(word.rfind('/') + 1)) != kShells.end();
}

// "-c", "-lc": the next word is a text of commands.
bool takes_text(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && word[1] != '-' && word.ends_with('c');
}

// The word that holds commands; words.size() without one. `text_of_shell` where a shell's option says so.
std::size_t nested_at(const std::vector<ShellWord>& words, bool& text_of_shell) {
  bool shell = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& text = words[i].text;
    const bool program = text.find(".py") != std::string::npos || text.find("torchrun") != std::string::npos;
    const bool several = text.find(' ') != std::string::npos;
    text_of_shell = shell && i > 0 && takes_text(words[i - 1].text);
    if (program && several && (text_of_shell || text.find("--") != std::string::npos)) return i;
    shell = shell || is_shell(text);
  }
  return words.size();
}

bool uses_parameters(std::string_view text) {
  for (const std::string_view parameter : {"$@", "$*", "${@", "${*", "$0", "$1", "${1"}) {
    if (text.find(parameter) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

OpenedCommand open_command(const ShellCommand& command, const ShellVariables& variables) {
  bool text_of_shell = false;
  const std::size_t at = nested_at(command.words, text_of_shell);
  if (at == command.words.size()) return {{command.words}, {}};
  const auto first = command.words.begin() + static_cast<std::ptrdiff_t>(at);
  ShellWord text = *first;
  OpenedCommand opened;
  std::vector<ShellWord> parameters;
  if (!text_of_shell) {  // ssh and eval read all their words as one text
    for (auto word = first + 1; word != command.words.end(); ++word) {
      text.pieces.push_back({" ", word->line, {}});
      text.pieces.insert(text.pieces.end(), word->pieces.begin(), word->pieces.end());
    }
  } else if (uses_parameters(text.text)) {
    // The first of them is $0.
    if (first + 1 != command.words.end()) parameters.assign(first + 2, command.words.end());
  } else {
    std::copy_if(first + 1, command.words.end(), std::back_inserter(opened.lost), [](const ShellWord& word) {
      return word.text.starts_with("--") || word.text.find(" --") != std::string::npos;
    });
  }
  for (const std::vector<ShellWord>& nested : NestedReader(text, variables).run()) {
    opened.commands.emplace_back(command.words.begin(), first);
    std::vector<ShellWord>& words = opened.commands.back();
    words.insert(words.end(), nested.begin(), nested.end());
    words.insert(words.end(), parameters.begin(), parameters.end());
  }
  return opened;
}

}  // namespace stepcast::imports
