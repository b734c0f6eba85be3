// The strict binder. A field is bound in two steps: its type decides how the text is read, its FieldRule what is
// allowed.
#include "config/bind.h"

#include <cmath>
#include <memory>
#include <optional>

#include "base/check.h"
#include "config/options.pb.h"
#include "config/quantity.h"
#include "config/text.h"

namespace stepcast::config {
namespace {

namespace pb = google::protobuf;
using Type = pb::FieldDescriptor::CppType;

const FieldRule& rule_of(const pb::FieldDescriptor& field) { return field.options().GetExtension(rule); }

bool is_map_entry(const pb::FieldDescriptor& field) { return field.is_map(); }

std::string joined(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

std::string kind_name(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kScalar:
      return "\"" + printable(node.text) + "\"";
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMap:
      return "a struct";
  }
  return "a value";
}

void collect_paths(const pb::Descriptor& schema, const std::string& prefix, std::vector<std::string>& paths) {
  for (int i = 0; i < schema.field_count(); ++i) {
    const pb::FieldDescriptor& field = *schema.field(i);
    const std::string path = joined(prefix, field.name());
    paths.push_back(path);
    if (field.cpp_type() == Type::CPPTYPE_MESSAGE && !is_map_entry(field)) {
      collect_paths(*field.message_type(), path, paths);
    }
  }
}

class Binder {
 public:
  Binder(const pb::Descriptor& root, ProblemList& problems, std::vector<BoundValue>& values)
      : root_(root), problems_(problems), values_(values) {}

  void bind_message(const Node& node, pb::Message& message, const std::string& path) {
    if (node.kind != Node::Kind::kMap) {
      wrong(node, path, "expected a struct of fields, found " + kind_name(node));
      return;
    }
    const pb::Descriptor& schema = *message.GetDescriptor();
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const pb::FieldDescriptor* field = schema.FindFieldByName(node.keys[i]);
      if (field == nullptr) {
        report_unknown(node.children[i], node.keys[i], schema, path);
      } else {
        bind_field(node.children[i], *field, message, joined(path, node.keys[i]));
      }
    }
    for (int i = 0; i < schema.field_count(); ++i) {
      const pb::FieldDescriptor& field = *schema.field(i);
      if (!rule_of(field).required() || node.find(field.name()) != nullptr) continue;
      // The whole file lacks a top-level field: its first line is no better place than the file.
      const int line = path.empty() ? 0 : node.where.line;
      problems_.add(ErrorKind::kInput, "missing required field", {node.where.file, line, joined(path, field.name())});
    }
  }

 private:
  void wrong(const Node& node, const std::string& path, const std::string& message,
             std::vector<std::string> help = {}) {
    problems_.add(ErrorKind::kInput, message, {node.where.file, node.where.line, path}, std::move(help));
  }

  void report_unknown(const Node& node, const std::string& key, const pb::Descriptor& schema, const std::string& path) {
    std::vector<std::string> siblings;
    for (int i = 0; i < schema.field_count(); ++i) siblings.push_back(schema.field(i)->name());
    std::vector<std::string> help;
    const std::vector<std::string> near = nearest_names(key, siblings);
    if (!near.empty()) help.push_back("did you mean " + join(near, " or ") + "?");
    if (near.empty()) {
      for (const std::string& elsewhere : field_paths(root_)) {
        const std::size_t dot = elsewhere.rfind('.');
        if (dot == std::string::npos ? elsewhere == key : elsewhere.substr(dot + 1) == key) {
          help.push_back("did you mean " + elsewhere + "?");
        }
      }
    }
    if (help.empty() && siblings.size() <= 40) help.push_back("known here: " + join(siblings));
    if (help.size() > 3) help.resize(3);
    wrong(node, joined(path, printable(key)), "unknown field \"" + printable(key) + "\"", std::move(help));
  }

