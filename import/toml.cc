// toml++ stays behind this file. Dates and times become text.

// Some faults of a text, such as "[!]", toml++ 3.3 takes for granted not to happen: assertions, which an optimised
// build turns into undefined behaviour. Here they hold in every build and are faults of the text. CMake compiles this
// file alone.
#include <stdexcept>
#undef NDEBUG
namespace {
constexpr void require_of_text(bool holds) {
  if (!holds) throw std::logic_error("not TOML");
}
}  // namespace
#define TOML_ASSERT(expr) require_of_text(static_cast<bool>(expr))
#include <toml++/toml.h>

#include <sstream>
#include <string>

#include "config/document.h"
#include "config/text.h"
#include "import/formats.h"

namespace stepcast::imports {
namespace {

using config::Node;

constexpr std::string_view kHexDigits = "0123456789ABCDEF";

// toml++ 3.3 runs into undefined behaviour on most characters outside ASCII where it asks for white space, so it sees
// "%C3%A9" for an e with an accent. Keys and text are turned back.
std::string escaped(std::string_view text) {
  std::string ascii;
  ascii.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && c != '%') {
      ascii += c;
    } else {
      ascii += '%';
      ascii += kHexDigits[byte >> 4];
      ascii += kHexDigits[byte & 15];
    }
  }
  return ascii;
}

// Undoes escaped().
std::string unescaped(std::string_view ascii) {
  std::string text;
  for (std::size_t i = 0; i < ascii.size(); ++i) {
    const std::size_t high = i + 2 < ascii.size() ? kHexDigits.find(ascii[i + 1]) : std::string_view::npos;
    const std::size_t low = i + 2 < ascii.size() ? kHexDigits.find(ascii[i + 2]) : std::string_view::npos;
    if (ascii[i] != '%' || high == std::string_view::npos || low == std::string_view::npos) {
      text += ascii[i];
      continue;
    }
    text += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return text;
}

Location location_of(const toml::node& node, const std::string& file) {
  return {file, static_cast<int>(node.source().begin.line), ""};
}

std::string scalar_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return unescaped(text->get());
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
    for (const auto& [key, child] : *table) node.set(unescaped(key.str()), node_of(child, file));
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
  config::require_text(text, file);
  try {
    const toml::table root = toml::parse(escaped(text), file);
    return node_of(root, file);
  } catch (const toml::parse_error& fault) {
    throw Error(ErrorKind::kInput, "not valid TOML: " + config::printable(unescaped(fault.description()), 160),
                Location{file, static_cast<int>(fault.source().begin.line), ""});
  } catch (const std::logic_error&) {
    throw Error(ErrorKind::kInput, "not valid TOML", Location{file, 0, ""},
                {"look for keys of other than A-Za-z0-9_-"});
  }
}

}  // namespace stepcast::imports
