// The commands of a script, in order. Branches that are not taken are skipped; what a branch or a loop sets that may or
// may not run is in doubt.
#include "import/shell.h"

#include <algorithm>
#include <array>
#include <utility>

#include "import/shell_conditions.h"
#include "import/shell_words.h"

namespace stepcast::imports {
namespace {

class ShellReader {
 public:
  ShellReader(std::string_view text, const std::string& file, const std::map<std::string, std::string>& defines)
      : cursor_(text, file), variables_(defines), words_(cursor_, variables_) {}

  ShellScript run() {
    while (!cursor_.at_end()) step();
    end_list();
    script_.variables = variables_;
    return std::move(script_);
  }

 private:
  void step() {
    cursor_.skip_blanks();
    if (cursor_.at_end()) return;
    const char c = cursor_.peek();
    if (c == '#') {
      read_comment();
    } else if (c == '\n') {
      cursor_.next();
      skip_here_documents();
      end_list();
    } else if (cursor_.sees("&&") || cursor_.sees("||")) {
      const bool with_and = cursor_.next() == '&';
      cursor_.next();
      end_command();
      blocks_.join_list(with_and);
    } else if (is_redirection()) {
      read_redirection();
    } else if (at_command_start() && cursor_.sees("((")) {
      read_test();
    } else if (std::string_view(";|&()").find(c) != std::string_view::npos) {
      cursor_.next();
      end_list();
    } else if (!(at_command_start() && read_block_word()) && !read_assignment()) {
      // if, for, [[ and so on are no commands; assignments are taken into the variables.
      read_words();
    }
  }

  bool at_command_start() const { return command_.words.empty(); }

  void end_command() {
    if (!command_.words.empty()) {
      blocks_.take_outcome(outcome_of(command_.words));
      if (!blocks_.skipped()) script_.commands.push_back(std::move(command_));
    }
    command_ = {};
    declares_ = false;
    exports_ = false;
  }

  void end_list() {
    end_command();
    blocks_.end_list();
  }

  void read_comment() {
    const std::string_view line = cursor_.rest_of_line();
    constexpr std::string_view kSlurm = "#SBATCH";
    if (line.starts_with(kSlurm)) {
      for (ShellWord& word :
           split_words({{}, cursor_.line(), {}, {{std::string(line.substr(kSlurm.size())), cursor_.line(), {}}}})) {
        if (word.text.starts_with('#')) break;
        script_.slurm.push_back(std::move(word));
      }
    }
    cursor_.skip_line();
  }

  bool is_redirection() const {
    std::size_t ahead = 0;
    while (cursor_.peek(ahead) >= '0' && cursor_.peek(ahead) <= '9') ++ahead;
    const char c = cursor_.peek(ahead);
    return c == '<' || c == '>' || (ahead == 0 && c == '&' && cursor_.peek(1) == '>');
  }

  void read_redirection() {
    while (cursor_.peek() != '<' && cursor_.peek() != '>') cursor_.next();
    const char direction = cursor_.next();
    if (cursor_.take("(")) return cursor_.skip_balanced('(', ')');
    const bool here = direction == '<' && cursor_.take("<");
    const bool here_string = here && cursor_.take("<");
    const bool tabs = here && !here_string && cursor_.take("-");
    while (cursor_.peek() == '>' || cursor_.peek() == '&' || cursor_.peek() == '|') cursor_.next();
    cursor_.skip_blanks();
    if (cursor_.at_end() || cursor_.peek() == '\n') return;
    const std::string word = text_of(words_.value());
    if (here && !here_string) here_documents_.emplace_back(word, tabs);
  }

  void skip_here_documents() {
    for (const auto& [end, tabs] : std::exchange(here_documents_, {})) {
      while (!cursor_.at_end()) {
        std::string_view line = cursor_.rest_of_line();
        while (tabs && line.starts_with('\t')) line.remove_prefix(1);
        if (line.ends_with('\r')) line.remove_suffix(1);
        const bool done = line == end;
        cursor_.skip_line();
        if (!cursor_.at_end()) cursor_.next();
        if (done) break;
      }
    }
  }

  bool take_reserved(std::string_view word) {
    const char after = cursor_.peek(word.size());
    const bool ends = after == '\0' || std::string_view(" \t\r\n;&|()").find(after) != std::string_view::npos;
    return ends && cursor_.take(word);
  }