  void bind_field(const Node& node, const pb::FieldDescriptor& field, pb::Message& message, const std::string& path) {
    if (node.kind == Node::Kind::kNull) {
      wrong(node, path, "the value is empty", {"give a value, or leave the field out"});
      record(node, path);
      return;
    }
    const FieldRule& rule = rule_of(field);
    const std::size_t before = problems_.problems().size();
    if (is_map_entry(field)) {
      bind_map(node, field, message, path);
    } else if (field.is_repeated()) {
      bind_list(node, field, message, path);
    } else if (field.cpp_type() == Type::CPPTYPE_MESSAGE) {
      bind_struct(node, field, message, path);
      return;  // its leaves record themselves
    } else {
      bind_scalar(node, field, message, path);
    }
    record(node, path);
    if (problems_.problems().size() != before) return;
    if (rule.not_yet() && !equals_preset(field, message)) {
      const std::string& preset = rule.preset();
      problems_.add(ErrorKind::kUnsupported, path + ": " + printable(flow_text(node), 80),
                    {node.where.file, node.where.line, path},
                    {preset.empty() ? "leave it out" : "the only value so far is " + preset});
    }
  }

  // Wrong values too: a field that was given wrong is not missing.
  void record(const Node& node, const std::string& path) {
    values_.push_back({path, flow_text(node), {node.where.file, node.where.line, path}});
  }

  void bind_struct(const Node& node, const pb::FieldDescriptor& field, pb::Message& message, const std::string& path) {
    const FieldRule& rule = rule_of(field);
    if (rule.not_yet()) {
      problems_.add(ErrorKind::kUnsupported, path, {node.where.file, node.where.line, path}, {"leave it out"});
      return;
    }
    pb::Message& part = *message.GetReflection()->MutableMessage(&message, &field);
    if (node.kind == Node::Kind::kScalar && !rule.shorthand().empty()) {
      Node wrapped = make_map(node.where);
      wrapped.set(rule.shorthand(), node);
      bind_message(wrapped, part, path);
    } else {
      bind_message(node, part, path);
    }
  }

  void bind_list(const Node& node, const pb::FieldDescriptor& field, pb::Message& message, const std::string& path) {
    if (node.kind != Node::Kind::kList && rule_of(field).one_or_list()) {
      bind_item(node, field, message, path);
      return;
    }
    if (node.kind != Node::Kind::kList) {
      wrong(node, path, "expected a list, found " + kind_name(node), {"write [" + printable(flow_text(node)) + "]"});
      return;
    }
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      bind_item(node.children[i], field, message, path + "[" + std::to_string(i) + "]");
    }
  }

  void bind_item(const Node& node, const pb::FieldDescriptor& field, pb::Message& message, const std::string& path) {
    if (field.cpp_type() == Type::CPPTYPE_MESSAGE) {
      std::vector<BoundValue> unrecorded;
      Binder(root_, problems_, unrecorded)
          .bind_message(node, *message.GetReflection()->AddMessage(&message, &field), path);
    } else {
      bind_scalar(node, field, message, path);
    }
  }

