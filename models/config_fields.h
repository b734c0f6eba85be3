// Typed access to the keys of a model's config file, under the names its family gives them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "models/config_document.h"

namespace stepcast::models {

// `key` is the name used here, `other` another one that files of a family may use for the same.
struct Alias {
  std::string_view key;
  std::string_view other;
};

// Keys are asked for by the name used here. One that is absent or null gives nullopt; an ill-typed one also adds a
// problem, and so do two names of one key with different values. Whatever was asked for counts as used.
class Fields {
 public:
  Fields(const Document& document, const std::string& file, ProblemList& problems)
      : document_(document), file_(file), problems_(problems) {}

  void use_names(std::span<const Alias> aliases) { aliases_ = aliases; }
  ProblemList& problems() { return problems_; }

  Location where(const std::string& key) const;
  bool has(const std::string& key) const { return !present_names(key).empty(); }
  bool is_null(const std::string& key) const;

  const Json* find(const std::string& key);
  std::optional<std::int64_t> integer(const std::string& key);
  // 0 when it is absent or ill-typed, after saying so.
  std::int64_t required(const std::string& key);
  std::optional<double> number(const std::string& key);
  bool boolean(const std::string& key, bool otherwise);
  std::optional<std::string> text(const std::string& key);
  std::optional<std::vector<std::int64_t>> integers(const std::string& key);
  std::optional<std::vector<std::string>> texts(const std::string& key);

  // Adds a problem at `key`.
  void refuse(const std::string& key, ErrorKind kind, std::string message, std::vector<std::string> help = {});

  void report_repeated_keys() const;
  // Keys nobody asked for, in file order, printable.
  std::vector<std::string> unused() const;

 private:
  std::vector<std::string> names_of(const std::string& key) const;
  std::vector<std::string> present_names(const std::string& key) const;
  Location where_of_name(const std::string& name) const;
  std::nullopt_t ill_typed(const std::string& key, const std::string& expected, const Json& value) const;

  const Document& document_;
  const std::string& file_;
  ProblemList& problems_;
  std::span<const Alias> aliases_;
  std::vector<std::string> used_;
};

}  // namespace stepcast::models
