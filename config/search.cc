// File and preset lookup. Nothing is written and nothing outside the named places is read.
#include "config/search.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <system_error>

#include "config/document.h"
#include "config/embedded.h"
#include "config/text.h"

namespace stepcast::config {
namespace {

namespace fs = std::filesystem;

struct KindNames {
  std::string_view folder;
  std::string_view ending;
  std::string_view word;
};

KindNames names_of(PresetKind kind) {
  switch (kind) {
    case PresetKind::kModel:
      return {"models", ".json", "model"};
    case PresetKind::kCluster:
      return {"clusters", ".yaml", "cluster"};
    case PresetKind::kCalibration:
      break;
  }
  return {"calibrations", ".yaml", "calibration"};
}

bool is_regular(const fs::path& path) {
  std::error_code fault;
  return fs::is_regular_file(path, fault);
}

// A preset's name becomes part of a path, so it must not climb out of the folder.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 128 && name.front() != '.' &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

std::optional<FoundFile> find_in_directories(const KindNames& kind, const std::string& name, const SearchPath& search) {
  const std::string file = name + std::string(kind.ending);
  for (const std::string& directory : search.directories) {
    for (const fs::path& path : {fs::path(directory) / kind.folder / file, fs::path(directory) / file}) {
      if (is_regular(path)) return FoundFile{path.string(), name, read_file(path.string())};
    }
  }
  return std::nullopt;
}

std::optional<FoundFile> find_embedded(const KindNames& kind, const std::string& name) {
  const std::string wanted = std::string(kind.folder) + "/" + name + std::string(kind.ending);
  for (const EmbeddedFile& embedded : embedded_files()) {
    if (embedded.path == wanted) return FoundFile{wanted + " (built in)", name, std::string(embedded.text), true};
  }
  return std::nullopt;
}

FoundFile find_path(PresetKind kind, const std::string& text, const std::string& beside, const Location& where) {
  fs::path path(text);
  if (path.is_relative() && !beside.empty()) path = fs::path(beside).parent_path() / path;
  std::error_code fault;
  if (kind == PresetKind::kModel && fs::is_directory(path, fault)) path /= "config.json";
  const bool generic = (path.stem() == "config" || path.stem() == "params") && path.has_parent_path();
  const std::string name = generic ? path.parent_path().filename().string() : path.stem().string();
  return FoundFile{path.string(), name, read_file(path.string(), where)};
}

void add_names(const fs::path& folder, const std::string& ending, std::set<std::string>& names) {
  std::error_code fault;
  for (fs::directory_iterator it(folder, fault), end; !fault && it != end; it.increment(fault)) {
    if (it->path().extension() == ending && is_regular(it->path())) names.insert(it->path().stem().string());
  }
}

}  // namespace

SearchPath split_search_path(std::string_view text) {
  SearchPath search;
  while (!text.empty()) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    if (colon > 0) search.directories.emplace_back(text.substr(0, colon));
    text.remove_prefix(std::min(colon + 1, text.size()));
  }
  return search;
}

std::string read_file(const std::string& path, const Location& where) {
  const Location place = where.file.empty() ? Location{printable(path, 200), 0, ""} : where;
  const std::string shown = printable(path, 200);
  std::error_code fault;
  const fs::file_status status = path.find('\0') == std::string::npos ? fs::status(path, fault) : fs::file_status();
  if (!fs::exists(status)) throw Error(ErrorKind::kInput, "no such file: " + shown, place);
  if (!fs::is_regular_file(status)) throw Error(ErrorKind::kInput, "not a regular file: " + shown, place);
  std::ifstream stream(path, std::ios::binary);
  std::string text;
  if (stream) {
    const auto size = fs::file_size(path, fault);
    if (!fault && size > kMaxFileBytes) {
      throw Error(ErrorKind::kInput, shown + " is larger than " + std::to_string(kMaxFileBytes >> 20) + " MiB", place);
    }
    text.assign(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  if (!stream || stream.bad()) throw Error(ErrorKind::kInput, "cannot read " + shown, place);
  return text;
}

bool is_path(std::string_view text) {
  const auto ends = [&](std::string_view ending) {
    return text.size() > ending.size() && text.substr(text.size() - ending.size()) == ending;
  };
  return text.find('/') != std::string_view::npos || ends(".json") || ends(".yaml") || ends(".yml");
}

std::vector<std::string> preset_names(PresetKind kind, const SearchPath& search) {
  const KindNames names = names_of(kind);
  const std::string ending(names.ending);
  std::set<std::string> found;
  for (const std::string& directory : search.directories) add_names(fs::path(directory) / names.folder, ending, found);
  const std::string prefix = std::string(names.folder) + "/";
  for (const EmbeddedFile& embedded : embedded_files()) {
    const fs::path path{std::string(embedded.path)};
    if (embedded.path.substr(0, prefix.size()) == prefix && path.extension() == ending) {
      found.insert(path.stem().string());
    }
  }
  return {found.begin(), found.end()};
}

FoundFile find_file(PresetKind kind, const std::string& name_or_path, const std::string& beside,
                    const SearchPath& search, const Location& where) {
  if (is_path(name_or_path)) return find_path(kind, name_or_path, beside, where);
  const KindNames names = names_of(kind);
  if (is_plain_name(name_or_path)) {
    if (auto found = find_in_directories(names, name_or_path, search)) return *found;
    if (auto found = find_embedded(names, name_or_path)) return *found;
  }
  const std::vector<std::string> all = preset_names(kind, search);
  const std::vector<std::string> near = nearest_names(name_or_path, all);
  std::vector<std::string> help;
  if (!near.empty()) help.push_back("did you mean " + join(near, " or ") + "?");
  if (near.empty() && !all.empty()) help.push_back("known: " + join(all));
  help.push_back("or give a path (with a slash or an ending)");
  throw Error(ErrorKind::kInput, "no " + std::string(names.word) + " is called \"" + printable(name_or_path) + "\"",
              where, std::move(help));
}

}  // namespace stepcast::config