  // A map field of the schema is a map of words to words.
  void bind_map(const Node& node, const pb::FieldDescriptor& field, pb::Message& message, const std::string& path) {
    if (node.kind != Node::Kind::kMap) {
      wrong(node, path, "expected a struct of words, found " + kind_name(node));
      return;
    }
    const pb::Descriptor& entry = *field.message_type();
    CHECK(entry.map_value()->cpp_type() == Type::CPPTYPE_STRING, path);
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const Node& value = node.children[i];
      if (value.kind != Node::Kind::kScalar) {
        wrong(value, joined(path, printable(node.keys[i])), "expected a word, found " + kind_name(value));
        continue;
      }
      pb::Message& item = *message.GetReflection()->AddMessage(&message, &field);
      item.GetReflection()->SetString(&item, entry.map_key(), node.keys[i]);
      item.GetReflection()->SetString(&item, entry.map_value(), value.text);
    }
  }

  void bind_scalar(const Node& node, const pb::FieldDescriptor& field, pb::Message& message, const std::string& path) {
    if (rule_of(field).any()) {
      Setter{message, field}.text(flow_text(node));
      return;
    }
    if (node.kind != Node::Kind::kScalar) {
      wrong(node, path, "expected one value, found " + kind_name(node));
      return;
    }
    const Setter set{message, field};
    switch (field.cpp_type()) {
      case Type::CPPTYPE_STRING:
        if (allowed_word(node, field, path)) set.text(node.text);
        return;
      case Type::CPPTYPE_BOOL:
        if (const auto value = read_bool(node, path)) set.boolean(*value);
        return;
      case Type::CPPTYPE_INT64:
      case Type::CPPTYPE_INT32:
        if (const auto value = read_integer(node, field, path)) set.integer(*value);
        return;
      case Type::CPPTYPE_DOUBLE:
        if (const auto value = read_double(node, field, path)) set.number(*value);
        return;
      default:
        CHECK(false, "a schema uses a type that the binder does not know", field.full_name());
    }
  }

  // Writes one value to a singular field, or appends it to a repeated one.
  struct Setter {
    pb::Message& message;
    const pb::FieldDescriptor& field;
    const pb::Reflection& reflection() const { return *message.GetReflection(); }
    bool many() const { return field.is_repeated(); }
    void text(const std::string& v) const {
      many() ? reflection().AddString(&message, &field, v) : reflection().SetString(&message, &field, v);
    }
    void boolean(bool v) const {
      many() ? reflection().AddBool(&message, &field, v) : reflection().SetBool(&message, &field, v);
    }
    void number(double v) const {
      many() ? reflection().AddDouble(&message, &field, v) : reflection().SetDouble(&message, &field, v);
    }
    void integer(std::int64_t v) const {
      if (field.cpp_type() == Type::CPPTYPE_INT32) {
        const auto narrow = static_cast<std::int32_t>(v);
        many() ? reflection().AddInt32(&message, &field, narrow) : reflection().SetInt32(&message, &field, narrow);
      } else {
        many() ? reflection().AddInt64(&message, &field, v) : reflection().SetInt64(&message, &field, v);
      }
    }
  };

  // "file:" and "chunked(" stand for every word that begins so.
  static bool opens(const std::string& word) { return word.back() == ':' || word.back() == '('; }

  bool allowed_word(const Node& node, const pb::FieldDescriptor& field, const std::string& path) {
    const FieldRule& rule = rule_of(field);
    if (rule.values_size() == 0) return true;
    std::vector<std::string> words(rule.values().begin(), rule.values().end());
    const std::string choices = join(words);
    for (const std::string& word : words) {
      if (word == node.text) return true;
    }
    for (const std::string& word : rule.not_yet_values()) {
      if (word == node.text || (opens(word) && node.text.rfind(word, 0) == 0)) {
        problems_.add(ErrorKind::kUnsupported, path + ": " + printable(node.text),
                      {node.where.file, node.where.line, path}, {"supported: " + choices});
        return false;
      }
      words.push_back(word);
    }
    std::vector<std::string> help{"one of " + join(words)};
    const std::vector<std::string> near = nearest_names(node.text, words, 1);
    if (!near.empty()) help.insert(help.begin(), "did you mean " + near.front() + "?");
    wrong(node, path, "\"" + printable(node.text) + "\" is not a value of this field", std::move(help));
    return false;
  }

  std::optional<bool> read_bool(const Node& node, const std::string& path) {
    if (!node.quoted && node.text == "true") return true;
    if (!node.quoted && node.text == "false") return false;
    wrong(node, path, "expected true or false, found " + kind_name(node));
    return std::nullopt;
  }

  std::optional<std::int64_t> read_integer(const Node& node, const pb::FieldDescriptor& field,
                                           const std::string& path) {
    if (rule_of(field).dimension() != BARE) {
      const auto value = read_double(node, field, path);
      if (!value) return std::nullopt;
      if (*value != std::trunc(*value) || std::abs(*value) > 9e15) {
        wrong(node, path, "expected a whole number of base units, found " + kind_name(node));
        return std::nullopt;
      }
      return static_cast<std::int64_t>(*value);
    }
    if (node.quoted || !looks_like_integer(node.text)) {
      wrong(node, path, "expected a whole number, found " + kind_name(node));
      return std::nullopt;
    }
    const auto value = parse_integer(node.text);
    const bool fits = value && (field.cpp_type() != Type::CPPTYPE_INT32 || *value == static_cast<std::int32_t>(*value));
    if (!fits || !within(static_cast<double>(*value), rule_of(field))) {
      report_range(node, field, path);
      return std::nullopt;
    }
    return value;
  }

  std::optional<double> read_double(const Node& node, const pb::FieldDescriptor& field, const std::string& path) {
    const FieldRule& rule = rule_of(field);
    double value = 0;
    if (rule.dimension() != BARE) {
      const std::size_t before = problems_.problems().size();
      value = read_quantity(node.text, rule.dimension(), {node.where.file, node.where.line, path}, problems_);
      if (problems_.problems().size() != before) return std::nullopt;
    } else {
      const auto number = node.quoted ? std::nullopt : parse_number(node.text);
      if (!number) {
        wrong(node, path, "expected a finite number, found " + kind_name(node));
        return std::nullopt;
      }
      value = *number;
    }
    if (!std::isfinite(value) || !within(value, rule)) {
      report_range(node, field, path);
      return std::nullopt;
    }
    return value;
  }

  static bool within(double value, const FieldRule& rule) {
    if (rule.has_min() && (value < rule.min() || (rule.above_min() && value == rule.min()))) return false;
    return !rule.has_max() || value <= rule.max();
  }

  void report_range(const Node& node, const pb::FieldDescriptor& field, const std::string& path) {
    const FieldRule& rule = rule_of(field);
    std::string range;
    if (rule.has_min()) range = (rule.above_min() ? "above " : "at least ") + number_text(rule.min());
    if (rule.has_max()) range += (range.empty() ? "at most " : ", at most ") + number_text(rule.max());
    if (range.empty()) range = "a number that fits 64 bits";
    wrong(node, path, printable(node.text) + " is out of range", {"allowed: " + range});
  }

  // The preset is bound like a given value, so that "128", 128 and [1, 1] compare by meaning.
  bool equals_preset(const pb::FieldDescriptor& field, const pb::Message& message) {
    if (rule_of(field).preset().empty()) return false;
    std::unique_ptr<pb::Message> expected(message.New());
    std::unique_ptr<pb::Message> given(message.New());
    ProblemList none;
    std::vector<BoundValue> unrecorded;
    const Node preset = parse_document(rule_of(field).preset(), "preset");
    Binder binder(root_, none, unrecorded);
    if (is_map_entry(field)) {
      binder.bind_map(preset, field, *expected, "");
    } else if (field.is_repeated()) {
      binder.bind_list(preset, field, *expected, "");
    } else {
      binder.bind_scalar(preset, field, *expected, "");
    }
    CHECK(none.empty(), field.full_name(), to_text(none.problems()));
    given->CopyFrom(message);
    const pb::Descriptor& schema = *message.GetDescriptor();
    for (int i = 0; i < schema.field_count(); ++i) {
      if (schema.field(i) != &field) given->GetReflection()->ClearField(given.get(), schema.field(i));
    }
    return given->SerializeAsString() == expected->SerializeAsString();
  }

  const pb::Descriptor& root_;
  ProblemList& problems_;
  std::vector<BoundValue>& values_;
};

