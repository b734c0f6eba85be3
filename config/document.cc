// Parses with yaml-cpp's event interface: the tree is ours, so that limits, repeated keys and lines are checked as the
// text is read, and no alias is ever expanded.
#include "config/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/check.h"
#include "config/text.h"

namespace stepcast::config {
namespace {

// Builds Nodes from parser events. A map under construction alternates between awaiting a key and awaiting a value.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string file, bool origin_only) : file_(std::move(file)), origin_only_(origin_only) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    add(mark, Node{});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse_anchor(mark, 1); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    if (!(tag.empty() || tag == "?" || tag == "!")) fail(mark, "YAML tags are not used here: " + printable(tag));
    Node node;
    node.kind = Node::Kind::kScalar;
    node.text = value;
    node.quoted = tag == "!";
    add(mark, std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, anchor, Node::Kind::kList);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, anchor, Node::Kind::kMap);
  }
  void OnMapEnd() override { close(); }

  bool has_root() const { return has_root_; }
  Node take_root() { return std::move(root_); }

  Location at(const YAML::Mark& mark) const {
    return Location{file_, origin_only_ || mark.line < 0 ? 0 : mark.line + 1, ""};
  }
  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& message) const {
    throw Error(ErrorKind::kInput, message, at(mark));
  }

 private:
  struct Level {
    Node node;
    bool awaits_value = false;
    std::string key;
    Location key_at;
  };

  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
    if (anchor != 0) fail(mark, "YAML anchors and aliases are not used here; share values with `extends`");
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, Node::Kind kind) {
    refuse_anchor(mark, anchor);
    if (levels_.size() >= kMaxDepth) fail(mark, "nested deeper than " + std::to_string(kMaxDepth) + " levels");
    if (!levels_.empty() && levels_.back().node.kind == Node::Kind::kMap && !levels_.back().awaits_value) {
      fail(mark, "a key must be a word");
    }
    Level level;
    level.node.kind = kind;
    level.node.where = at(mark);
    levels_.push_back(std::move(level));
  }

  void close() {
    CHECK(!levels_.empty());
    Node node = std::move(levels_.back().node);
    levels_.pop_back();
    place(std::move(node));
  }

  void add(const YAML::Mark& mark, Node node) {
    node.where = at(mark);
    if (!levels_.empty() && levels_.back().node.kind == Node::Kind::kMap && !levels_.back().awaits_value) {
      take_key(mark, node);
    } else {
      place(std::move(node));
    }
  }

  void take_key(const YAML::Mark& mark, const Node& node) {
    Level& level = levels_.back();
    if (node.kind != Node::Kind::kScalar || node.text.empty()) fail(mark, "a key must be a word");
    const Node* earlier = level.node.find(node.text);
    if (earlier != nullptr) {
      throw Error(ErrorKind::kInput, "\"" + printable(node.text) + "\" is given twice", node.where,
                  {"the first one is at " + origin_text(earlier->where)});
    }
    level.key = node.text;
    level.key_at = node.where;
    level.awaits_value = true;
  }

  void place(Node node) {
    if (++nodes_ > kMaxNodes) {
      throw Error(ErrorKind::kInput, "more than " + std::to_string(kMaxNodes) + " values", node.where);
    }
    if (levels_.empty()) {
      root_ = std::move(node);
      has_root_ = true;
      return;
    }
    Level& level = levels_.back();
    if (level.node.kind == Node::Kind::kMap) {
      node.where = level.key_at;
      level.node.keys.push_back(level.key);
      level.awaits_value = false;
    }
    level.node.children.push_back(std::move(node));
  }

  std::string file_;
  bool origin_only_;
  std::vector<Level> levels_;
  Node root_;
  bool has_root_ = false;
  std::size_t nodes_ = 0;
};

bool is_bracketed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

