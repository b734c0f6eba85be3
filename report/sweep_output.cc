// A sweep as a screen, as Markdown, as comma-separated values and as JSON.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/quantity.h"
#include "report/json.h"
#include "report/sweep_report.h"
#include "report/text.h"

namespace stepcast::report {
namespace {

constexpr std::size_t kWidestValue = 28;

using Row = std::vector<std::string>;

// The last part of a field where that names one axis only: "tp" for plan.tp.
std::string header_of(const SweepReport& sweep, const SweepAxis& axis) {
  const auto last = [](const std::string& field) { return field.substr(field.rfind('.') + 1); };
  const std::string name = last(axis.field);
  const auto same = std::count_if(sweep.axes.begin(), sweep.axes.end(),
                                  [&](const SweepAxis& other) { return last(other.field) == name; });
  return same == 1 ? name : axis.field;
}

std::string cut(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 3) + "...";
}

std::string why_text(const SweepVariant& v) {
  const std::size_t more = v.problems.size() - 1;
  std::string text = v.problems.front().message;
  std::replace(text.begin(), text.end(), '\n', ' ');
  return more == 0 ? text : fmt::format("{} (and {} more)", text, more);
}

std::string verdict_text(const SweepVariant& v) {
  if (!v.has_step()) return fmt::format("{}: {}", to_string(v.status), why_text(v));
  if (!v.fits()) return fmt::format("oom, over by {}", memory_text(v.over_bytes()));
  return fmt::format("{}, {} free", to_string(v.status), memory_text(v.capacity_bytes - v.device_bytes));
}

// Whether MFU is not of the same peak in all variants: devices or compute types differ.
bool peaks_differ(const SweepReport& sweep) {
  double peak = 0;
  for (const SweepVariant& v : sweep.variants) {
    if (!v.has_step()) continue;
    if (peak != 0 && v.peak_tflops != peak) return true;
    peak = v.peak_tflops;
  }
  return false;
}

Row cells_of(const SweepVariant& v, const TimeUnit& unit, bool with_peak, bool is_best) {
  Row row;
  for (const std::string& value : v.values) row.push_back(cut(value, kWidestValue));
  if (v.has_step()) {
    row.push_back(significant(v.step_time_s * unit.per_second, 4));
    row.push_back(format_count(static_cast<std::int64_t>(v.tokens_per_s_per_gpu + 0.5)));
    row.push_back(fmt::format("{:.1f}", v.mfu.full * 100));
    if (with_peak) row.push_back(significant(v.peak_tflops, 4));
    row.push_back(fmt::format("{:.1f}", static_cast<double>(v.device_bytes) / 0x1p30));
  } else {
    row.insert(row.end(), with_peak ? 5 : 4, "-");
  }
  row.push_back(verdict_text(v) + (is_best ? "  <- best" : ""));
  return row;
}

TimeUnit unit_of(const SweepReport& sweep) {
  double longest = 0;
  for (const SweepVariant& v : sweep.variants) longest = std::max(longest, v.step_time_s);
  return time_unit_for(longest);
}

// Header and rows.
std::vector<Row> table_of(const SweepReport& sweep) {
  const TimeUnit unit = unit_of(sweep);
  Row header;
  for (const SweepAxis& axis : sweep.axes) header.push_back(header_of(sweep, axis));
  const bool with_peak = peaks_differ(sweep);
  header.push_back(fmt::format("{}/step", unit.symbol));
  header.emplace_back("tok/s/GPU");
  header.emplace_back("MFU % full");
  if (with_peak) header.emplace_back("of TFLOP/s");
  header.emplace_back("device GiB");
  header.emplace_back("verdict");
  std::vector<Row> rows = {header};
  for (std::size_t i = 0; i < sweep.variants.size(); ++i) {
    rows.push_back(cells_of(sweep.variants[i], unit, with_peak, sweep.best == i));
  }
  return rows;
}

std::string counts_text(const SweepReport& sweep) {
  std::vector<std::string> parts;
  std::size_t all = 0;
  for (std::size_t s = 0; s < sweep.counts.size(); ++s) {
    all += sweep.counts[s];
    if (sweep.counts[s] > 0) {
      const auto status = static_cast<SweepStatus>(s);
      parts.push_back(fmt::format("{} {}", sweep.counts[s], status == SweepStatus::kFits ? "fit" : to_string(status)));
    }
  }
  std::string text = fmt::format("{} variants of {}: {}", format_count(static_cast<std::int64_t>(all)), sweep.subject,
                                 joined(parts, ", "));
  if (sweep.variants.size() < all) text += fmt::format("; {} shown", sweep.variants.size());
  return text;
}

std::string settings_text(const SweepReport& sweep, const SweepVariant& v) {
  std::string text;
  for (std::size_t a = 0; a < sweep.axes.size(); ++a) {
    const std::string setting = sweep.axes[a].field + "=" + v.values[a];
    const bool plain = setting.find_first_of(" \"'|{}[]()*$&;<>") == std::string::npos;
    text += (a == 0 ? "--set " : " --set ") + (plain ? setting : "'" + setting + "'");
  }
  return text;
}

// Why variants have no step, each reason once, the commonest first.
std::string reasons_text(const SweepReport& sweep) {
  constexpr std::size_t kListed = 6;
  std::vector<std::pair<std::string, std::size_t>> reasons;
  for (const SweepVariant& v : sweep.variants) {
    if (v.has_step()) continue;
    const std::string why = why_text(v);
    const auto known = std::find_if(reasons.begin(), reasons.end(), [&why](const auto& r) { return r.first == why; });
    if (known == reasons.end()) {
      reasons.emplace_back(why, 1);
    } else {
      ++known->second;
    }
  }
  std::stable_sort(reasons.begin(), reasons.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (std::size_t i = 0; i < std::min(reasons.size(), kListed); ++i) {
    text += wrapped(fmt::format("{:>5} x", reasons[i].second), 8, reasons[i].first);
  }
  if (reasons.size() > kListed) text += fmt::format("and {} other reasons: --json\n", reasons.size() - kListed);
  return text.empty() ? text : text + "\n";
}

std::string table_text(const SweepReport& sweep) {
  const std::vector<Row> rows = table_of(sweep);
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const Row& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text = counts_text(sweep) + "\n\n";
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i + 1 < row.size(); ++i) line += fmt::format("{:>{}}  ", row[i], widths[i]);
    const std::size_t room = line.size() + 20 < kColumns ? kColumns - line.size() : 20;
    text += line + cut(row.back(), room) + "\n";
  }
  text += "\n" + reasons_text(sweep);
  if (!sweep.best) return text + "best: none fits\n";
  text += "best: the highest tok/s/GPU of those that fit; the simulator is uncalibrated, so near ties are ties\n";
  return text + wrapped("next:", 6, settings_text(sweep, sweep.variants[*sweep.best]));
}