const pb::FieldDescriptor* find_field(const pb::Descriptor& schema, std::string_view path) {
  const std::size_t dot = path.find('.');
  const pb::FieldDescriptor* field = schema.FindFieldByName(std::string(path.substr(0, dot)));
  if (field == nullptr || dot == std::string_view::npos) return field;
  if (field->cpp_type() != Type::CPPTYPE_MESSAGE) return nullptr;
  return find_field(*field->message_type(), path.substr(dot + 1));
}

}  // namespace

void bind(const Node& node, pb::Message& message, ProblemList& problems, std::vector<BoundValue>& values) {
  Binder(*message.GetDescriptor(), problems, values).bind_message(node, message, "");
}

void merge(Node& under, const Node& over, const pb::Descriptor& schema) {
  if (under.kind != Node::Kind::kMap || over.kind != Node::Kind::kMap) {
    under = over;
    return;
  }
  for (std::size_t i = 0; i < over.keys.size(); ++i) {
    Node* old = under.find(over.keys[i]);
    const Node& value = over.children[i];
    const pb::FieldDescriptor* field = schema.FindFieldByName(over.keys[i]);
    const bool is_struct = field != nullptr && field->cpp_type() == Type::CPPTYPE_MESSAGE && !field->is_repeated();
    if (old == nullptr || !is_struct || value.kind != Node::Kind::kMap) {
      under.set(over.keys[i], value);
      continue;
    }
    const std::string& shorthand = rule_of(*field).shorthand();
    if (old->kind == Node::Kind::kScalar && !shorthand.empty()) {
      Node wrapped = make_map(old->where);
      wrapped.set(shorthand, *old);
      *old = std::move(wrapped);
    }
    merge(*old, value, *field->message_type());
  }
}

std::vector<std::string> field_paths(const pb::Descriptor& schema) {
  std::vector<std::string> paths;
  collect_paths(schema, "", paths);
  return paths;
}

std::string preset_text(const pb::Descriptor& schema, std::string_view path) {
  const pb::FieldDescriptor* field = find_field(schema, path);
  return field == nullptr ? "" : rule_of(*field).preset();
}

}  // namespace stepcast::config