// Of JSON there is a second document, by YAML's rules, where something follows the closing bracket.
void refuse_second_document(YAML::Parser& parser, TreeBuilder second, std::string_view text) {
  if (!parser.HandleNextDocument(second)) return;
  Location where = second.has_root() ? second.take_root().where : second.at(YAML::Mark::null_mark());
  if (is_bracketed(text)) {
    throw Error(ErrorKind::kInput, "something follows the closing bracket of the document", std::move(where),
                {"end the file there"});
  }
  throw Error(ErrorKind::kInput, "more than one document (a line \"---\"); keep one", std::move(where));
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  const auto at = std::find(keys.begin(), keys.end(), key);
  return at == keys.end() ? nullptr : &children[static_cast<std::size_t>(at - keys.begin())];
}

const Node* find_path(const Node& root, std::string_view path) {
  const Node* at = &root;
  while (at != nullptr && !path.empty()) {
    if (path.front() == '.') path.remove_prefix(1);
    if (path.starts_with('[')) {
      const std::size_t end = path.find(']');
      if (end == std::string_view::npos || at->kind != Node::Kind::kList) return nullptr;
      const auto item = parse_integer(path.substr(1, end - 1));
      if (!item || *item < 0 || static_cast<std::size_t>(*item) >= at->children.size()) return nullptr;
      at = &at->children[static_cast<std::size_t>(*item)];
      path.remove_prefix(end + 1);
      continue;
    }
    const std::size_t end = std::min(path.find_first_of(".["), path.size());
    at = at->kind == Node::Kind::kMap ? at->find(path.substr(0, end)) : nullptr;
    path.remove_prefix(end);
  }
  return at;
}

Node* Node::find(std::string_view key) { return const_cast<Node*>(std::as_const(*this).find(key)); }

void Node::set(std::string_view key, Node value) {
  CHECK(kind == Kind::kMap);
  if (Node* old = find(key)) {
    *old = std::move(value);
    return;
  }
  keys.emplace_back(key);
  children.push_back(std::move(value));
}

void Node::erase(std::string_view key) {
  const auto at = std::find(keys.begin(), keys.end(), key);
  if (at == keys.end()) return;
  children.erase(children.begin() + (at - keys.begin()));
  keys.erase(at);
}

Node make_scalar(std::string text, Location where) {
  Node node;
  node.kind = Node::Kind::kScalar;
  node.text = std::move(text);
  node.where = std::move(where);
  return node;
}

Node make_map(Location where) {
  Node node;
  node.kind = Node::Kind::kMap;
  node.where = std::move(where);
  return node;
}

std::string origin_text(const Location& where) {
  return where.line > 0 ? where.file + ":" + std::to_string(where.line) : where.file;
}

std::string flow_text(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "null";
    case Node::Kind::kScalar:
      return node.text;
    case Node::Kind::kList:
    case Node::Kind::kMap:
      break;
  }
  const bool map = node.kind == Node::Kind::kMap;
  std::string text = map ? "{" : "[";
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    if (i > 0) text += ", ";
    if (map) text += node.keys[i] + ": ";
    text += flow_text(node.children[i]);
  }
  return text + (map ? "}" : "]");
}

void require_text(std::string_view text, const std::string& file) {
  if (text.size() > kMaxFileBytes) {
    throw Error(ErrorKind::kInput, "larger than " + std::to_string(kMaxFileBytes >> 20) + " MiB",
                Location{file, 0, ""});
  }
  if (const auto bad = first_bad_byte(text)) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(*bad), '\n');
    throw Error(ErrorKind::kInput, "not UTF-8 text: byte " + std::to_string(*bad + 1) + " is not part of a character",
                Location{file, static_cast<int>(line), ""});
  }
}

Node parse_document(std::string_view text, const std::string& file, bool origin_only) {
  require_text(text, file);
  TreeBuilder builder(file, origin_only);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder) || !builder.has_root()) {
      throw Error(ErrorKind::kInput, "the document is empty", Location{file, 0, ""});
    }
    Node root = builder.take_root();
    refuse_second_document(parser, TreeBuilder(file, origin_only), text);
    return root;
  } catch (const YAML::Exception& fault) {
    throw Error(ErrorKind::kInput, "not valid YAML: " + printable(fault.msg, 120), builder.at(fault.mark));
  }
}

}  // namespace stepcast::config
