// Which branches of a script are taken, as far as that can be told without running it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/shell_text.h"

namespace stepcast::imports {

// What a test says. `causes` are the variables without a value that would tell; empty where something else decides,
// such as a file that exists.
struct ShellOutcome {
  std::optional<bool> holds;
  std::vector<std::string> causes;
};

// The outcome of a command used as a condition: true, false, `[ ... ]`, `test ...`, or the words between [[ and ]]
// after the word "[[". Read: one comparison of texts or numbers, -z, -n, and "!" in front; everything else is open.
ShellOutcome outcome_of(const std::vector<ShellWord>& words);

// The blocks that are open, and the list of commands joined by && and || that is being read.
class ShellBlocks {
 public:
  // `end` is the word that ends it: "fi", "done", "esac", "}" of a function; "group" for a plain { ... }. `causes` are
  // variables that decide what happens inside.
  void open(std::string_view end, const std::vector<std::string>& causes = {});
  void close();
  // At "then"; at "elif" and "else".
  void enter_branch();
  void next_branch(bool has_condition);
  void negate() { negates_ = true; }
  void take_outcome(ShellOutcome outcome);
  void join_list(bool with_and);
  void end_list();

  bool skipped() const;   // what is read now does not run
  bool doubtful() const;  // whether it runs is not known
  // The first variable that would tell; empty when none would.
  std::string cause() const;

 private:
  enum class Runs : std::uint8_t { kYes, kNo, kUnknown };
  struct Block {
    std::string end;
    Runs runs = Runs::kUnknown;
    std::vector<std::string> causes;
    bool taken = false;  // an earlier branch runs for sure
    bool open = false;   // an earlier branch may run
  };

  std::vector<Block> blocks_;
  ShellOutcome status_;
  std::optional<bool> joined_with_and_;
  Runs list_ = Runs::kYes;
  bool negates_ = false;
};

}  // namespace stepcast::imports
