// A JSON file of a model as a tree and the line of every key of its root object.
//
// Only .cc files of models/ include this: the JSON library is heavy.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::models {

using Json = nlohmann::json;

struct Key {
  std::string name;
  int line = 0;
  int first_line = 0;  // of the first key of this name; `line` itself is later when the key is repeated
  bool repeated = false;
};

struct Document {
  Json root;              // an object
  std::vector<Key> keys;  // of the root object, in file order, repeated ones included
};

// Throws Error (kInput) with the line: text that is not JSON (NaN and Infinity are not), numbers beyond double, a root
// that is not an object. `file` is for messages.
Document parse_document(std::string_view text, const std::string& file);

// Plain ASCII of bounded length, whatever the file holds.
std::string printable(const Json& value);
std::string printable_key(const std::string& key);

}  // namespace stepcast::models
