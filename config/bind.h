// Binds a tree of values to a protobuf message, strictly: every unknown, missing, ill-typed, out-of-range or
// unsupported field becomes a problem with its location, and all of them are reported together.
//
// What a field accepts is said by its type and by its FieldRule (config/options.proto). Scalars of a schema are
// declared `optional`, so that a field left out can be told from one set to zero.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/document.h"

namespace stepcast::config {

// One value that was given: where, and as which text.
struct BoundValue {
  std::string field;  // plan.tp
  std::string value;
  Location where;  // field included
};

// Fills `message` from `node` (a map). Adds a BoundValue for every leaf that was given, a wrong one too. Problems:
// kInput for what is wrong, kUnsupported for what is known but not acted on yet. Call it as config::bind: through its
// arguments, a bare bind may also find std::bind.
void bind(const Node& node, google::protobuf::Message& message, ProblemList& problems, std::vector<BoundValue>& values);

// Lays `over` on `under`: maps merge key by key, anything else replaces. A scalar that meets a map is first expanded by
// its field's shorthand, so that {num_hidden_layers: 8} over "llama-3.1-8b" keeps the name as `config`.
void merge(Node& under, const Node& over, const google::protobuf::Descriptor& schema);

// Every field of the schema as a dotted path, messages included, in declaration order.
std::vector<std::string> field_paths(const google::protobuf::Descriptor& schema);

// The default that FieldRule.preset states for a path of the schema; empty when it states none.
std::string preset_text(const google::protobuf::Descriptor& schema, std::string_view path);

}  // namespace stepcast::config
