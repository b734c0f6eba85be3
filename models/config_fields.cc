// A key may have several names; the first one that stands in the file is the one messages point at.
#include "models/config_fields.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace stepcast::models {
namespace {

// Whether an integer of the file, which may be unsigned, is one of ours.
bool fits(const Json& value) {
  constexpr auto kTop = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return !value.is_number_unsigned() || value.get<std::uint64_t>() <= kTop;
}

}  // namespace

std::vector<std::string> Fields::names_of(const std::string& key) const {
  std::vector<std::string> names = {key};
  for (const Alias& alias : aliases_) {
    if (alias.key == key) names.emplace_back(alias.other);
  }
  return names;
}

std::vector<std::string> Fields::present_names(const std::string& key) const {
  std::vector<std::string> names = names_of(key);
  std::erase_if(names, [&](const std::string& name) {
    const auto found = document_.root.find(name);
    return found == document_.root.end() || found->is_null();
  });
  return names;
}

Location Fields::where(const std::string& key) const {
  const std::vector<std::string> present = present_names(key);
  return where_of_name(present.empty() ? key : present.front());
}

Location Fields::where_of_name(const std::string& name) const {
  const auto found =
      std::find_if(document_.keys.begin(), document_.keys.end(), [&](const Key& k) { return k.name == name; });
  return {file_, found == document_.keys.end() ? 0 : found->line, name};
}

bool Fields::is_null(const std::string& key) const {
  const auto found = document_.root.find(key);
  return found != document_.root.end() && found->is_null();
}

const Json* Fields::find(const std::string& key) {
  for (std::string& name : names_of(key)) used_.push_back(std::move(name));
  const std::vector<std::string> present = present_names(key);
  if (present.empty()) return nullptr;
  const Json& value = document_.root.at(present.front());
  for (std::size_t i = 1; i < present.size(); ++i) {
    if (document_.root.at(present[i]) == value) continue;
    problems_.add(ErrorKind::kInput, "differs from " + present.front() + ", which means the same",
                  where_of_name(present[i]), {"leave one of the two out"});
  }
  return &value;
}

std::optional<std::int64_t> Fields::integer(const std::string& key) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer()) return ill_typed(key, "a whole number", *value);
  if (!fits(*value)) return ill_typed(key, "at most 2^31", *value);
  return value->get<std::int64_t>();
}

std::int64_t Fields::required(const std::string& key) {
  const std::optional<std::int64_t> value = integer(key);
  if (!has(key)) {
    const std::vector<std::string> names = names_of(key);
    std::string help = "every config.json of this model type states it";
    for (std::size_t i = 1; i < names.size(); ++i) help += (i == 1 ? ", as " : " or ") + names[i];
    problems_.add(ErrorKind::kInput, "missing key", where(key), {help});
  }
  return value.value_or(0);
}

std::optional<double> Fields::number(const std::string& key) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) return ill_typed(key, "a number", *value);
  return value->get<double>();
}

bool Fields::boolean(const std::string& key, bool otherwise) {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) ill_typed(key, "true or false", *value);
  return value->is_boolean() ? value->get<bool>() : otherwise;
}

std::optional<std::string> Fields::text(const std::string& key) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) return ill_typed(key, "a string", *value);
  return value->get<std::string>();
}

std::optional<std::vector<std::int64_t>> Fields::integers(const std::string& key) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  std::vector<std::int64_t> items;
  if (!value->is_array()) return ill_typed(key, "a list of whole numbers", *value);
  for (const Json& item : *value) {
    if (!item.is_number_integer() || !fits(item)) return ill_typed(key, "a list of whole numbers", item);
    items.push_back(item.get<std::int64_t>());
  }
  return items;
}

std::optional<std::vector<std::string>> Fields::texts(const std::string& key) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  std::vector<std::string> items;
  if (!value->is_array()) return ill_typed(key, "a list of strings", *value);
  for (const Json& item : *value) {
    if (!item.is_string()) return ill_typed(key, "a list of strings", item);
    items.push_back(item.get<std::string>());
  }
  return items;
}

void Fields::refuse(const std::string& key, ErrorKind kind, std::string message, std::vector<std::string> help) {
  problems_.add(kind, std::move(message), where(key), std::move(help));
}

void Fields::report_repeated_keys() const {
  for (const Key& key : document_.keys) {
    if (!key.repeated) continue;
    problems_.add(ErrorKind::kInput, "key given twice, first on line " + std::to_string(key.first_line),
                  {file_, key.line, printable_key(key.name)});
  }
}

std::vector<std::string> Fields::unused() const {
  std::vector<std::string> names;
  for (const Key& key : document_.keys) {
    const bool used = std::find(used_.begin(), used_.end(), key.name) != used_.end();
    if (!used) names.push_back(printable_key(key.name));
  }
  return names;
}

std::nullopt_t Fields::ill_typed(const std::string& key, const std::string& expected, const Json& value) const {
  problems_.add(ErrorKind::kInput, "expected " + expected + ", found " + printable(value), where(key));
  return std::nullopt;
}

}  // namespace stepcast::models
