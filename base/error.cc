#include "base/error.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace stepcast {
namespace {

std::string place_of(const Location& where) {
  std::string place = where.file;
  if (where.line > 0) place += ":" + std::to_string(where.line);
  if (!where.field.empty()) place += (place.empty() ? "" : ": ") + where.field;
  return place;
}

}  // namespace

Error::Error(ErrorKind kind, std::string message, Location where, std::vector<std::string> help)
    : Error(std::vector<Problem>{Problem{kind, std::move(message), std::move(where), std::move(help)}}) {}

Error::Error(std::vector<Problem> problems) : problems_(std::move(problems)), text_(to_text(problems_)) {
  CHECK(!problems_.empty());
}

ErrorKind Error::kind() const {
  const bool input =
      std::any_of(problems_.begin(), problems_.end(), [](const Problem& p) { return p.kind == ErrorKind::kInput; });
  return input ? ErrorKind::kInput : problems_.front().kind;
}

std::string to_text(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) {
    text += (problem.kind == ErrorKind::kUnsupported ? "not supported yet: " : "error: ") + problem.message + "\n";
    const std::string place = place_of(problem.where);
    if (!place.empty()) text += "  --> " + place + "\n";
    for (const std::string& line : problem.help) text += "  help: " + line + "\n";
  }
  return text;
}

void ProblemList::add(ErrorKind kind, std::string message, Location where, std::vector<std::string> help) {
  problems_.push_back(Problem{kind, std::move(message), std::move(where), std::move(help)});
}

void ProblemList::throw_if_any() const {
  if (!problems_.empty()) throw Error(problems_);
}

}  // namespace stepcast
