// The one exception type for what a user, a file or a device can cause: a list of problems, each with a location and
// help.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

namespace stepcast {

// What went wrong, by who has to act. The value is the exit code of the command line.
enum class ErrorKind : std::uint8_t {
  kSubject = 1,      // the subject fails: does not fit, over a threshold
  kUsage = 2,        // command-line usage
  kInput = 3,        // bad input: schema or rule violation
  kUnsupported = 4,  // known, not supported yet
  kEnvironment = 5,  // this machine lacks what was asked
  kExecution = 6,    // a real run failed
};

// Where a problem sits. Empty or zero parts are unknown. `field` is a dotted path such as plan.tp.
struct Location {
  std::string file;
  int line = 0;  // 1-based
  std::string field;
};

// One problem: what, where, and what would work (one line each).
struct Problem {
  ErrorKind kind = ErrorKind::kInput;
  std::string message;
  Location where;
  std::vector<std::string> help;
};

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message, Location where = {}, std::vector<std::string> help = {});
  explicit Error(std::vector<Problem> problems);  // at least one

  const std::vector<Problem>& problems() const { return problems_; }
  // kInput if any problem is kInput, else the kind of the first problem.
  ErrorKind kind() const;
  int exit_code() const { return static_cast<int>(kind()); }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::vector<Problem> problems_;
  std::string text_;
};

// One block per problem: "error: message", "  --> file:line: field", "  help: ...".
std::string to_text(const std::vector<Problem>& problems);

// Collects problems so that a reader can report all of them at once.
class ProblemList {
 public:
  void add(Problem problem) { problems_.push_back(std::move(problem)); }
  void add(ErrorKind kind, std::string message, Location where = {}, std::vector<std::string> help = {});
  void add_all(const ProblemList& others) {
    problems_.insert(problems_.end(), others.problems_.begin(), others.problems_.end());
  }
  bool empty() const { return problems_.empty(); }
  const std::vector<Problem>& problems() const { return problems_; }
  // Throws an Error with every problem, if there is one.
  void throw_if_any() const;

 private:
  std::vector<Problem> problems_;
};

}  // namespace stepcast
