// The words that screens, tables and warnings use, each explained once, with its formula and where that comes from.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::report {

struct Term {
  std::string_view name;     // as it is printed
  std::string_view aliases;  // other words for it, separated by commas
  std::string_view meaning;
  std::string_view formula;  // empty where there is none
  std::string_view source;   // a paper, a manual, or the folder of this program that defines it
};

// By topic.
std::span<const Term> all_terms();

// The term called `name` or with that alias; upper and lower case, spaces, - and _ are alike. Of a path with dots, such
// as a key of a scenario, the longest end that is a term. Null: unknown.
const Term* find_term(std::string_view name);
// Whether the term has this name or alias, spelt as above.
bool is_called(const Term& term, std::string_view name);
// Names near to `name`, nearest first.
std::vector<std::string> nearest_terms(std::string_view name);

// One term, or the list of all names; ends in a newline.
std::string term_screen(const Term& term);
std::string terms_list();
// Schema stepcast/explain/1: {schema, terms [{name, aliases, meaning, formula, source}]}.
std::string terms_json(std::span<const Term> terms);

}  // namespace stepcast::report
