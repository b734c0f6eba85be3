// toml++ stays behind this file. Dates and times become text.
#include <toml++/toml.h>
#include <sstream>
#include <string>

#include "config/text.h"
#include "import/formats.h"

namespace stepcast::imports {
namespace {

using config::Node;

Location location_of(const toml::node& node, const std::string& file) {
  return {file, static_cast<int>(node.source().begin.line), ""};
}

std::string scalar_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* real = node.as_floating_point()) return config::number_text(real->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  std::ostringstream text;
  node.visit([&text](const auto& value) {
    if constexpr (toml::is_date<decltype(value)> || toml::is_time<decltype(value)> ||
                  toml::is_date_time<decltype(value)>) {
      text << value;
    }
  });
  return text.str();
}

Node node_of(const toml::node& value, const std::string& file) {
  Node node;
  node.where = location_of(value, file);
  if (const toml::table* table = value.as_table()) {
    node.kind = Node::Kind::kMap;
    for (const auto& [key, child] : *table) node.set(key.str(), node_of(child, file));
  } else if (const toml::array* array = value.as_array()) {
    node.kind = Node::Kind::kList;
    for (const toml::node& child : *array) node.children.push_back(node_of(child, file));
  } else {
    node.kind = Node::Kind::kScalar;
    node.text = scalar_text(value);
    node.quoted = value.is_string();
  }
  return node;
}

}  // namespace

Node read_toml(std::string_view text, const std::string& file) {
  try {
    const toml::table root = toml::parse(text, file);
    return node_of(root, file);
  } catch (const toml::parse_error& fault) {
    throw Error(ErrorKind::kInput, "not valid TOML: " + config::printable(fault.description(), 160),
                Location{file, static_cast<int>(fault.source().begin.line), ""});
  }
}

}  // namespace stepcast::imports