  bool read_block_word() {
    struct Opening {
      std::string_view word;
      std::string_view end;
    };
    constexpr std::array<Opening, 6> kOpenings = {
        {{"if", "fi"}, {"while", "done"}, {"until", "done"}, {"for", "done"}, {"select", "done"}, {"case", "esac"}}};
    for (const Opening& opening : kOpenings) {
      if (!take_reserved(opening.word)) continue;
      blocks_.open(opening.end, opening.word == "case" ? read_case_head() : std::vector<std::string>());
      if (opening.word == "for" || opening.word == "select") read_loop_head();
      return true;
    }
    for (const std::string_view end : {"fi", "done", "esac", "}"}) {
      if (!take_reserved(end)) continue;
      blocks_.close();
      return true;
    }
    if (take_reserved("{")) {
      blocks_.open(std::exchange(function_, false) ? "}" : "group");
      return true;
    }
    return read_branch_word() || read_test() || read_function();
  }

  bool read_branch_word() {
    if (take_reserved("then")) {
      blocks_.enter_branch();
    } else if (take_reserved("elif")) {
      blocks_.next_branch(true);
    } else if (take_reserved("else")) {
      blocks_.next_branch(false);
    } else if (take_reserved("!")) {
      blocks_.negate();
    } else {
      return take_reserved("do") || take_reserved("time");
    }
    return true;
  }

  // "case $NAME in": the variables that choose.
  std::vector<std::string> read_case_head() {
    cursor_.skip_blanks();
    const ShellWord word = word_of(words_.value(), cursor_.line());
    cursor_.skip_line();
    return word.unknown;
  }

  void forget(const std::string& name, int line) {
    if (!blocks_.skipped()) variables_.forget(name, line);
  }

  void read_loop_head() {
    cursor_.skip_blanks();
    const std::size_t start = cursor_.at();
    while (is_name_part(cursor_.peek())) cursor_.next();
    const std::string name(cursor_.from(start));
    if (!name.empty()) forget(name, cursor_.line());
    while (!cursor_.at_end() && cursor_.peek() != '\n' && cursor_.peek() != ';') cursor_.next();
  }

  // [[ ... ]] and (( ... )) have operators of their own.
  bool read_test() {
    if (cursor_.take("((")) {
      const std::size_t start = cursor_.at();
      cursor_.skip_balanced('(', ')');
      blocks_.take_outcome({std::nullopt, names_without_value(cursor_.from(start))});
      return true;
    }
    if (!take_reserved("[[")) return false;
    std::vector<ShellWord> words{{"[[", cursor_.line(), {}, {}}};
    while (!cursor_.at_end() && !cursor_.take("]]")) {
      const bool apart = std::string_view(" \t\r\n\\").find(cursor_.peek()) != std::string_view::npos;
      const bool operates = std::string_view(";&|()<>").find(cursor_.peek()) != std::string_view::npos;
      if (apart || operates) {
        const char c = cursor_.next();
        if (operates) words.push_back({std::string(1, c), cursor_.line(), {}, {}});
      } else {
        words.push_back(word_of(words_.value(), cursor_.line()));
      }
    }
    blocks_.take_outcome(outcome_of(words));
    return true;
  }

  std::vector<std::string> names_without_value(std::string_view text) const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (!is_name_start(text[i])) continue;
      const std::size_t start = i;
      while (i < text.size() && is_name_part(text[i])) ++i;
      std::string name(text.substr(start, i - start));
      if (variables_.find(name) == nullptr) names.push_back(std::move(name));
    }
    return names;
  }

  // "name() {" and "function name {": the body runs only where it is called, if at all.
  bool read_function() {
    const bool word = take_reserved("function");
    if (word) cursor_.skip_blanks();
    std::size_t length = 0;
    while (is_name_part(cursor_.peek(length)) || (length > 0 && cursor_.peek(length) == '-')) ++length;
    const bool brackets = length > 0 && cursor_.peek(length) == '(' && cursor_.peek(length + 1) == ')';
    if (!word && !brackets) return false;
    for (std::size_t i = 0; i < length + (brackets ? 2 : 0); ++i) cursor_.next();
    function_ = true;
    while (!cursor_.at_end() && (cursor_.peek() == '\n' || cursor_.peek() == ' ')) cursor_.next();
    return true;
  }

