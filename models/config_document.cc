// The JSON library reports lines for syntax errors only, so the input iterator counts newlines while the parser reads.
#include "models/config_document.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>

#include "base/error.h"

namespace stepcast::models {
namespace {

// Reads characters and keeps the number of the line reached in a counter that outlives the parser's copies of it.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, int* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    if (*at_ == '\n') ++*line_;
    ++at_;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  int* line_;
};

[[noreturn]] void throw_syntax_error(std::string_view text, const std::string& file, const Json::parse_error& e) {
  const std::size_t at = std::min(e.byte == 0 ? 0 : e.byte - 1, text.size());
  const std::string_view before = text.substr(0, at);
  const Location where{file, static_cast<int>(1 + std::count(before.begin(), before.end(), '\n')), ""};
  const std::string_view rest = text.substr(at);
  for (const std::string_view token : {"NaN", "Infinity"}) {
    if (rest.substr(0, token.size()) == token) {
      throw Error(ErrorKind::kInput, std::string(token) + " is not JSON", where, {"write a finite number"});
    }
  }
  // The library's message ends in the bytes last read, which may be anything: only its fixed part is passed on.
  std::string message = e.what();
  const std::size_t start = message.find("syntax error ");
  if (start != std::string::npos) message = message.substr(start);
  throw Error(ErrorKind::kInput, "not valid JSON: " + message.substr(0, message.find("; last read")), where);
}

}  // namespace

std::string printable(const Json& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  constexpr std::size_t kLongest = 60;
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

std::string printable_key(const std::string& key) {
  const std::string quoted = printable(Json(key));
  return quoted.size() >= 2 && quoted.back() == '"' ? quoted.substr(1, quoted.size() - 2) : quoted;
}

Document parse_document(std::string_view text, const std::string& file) {
  Document document;
  int line = 1;
  std::map<std::string, int> first_lines;
  const auto remember_keys = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key && depth == 1) {
      const auto [first, added] = first_lines.emplace(parsed.get<std::string>(), line);
      document.keys.push_back({first->first, line, first->second, !added});
    }
    return true;
  };
  const char* const begin = text.data();
  try {
    document.root =
        Json::parse(CountingIterator(begin, &line), CountingIterator(begin + text.size(), &line), remember_keys);
  } catch (const Json::parse_error& e) {
    throw_syntax_error(text, file, e);
  } catch (const Json::exception&) {
    // What remains is a number beyond the range of double.
    throw Error(ErrorKind::kInput, "a number is out of range", {file, line, ""});
  }
  if (!document.root.is_object()) {
    throw Error(ErrorKind::kInput, "expected an object of keys, found " + printable(document.root), {file, 1, ""});
  }
  return document;
}

}  // namespace stepcast::models
