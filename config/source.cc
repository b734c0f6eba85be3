// Layers of a scenario and how they are laid on one another.
#include "config/source.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "config/bind.h"
#include "config/text.h"

namespace stepcast::config {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxExtends = 16;

std::string identity_of(const std::string& file) {
  std::error_code fault;
  const fs::path path = fs::weakly_canonical(file, fault);
  return fault ? file : path.string();
}

class Loader {
 public:
  Loader(const google::protobuf::Descriptor& schema, const Canonicalise& canonicalise, ProblemList& problems)
      : schema_(schema), canonicalise_(canonicalise), problems_(problems) {}

  Node load_file(const std::string& file, const Location& named_at) {
    const std::string identity = identity_of(file);
    if (std::find(open_.begin(), open_.end(), identity) != open_.end()) {
      throw Error(ErrorKind::kInput, "extends itself: " + join(open_, " -> ") + " -> " + identity, named_at);
    }
    if (open_.size() >= kMaxExtends) {
      throw Error(ErrorKind::kInput, "more than " + std::to_string(kMaxExtends) + " files extend one another",
                  named_at);
    }
    open_.push_back(identity);
    Node layer = parse_document(read_file(file, named_at), file);
    require_map(layer);
    canonicalise_(layer, problems_);
    const Node* base_name = layer.find("extends");
    if (base_name != nullptr) {
      const Location where{file, base_name->where.line, "extends"};
      if (base_name->kind != Node::Kind::kScalar || base_name->text.empty()) {
        throw Error(ErrorKind::kInput, "expected the path of a scenario file", where);
      }
      Node base = load_file((fs::path(file).parent_path() / base_name->text).string(), where);
      base.erase("extends");
      base.erase("name");  // a variant is not its base
      merge(base, layer, schema_);
      base.where = layer.where;
      layer = std::move(base);
    }
    open_.pop_back();
    return layer;
  }

  void apply(const Setting& setting, Node& root) {
    const Location where{setting.origin, 0, setting.field};
    try {
      if (setting.field == "extends") throw Error(ErrorKind::kInput, "works in a file only");
      Node value = parse_document(setting.value, setting.origin, true);
      Node layer = nested(setting.field, std::move(value), where);
      canonicalise_(layer, problems_);
      merge(root, layer, schema_);
    } catch (const Error& fault) {
      for (Problem problem : fault.problems()) {
        problem.where = where;
        problems_.add(std::move(problem));
      }
    }
  }

 private:
  static void require_map(const Node& layer) {
    if (layer.kind == Node::Kind::kMap) return;
    throw Error(ErrorKind::kInput, "expected a struct of fields such as model, cluster and gpus",
                {layer.where.file, layer.where.line, ""});
  }

  // a.b.c and a value become {a: {b: {c: value}}}.
  static Node nested(std::string_view field, Node value, const Location& where) {
    const Location origin{where.file, 0, ""};
    std::vector<std::string_view> parts;
    for (std::size_t start = 0;;) {
      const std::size_t dot = field.find('.', start);
      parts.push_back(field.substr(start, dot - start));
      if (dot == std::string_view::npos) break;
      start = dot + 1;
    }
    const bool empty_part = std::any_of(parts.begin(), parts.end(), [](std::string_view p) { return p.empty(); });
    if (empty_part || parts.size() > kMaxDepth || first_bad_byte(field)) {
      throw Error(ErrorKind::kInput, "not a field name; write names with dots, such as plan.tp", where);
    }
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      Node map = make_map(origin);
      map.set(*part, std::move(value));
      value = std::move(map);
    }
    return value;
  }

  const google::protobuf::Descriptor& schema_;
  const Canonicalise& canonicalise_;
  ProblemList& problems_;
  std::vector<std::string> open_;
};

}  // namespace

Setting parse_setting(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    throw Error(ErrorKind::kUsage, "--set expects FIELD=VALUE, found \"" + printable(text) + "\"", {},
                {"--set plan.tp=4"});
  }
  return Setting{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)),
                 "--set " + printable(text, 200)};
}

Node load_source(const ScenarioSource& source, const google::protobuf::Descriptor& schema,
                 const Canonicalise& canonicalise, ProblemList& problems) {
  Loader loader(schema, canonicalise, problems);
  Node root = make_map(Location{source.file.empty() ? "command line" : source.file, 0, ""});
  if (!source.file.empty()) root = loader.load_file(source.file, {});
  for (const Setting& setting : source.settings) loader.apply(setting, root);
  return root;
}

}  // namespace stepcast::config