std::string markdown_text(const SweepReport& sweep) {
  const std::vector<Row> rows = table_of(sweep);
  const auto line = [](const Row& row) {
    std::string text = "|";
    for (std::string cell : row) {
      for (std::size_t at = cell.find('|'); at != std::string::npos; at = cell.find('|', at + 2)) cell.insert(at, "\\");
      text += " " + cell + " |";
    }
    return text + "\n";
  };
  std::string text = line(rows.front()) + "|";
  for (std::size_t i = 0; i + 1 < rows.front().size(); ++i) text += "---:|";
  text += "---|\n";
  for (std::size_t i = 1; i < rows.size(); ++i) text += line(rows[i]);
  return text;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string csv_text(const SweepReport& sweep) {
  Row header;
  for (const SweepAxis& axis : sweep.axes) header.push_back(axis.field);
  for (const char* name :
       {"status", "best", "step_time_s", "tokens_per_s_per_gpu", "mfu_full", "mfu_causal", "peak_tflops", "hfu",
        "bubble_fraction", "allocated_bytes", "device_bytes", "over_bytes", "why"}) {
    header.emplace_back(name);
  }
  std::string text;
  const auto add = [&text](const Row& row) {
    for (std::size_t i = 0; i < row.size(); ++i) text += (i == 0 ? "" : ",") + csv_cell(row[i]);
    text += "\n";
  };
  add(header);
  for (std::size_t i = 0; i < sweep.variants.size(); ++i) {
    const SweepVariant& v = sweep.variants[i];
    Row row = v.values;
    row.emplace_back(to_string(v.status));
    row.emplace_back(sweep.best == i ? "1" : "0");
    const double figures[] = {v.step_time_s, v.tokens_per_s_per_gpu, v.mfu.full, v.mfu.causal, v.peak_tflops,
                              v.hfu,         v.bubble_fraction};
    for (const double figure : figures) row.push_back(v.has_step() ? fmt::format("{}", figure) : "");
    row.push_back(v.has_step() ? std::to_string(v.allocated_bytes) : "");
    row.push_back(v.has_step() ? std::to_string(v.device_bytes) : "");
    row.push_back(v.has_step() ? std::to_string(v.over_bytes()) : "");
    row.push_back(v.has_step() ? "" : why_text(v));
    add(row);
  }
  return text;
}

Json problems_json(const SweepVariant& v) {
  Json problems = Json::array();
  for (const Problem& p : v.problems) {
    problems.push_back(
        {{"exit_code", static_cast<int>(p.kind)}, {"message", p.message}, {"field", p.where.field}, {"help", p.help}});
  }
  return problems;
}

Json variant_json(const SweepReport& sweep, const SweepVariant& v) {
  Json settings = Json::object();
  for (std::size_t a = 0; a < sweep.axes.size(); ++a) settings[sweep.axes[a].field] = v.values[a];
  const auto figure = [&v](const Json& value) { return v.has_step() ? value : Json(); };
  return {{"settings", settings},
          {"status", to_string(v.status)},
          {"step_time_s", figure(v.step_time_s)},
          {"tokens_per_s", figure(v.tokens_per_s)},
          {"tokens_per_s_per_gpu", figure(v.tokens_per_s_per_gpu)},
          {"mfu", figure({{"full", v.mfu.full}, {"causal", v.mfu.causal}})},
          {"peak_tflops", figure(v.peak_tflops)},
          {"hfu", figure(v.hfu)},
          {"bubble_fraction", figure(v.bubble_fraction)},
          {"allocated_bytes", figure(v.allocated_bytes)},
          {"device_bytes", figure(v.device_bytes)},
          {"capacity_bytes", figure(v.capacity_bytes)},
          {"over_bytes", figure(v.over_bytes())},
          {"warnings", v.warnings},
          {"problems", problems_json(v)}};
}

std::string json_text(const SweepReport& sweep) {
  Json vary = Json::array();
  for (const SweepAxis& axis : sweep.axes) vary.push_back({{"field", axis.field}, {"values", axis.values}});
  Json counts = Json::object();
  for (std::size_t s = 0; s < sweep.counts.size(); ++s) {
    counts[std::string(to_string(static_cast<SweepStatus>(s)))] = sweep.counts[s];
  }
  Json variants = Json::array();
  for (const SweepVariant& v : sweep.variants) variants.push_back(variant_json(sweep, v));
  return to_text(Json{{"schema", "stepcast/sweep/1"},
                      {"scenario", sweep.subject},
                      {"vary", vary},
                      {"counts", counts},
                      {"best", sweep.best ? Json(*sweep.best) : Json()},
                      {"variants", variants}});
}

}  // namespace

std::string sweep_text(const SweepReport& sweep, SweepFormat format) {
  switch (format) {
    case SweepFormat::kTable:
      return table_text(sweep);
    case SweepFormat::kMarkdown:
      return markdown_text(sweep);
    case SweepFormat::kCsv:
      return csv_text(sweep);
    case SweepFormat::kJson:
      return json_text(sweep);
  }
  CHECK(false, static_cast<int>(format));
}

}  // namespace stepcast::report
