// A YAML or JSON text as a tree of values, each with the file and line it comes from.
//
// Stricter than YAML: one document, UTF-8, no repeated keys, no anchors, aliases or tags, bounded size and depth. JSON
// is read by the same parser, as the subset of YAML it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace stepcast::config {

inline constexpr std::size_t kMaxFileBytes = std::size_t{4} << 20;
inline constexpr std::size_t kMaxNodes = 200'000;
inline constexpr std::size_t kMaxDepth = 64;

struct Node {
  enum class Kind : std::uint8_t { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  std::string text;               // of a scalar
  bool quoted = false;            // a quoted scalar is text, never a number
  std::vector<std::string> keys;  // of a map, in file order; keys[i] belongs to children[i]
  std::vector<Node> children;     // of a map or a list
  Location where;                 // file and line (of the key, for a map's child); the binder adds the field

  const Node* find(std::string_view key) const;
  Node* find(std::string_view key);
  // Adds the key, or replaces its value.
  void set(std::string_view key, Node value);
  void erase(std::string_view key);
};

// The value at a dotted path below `root`, items of lists by number: "perturb[1].node", "stack.env.NCCL_ALGO". Null
// where there is none.
const Node* find_path(const Node& root, std::string_view path);

Node make_scalar(std::string text, Location where);
Node make_map(Location where);

// Where a value came from, for people: "run.yaml:4", "--set plan.tp=4".
std::string origin_text(const Location& where);
// The value in one line, as YAML flow text.
std::string flow_text(const Node& node);

// Throws Error (kInput) unless `text` is UTF-8 without control characters, at most kMaxFileBytes long.
void require_text(std::string_view text, const std::string& file);

// Parses one document. `file` names it in locations; `origin_only` drops line numbers (for --set values).
// Throws Error (kInput) with the line of the first fault.
Node parse_document(std::string_view text, const std::string& file, bool origin_only = false);

}  // namespace stepcast::config
