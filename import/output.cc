// The scenario as YAML with comments, and the report.
#include <algorithm>
#include <utility>

#include "config/text.h"
#include "import/imported.h"

namespace stepcast::imports {
namespace {

constexpr std::size_t kCommentColumn = 44;

std::vector<std::string> parts_of(const std::string& field) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (std::size_t dot = field.find('.'); dot != std::string::npos; dot = field.find('.', start)) {
    parts.push_back(field.substr(start, dot - start));
    start = dot + 1;
  }
  parts.push_back(field.substr(start));
  return parts;
}

// A value under a group stands beside those of its group, wherever it was set.
struct Tree {
  std::string key;
  const ImportedValue* value = nullptr;
  std::vector<Tree> children;

  Tree& child(const std::string& name) {
    const auto found = std::find_if(children.begin(), children.end(), [&](const Tree& t) { return t.key == name; });
    if (found != children.end()) return *found;
    children.push_back({name, nullptr, {}});
    return children.back();
  }
};

void print_tree(const Tree& tree, std::size_t indent, std::string& text) {
  for (const Tree& child : tree.children) {
    std::string line = std::string(indent, ' ') + child.key + ":";
    if (!child.children.empty()) {
      text += line + "\n";
      print_tree(child, indent + 2, text);
      continue;
    }
    if (child.value == nullptr) continue;
    line += " " + child.value->text;
    if (!child.value->origin.empty()) {
      if (line.size() < kCommentColumn) line.resize(kCommentColumn, ' ');
      line += "  # " + config::printable(child.value->origin, 200);
    }
    text += line + "\n";
  }
}

std::string ignored_text(const Ignored& ignored) {
  std::string text = ignored.name;
  if (!ignored.where.file.empty()) text += " (" + config::origin_text(ignored.where) + ")";
  if (!ignored.detail.empty()) text += ": " + ignored.detail;
  return config::printable(text, 300);
}

std::vector<std::string> report_lines(const Imported& imported) {
  std::vector<std::string> lines;
  const auto add = [&lines](const std::string& label, const std::vector<std::string>& texts) {
    for (const std::string& text : texts) lines.push_back(label + ": " + config::printable(text, 400));
  };
  add("warning", imported.warnings);
  add("contradictory", imported.contradictions);
  add("converted", imported.converted);
  add("assumed", imported.assumed);
  std::size_t idle = 0;
  for (const Ignored& ignored : imported.ignored) {
    if (ignored.reason == Reason::kNoInfluence) {
      ++idle;
    } else {
      lines.push_back("ignored, " + std::string(to_string(ignored.reason)) + ": " + ignored_text(ignored));
    }
  }
  if (idle > 0) {
    lines.push_back("ignored, " + std::string(to_string(Reason::kNoInfluence)) + ": " + std::to_string(idle) +
                    (idle == 1 ? " name" : " names") + " (listed by --json)");
  }
  return lines;
}

}  // namespace

std::string_view to_string(Reason reason) {
  switch (reason) {
    case Reason::kNoInfluence:
      return "no influence on step time and memory";
    case Reason::kNotSupported:
      return "not supported yet";
    case Reason::kUnknown:
      break;
  }
  return "unknown";
}

std::string scenario_yaml(const Imported& imported) {
  std::string text = "# Imported from " + config::printable(imported.file, 200) + " (" + imported.format + ").\n";
  for (const std::string& line : report_lines(imported)) text += "# " + line + "\n";
  Tree root;
  for (const ImportedValue& value : imported.values) {
    Tree* place = &root;
    for (const std::string& part : parts_of(value.field)) place = &place->child(part);
    place->value = &value;
  }
  print_tree(root, 0, text);
  return text;
}

std::string import_report(const Imported& imported) {
  std::string text;
  for (const std::string& line : report_lines(imported)) text += line + "\n";
  return text;
}

}  // namespace stepcast::imports
