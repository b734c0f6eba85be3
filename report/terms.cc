#include "report/terms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "config/text.h"
#include "report/json.h"
#include "report/terms_parts.h"
#include "report/text.h"

namespace stepcast::report {
namespace {

// Small letters, without what separates words.
std::string plain(std::string_view text) {
  std::string letters;
  for (const char c : text) {
    if (c == ' ' || c == '-' || c == '_') continue;
    letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return letters;
}

std::vector<std::string> aliases_of(const Term& term) {
  std::vector<std::string> aliases;
  std::string_view rest = term.aliases;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    std::string_view alias = rest.substr(0, comma);
    while (alias.starts_with(' ')) alias.remove_prefix(1);
    aliases.emplace_back(alias);
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  return aliases;
}

std::vector<Term> joined_tables() {
  std::vector<Term> terms;
  for (const std::span<const Term> table : {screen_terms(), key_terms(), program_terms()}) {
    terms.insert(terms.end(), table.begin(), table.end());
  }
  return terms;
}

// No two terms share a spelling.
const Term* find_whole(std::string_view name) {
  const std::span<const Term> terms = all_terms();
  const auto it = std::find_if(terms.begin(), terms.end(), [name](const Term& term) { return is_called(term, name); });
  return it == terms.end() ? nullptr : &*it;
}

}  // namespace

std::span<const Term> all_terms() {
  static const std::vector<Term> terms = joined_tables();
  return terms;
}

const Term* find_term(std::string_view name) {
  const Term* term = find_whole(name);
  for (std::size_t dot = name.find('.'); term == nullptr && dot != std::string_view::npos; dot = name.find('.')) {
    name.remove_prefix(dot + 1);
    term = find_whole(name);
  }
  return term;
}

bool is_called(const Term& term, std::string_view name) {
  const std::string wanted = plain(name);
  const std::vector<std::string> aliases = aliases_of(term);
  return plain(term.name) == wanted ||
         std::any_of(aliases.begin(), aliases.end(), [&](const std::string& a) { return plain(a) == wanted; });
}

std::vector<std::string> nearest_terms(std::string_view name) {
  std::vector<std::string> names;
  for (const Term& term : all_terms()) names.emplace_back(term.name);
  std::vector<std::string> nearest = config::nearest_names(name, names);
  const std::string wanted = plain(name);
  for (const std::string& known : names) {
    const bool contains = wanted.size() >= 2 && plain(known).find(wanted) != std::string::npos;
    if (contains && std::find(nearest.begin(), nearest.end(), known) == nearest.end()) nearest.push_back(known);
  }
  if (nearest.size() > 5) nearest.resize(5);
  return nearest;
}

std::string term_screen(const Term& term) {
  std::string text = std::string(term.name) + "\n\n" + wrapped("", 0, term.meaning);
  if (!term.formula.empty()) text += wrapped("formula", kLabelWidth, term.formula);
  text += wrapped("source", kLabelWidth, term.source);
  if (!term.aliases.empty()) text += wrapped("also", kLabelWidth, joined(aliases_of(term), ", "));
  return text;
}

std::string terms_list() {
  std::vector<std::string> names;
  for (const Term& term : all_terms()) names.emplace_back(term.name);
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) { return plain(a) < plain(b); });
  return wrapped("", 0, joined(names, ", ")) + "\nstepcast explain TERM explains one.\n";
}

std::string terms_json(std::span<const Term> terms) {
  Json list = Json::array();
  for (const Term& term : terms) {
    list.push_back({{"name", term.name},
                    {"aliases", aliases_of(term)},
                    {"meaning", term.meaning},
                    {"formula", term.formula},
                    {"source", term.source}});
  }
  return to_text(Json{{"schema", "stepcast/explain/1"}, {"terms", list}});
}

}  // namespace stepcast::report