  // NAME=value, NAME+=value, NAME=( ... ), NAME[i]=value: before a command, or as an argument of declare and the like.
  bool read_assignment() {
    if (!at_command_start() && !declares_) return false;
    std::size_t length = 0;
    if (!is_name_start(cursor_.peek())) return false;
    while (is_name_part(cursor_.peek(length))) ++length;
    std::size_t operator_at = length;
    const bool indexed = cursor_.peek(length) == '[';
    if (indexed) {
      while (cursor_.peek(operator_at) != ']' && cursor_.peek(operator_at) != '\0' &&
             cursor_.peek(operator_at) != '\n') {
        ++operator_at;
      }
      ++operator_at;
    }
    const bool append = cursor_.peek(operator_at) == '+';
    if (cursor_.peek(operator_at + (append ? 1 : 0)) != '=') return false;
    const std::size_t start = cursor_.at();
    for (std::size_t i = 0; i < length; ++i) cursor_.next();
    const std::string name(cursor_.from(start));
    for (std::size_t i = length; i < operator_at + (append ? 2 : 1); ++i) cursor_.next();
    assign(name, append, indexed);
    return true;
  }

  void assign(const std::string& name, bool append, bool indexed) {
    const int line = cursor_.line();
    ShellVariable value = cursor_.take("(") ? words_.array() : ShellVariable{{words_.value()}, false};
    // What only a run would tell is asked for under the name it is given here.
    for (Pieces& element : value.elements) {
      for (Piece& piece : element) {
        if (piece.unknown.starts_with('$') || piece.unknown.starts_with('`')) piece.unknown = name;
      }
    }
    if (blocks_.skipped()) return variables_.skip(name, value);
    if (indexed) {
      variables_.forget(name, line);
    } else if (blocks_.doubtful()) {
      const std::string cause = blocks_.cause();
      variables_.doubt(name, value, line, cause.empty() ? name : cause);
    } else {
      variables_.assign(name, std::move(value), append);
    }
    const ShellVariable* now = variables_.find(name);
    if ((exports_ || !declares_) && now != nullptr && !now->elements.empty() && !now->array) {
      script_.environment.emplace_back(name, word_of(now->elements.front(), line));
    }
  }

  void read_words() {
    const int line = cursor_.line();
    const std::size_t start = cursor_.at();
    std::vector<Pieces> fields = words_.fields();
    if (cursor_.at() == start) {  // no character of a word: skipped, so that every step makes progress
      cursor_.next();
      return;
    }
    if (at_command_start()) {
      command_.line = line;
      const std::string first = fields.empty() ? "" : text_of(fields.front());
      exports_ = first == "export";
      declares_ = exports_ || first == "declare" || first == "local" || first == "readonly" || first == "typeset";
      if (first == "read" || first == "mapfile") declares_ = false;
    } else if (command_.words.front().text == "read" && fields.size() == 1) {
      forget(text_of(fields.front()), line);
    }
    for (const Pieces& field : fields) command_.words.push_back(word_of(field, line));
  }

  ShellCursor cursor_;
  ShellVariables variables_;
  ShellWordReader words_;
  ShellScript script_;
  ShellCommand command_;
  ShellBlocks blocks_;
  std::vector<std::pair<std::string, bool>> here_documents_;  // the ending line, and whether tabs before it count
  bool function_ = false;
  bool declares_ = false;
  bool exports_ = false;
};

}  // namespace

ShellScript read_shell(std::string_view text, const std::string& file,
                       const std::map<std::string, std::string>& defines) {
  return ShellReader(text, file, defines).run();
}

std::vector<ShellWord> split_words(const ShellWord& text) {
  FieldBuilder fields;
  char quote = '\0';
  for (const Piece& piece : text.pieces) {
    if (!piece.unknown.empty()) fields.add_expansion({piece}, true);
    for (const char c : piece.text) {
      if (quote == '\0' && (c == '\'' || c == '"')) {
        quote = c;
        fields.add("", piece.line, true);
      } else if (c == quote) {
        quote = '\0';
      } else {
        fields.add_expansion({{std::string(1, c), piece.line, {}}}, quote != '\0');
      }
    }
  }
  std::vector<ShellWord> words;
  for (const Pieces& field : fields.take()) words.push_back(word_of(field, text.line));
  return words;
}

}  // namespace stepcast::imports
