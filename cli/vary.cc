#include "cli/vary.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/error.h"
#include "cli/scenario_options.h"

namespace stepcast::cli {
namespace {

using report::SweepAxis;

constexpr std::string_view kOpening = "[{(";
constexpr std::string_view kClosing = "]})";

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// At commas that are in no bracket and no quotes.
std::vector<std::string> split_values(std::string_view text) {
  std::vector<std::string> parts = {""};
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (kOpening.find(c) != std::string_view::npos) {
      ++depth;
    } else if (kClosing.find(c) != std::string_view::npos) {
      --depth;
    } else if (c == ',' && depth == 0) {
      parts.emplace_back();
      continue;
    }
    parts.back() += c;
  }
  for (std::string& part : parts) part = trimmed(part);
  return parts;
}

SweepAxis axis_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string name = trimmed(text.substr(0, equals == std::string::npos ? 0 : equals));
  if (name.empty()) {
    throw Error(ErrorKind::kUsage, "--vary " + text + ": expected FIELD=VALUE,VALUE,...", {},
                {"such as --vary plan.tp=1,2,4"});
  }
  SweepAxis axis{field_of(name), split_values(std::string_view(text).substr(equals + 1))};
  std::set<std::string> seen;
  for (const std::string& value : axis.values) {
    const bool repeated = !seen.insert(value).second;
    if (!value.empty() && !repeated) continue;
    throw Error(ErrorKind::kUsage, "--vary " + text + ": " + (value.empty() ? "an empty value" : "a value twice"), {},
                {"quote a value that has commas: --vary 'plan.layout=\"Et|tL\",auto'"});
  }
  return axis;
}

}  // namespace

std::vector<SweepAxis> axes_of(const std::vector<std::string>& texts) {
  std::vector<SweepAxis> axes;
  std::size_t count = 1;
  for (const std::string& text : texts) {
    axes.push_back(axis_of(text));
    const SweepAxis& axis = axes.back();
    const auto same = [&axis](const SweepAxis& other) { return &other != &axis && other.field == axis.field; };
    if (std::any_of(axes.begin(), axes.end(), same)) {
      throw Error(ErrorKind::kUsage, "--vary " + axis.field + " is given twice", {}, {"list all its values in one"});
    }
    count *= axis.values.size();
    if (count > kMostVariants) {
      throw Error(ErrorKind::kUsage, "--vary asks for more than " + std::to_string(kMostVariants) + " variants");
    }
  }
  return axes;
}

std::size_t variant_count(const std::vector<SweepAxis>& axes) {
  std::size_t count = 1;
  for (const SweepAxis& axis : axes) count *= axis.values.size();
  return count;
}

std::vector<std::string> values_of(const std::vector<SweepAxis>& axes, std::size_t i) {
  std::vector<std::string> values(axes.size());
  for (std::size_t a = axes.size(); a-- > 0;) {
    values[a] = axes[a].values[i % axes[a].values.size()];
    i /= axes[a].values.size();
  }
  return values;
}

std::vector<config::Setting> settings_of(const std::vector<SweepAxis>& axes, std::size_t i) {
  const std::vector<std::string> values = values_of(axes, i);
  std::vector<config::Setting> settings;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    settings.push_back({axes[a].field, values[a], "--vary " + axes[a].field + "=" + values[a]});
  }
  return settings;
}

}  // namespace stepcast::cli
