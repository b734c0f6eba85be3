// Layouts: the even rule, the layout string, the list.
#include "plan/layout.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "config/text.h"

namespace stepcast::plan {
namespace {

constexpr std::size_t kMaxExpanded = 1'000'000;  // characters: 2^24 ranks do not pipeline that deep
constexpr int kMaxNesting = 8;

LayoutResult refuse(std::string problem, std::vector<std::string> help = {}) {
  return LayoutResult{{}, std::move(problem), std::move(help), ErrorKind::kInput};
}

// Expands the repeats of a layout string. A cursor over the text, without recursion deeper than kMaxNesting.
class Expander {
 public:
  explicit Expander(std::string_view text) : text_(text) {}

  std::string expand() {
    std::string result = sequence(0);
    if (problem_.empty() && at_ < text_.size()) fail("has a \")\" without \"(\"");
    return result;
  }
  const std::string& problem() const { return problem_; }

 private:
  void fail(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
  }

  std::string sequence(int depth) {
    std::string result;
    if (depth > kMaxNesting) fail("nests deeper than " + std::to_string(kMaxNesting));
    while (problem_.empty() && at_ < text_.size() && text_[at_] != ')') {
      std::string unit = one_unit(depth);
      const std::size_t times = repeat();
      if (problem_.empty() &&
          (unit.size() * times > kMaxExpanded || result.size() + unit.size() * times > kMaxExpanded)) {
        fail("is longer than " + std::to_string(kMaxExpanded) + " characters when expanded");
      }
      for (std::size_t i = 0; i < times && problem_.empty(); ++i) result += unit;
    }
    return result;
  }

  std::string one_unit(int depth) {
    const char c = text_[at_++];
    if (c == '(') {
      std::string inner = sequence(depth + 1);
      if (at_ >= text_.size()) fail("has a \"(\" without \")\"");
      ++at_;
      return inner;
    }
    if (c == ',' || c == ' ') return "";
    if (std::string_view("EtLm|").find(c) == std::string_view::npos) {
      fail("has \"" + config::printable(std::string_view(&c, 1)) + "\", which is none of E t L m | ( ) * ,");
    }
    return std::string(1, c);
  }

  std::size_t repeat() {
    if (at_ >= text_.size() || text_[at_] != '*') return 1;
    std::size_t end = ++at_;
    while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
    const auto times = config::parse_integer(text_.substr(at_, end - at_));
    at_ = end;
    if (!times || *times < 1 || *times > static_cast<std::int64_t>(kMaxExpanded)) {
      fail("repeats by something other than a number from 1 to " + std::to_string(kMaxExpanded));
      return 1;
    }
    return static_cast<std::size_t>(*times);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string problem_;
};

// One choice of uneven counts: L + 2 items dealt out evenly, earlier stages take the remainder.
std::string uneven_choice(std::int64_t layers, std::int64_t stages) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(stages), (layers + 2) / stages);
  for (std::int64_t i = 0; i < (layers + 2) % stages; ++i) ++counts[static_cast<std::size_t>(1 + i) % counts.size()];
  --counts.front();
  --counts.back();
  std::vector<std::string> words;
  for (const std::int64_t count : counts) {
    if (count < 0) return "";
    words.push_back(std::to_string(count));
  }
  return "[" + config::join(words) + "]";
}

// Only what also fits the ranks: pp divides them, and virtual stages need a pipeline.
std::vector<std::string> stage_choices(std::int64_t layers, std::int64_t pp, std::int64_t vp,
                                       std::int64_t pipeline_ranks) {
  const auto fits = [&](std::int64_t candidate) {
    return (pipeline_ranks == 0 || pipeline_ranks % candidate == 0) && (candidate > 1 || vp == 1);
  };
  std::vector<std::string> help;
  for (const std::int64_t items : {layers, layers + 2}) {
    std::vector<std::string> degrees;
    for (std::int64_t candidate = 1; candidate <= std::min<std::int64_t>(items, 64); ++candidate) {
      if (items % (candidate * vp) == 0 && fits(candidate)) degrees.push_back(std::to_string(candidate));
    }
    if (degrees.empty()) continue;
    const std::string with = vp > 1 ? " with vp " + std::to_string(vp) : "";
    help.push_back("plan.pp " + config::join(degrees) + with + ": divides " + std::to_string(items) +
                   (items == layers ? " layers" : " (embedding and loss counted as layers)"));
  }
  if (pp * vp <= 64 && pp * vp <= layers && fits(pp)) {
    const std::string uneven = uneven_choice(layers, pp * vp);
    if (!uneven.empty()) help.push_back("plan.layout: " + uneven);
  }
  return help;
}

}  // namespace

LayoutResult auto_layout(std::int64_t layers, std::int64_t pp, std::int64_t vp, std::int64_t pipeline_ranks) {
  CHECK(layers >= 1 && pp >= 1 && vp >= 1, layers, pp, vp);
  const std::int64_t stages = pp * vp;
  CHECK(stages < (std::int64_t{1} << 31), pp, vp);
  LayoutResult result;
  if (layers % stages == 0) {
    result.layers.assign(static_cast<std::size_t>(stages), layers / stages);
  } else if (stages > 1 && (layers + 2) % stages == 0) {
    result.layers.assign(static_cast<std::size_t>(stages), (layers + 2) / stages);
    --result.layers.front();
    --result.layers.back();
  } else {
    const std::string split = vp > 1 ? std::to_string(stages) + " virtual stages (pp " + std::to_string(pp) + " x vp " +
                                           std::to_string(vp) + ")"
                                     : std::to_string(stages) + " stages (pp " + std::to_string(pp) + ")";
    return refuse(std::to_string(layers) + " layers do not divide over " + split + ": " + std::to_string(layers) +
                      " mod " + std::to_string(stages) + " = " + std::to_string(layers % stages) + ", and " +
                      std::to_string(layers + 2) + " mod " + std::to_string(stages) + " = " +
                      std::to_string((layers + 2) % stages) + " with embedding and loss",
                  stage_choices(layers, pp, vp, pipeline_ranks));
  }
  return result;
}

LayoutResult parse_layout(std::string_view text) {
  const std::string shown = "the layout \"" + config::printable(text) + "\" ";
  Expander expander(text);
  const std::string items = expander.expand();
  if (!expander.problem().empty()) return refuse(shown + expander.problem(), {"an example: Et*3|(tt|)*6,tL"});
  if (items.find('m') != std::string::npos) {
    LayoutResult result = refuse(shown + "places multi-token prediction layers (m)");
    result.kind = ErrorKind::kUnsupported;
    return result;
  }
  const bool framed = items.size() >= 2 && items.front() == 'E' && items.back() == 'L' &&
                      std::count(items.begin(), items.end(), 'E') == 1 &&
                      std::count(items.begin(), items.end(), 'L') == 1;
  if (!framed) return refuse(shown + "must begin with its only E and end with its only L", {"an example: Ett|tt|ttL"});
  LayoutResult result;
  result.layers.push_back(0);
  for (const char c : items) {
    if (c == '|') result.layers.push_back(0);
    if (c == 't') ++result.layers.back();
  }
  return result;
}

LayoutResult list_layout(const std::vector<std::string>& counts) {
  LayoutResult result;
  for (const std::string& text : counts) {
    const auto count = config::parse_integer(text);
    if (!count || *count < 0 || *count > 100'000) {
      return refuse("\"" + config::printable(text) + "\" in the layout is not a number of layers from 0 to 100000");
    }
    result.layers.push_back(*count);
  }
  if (result.layers.empty()) return refuse("the layout is an empty list");
  return result;
}

std::vector<Plan::StageItems> stage_items(const std::vector<std::int64_t>& layers) {
  std::vector<Plan::StageItems> layout;
  std::int64_t first = 0;
  for (const std::int64_t count : layers) {
    layout.push_back(Plan::StageItems{false, first, count, false});
    first += count;
  }
  if (!layout.empty()) {
    layout.front().embedding = true;
    layout.back().loss = true;
  }
  return layout;
}

std::string layout_text(const std::vector<Plan::StageItems>& layout) {
  std::string text;
  for (std::size_t i = 0; i < layout.size();) {
    const Plan::StageItems& stage = layout[i];
    std::size_t same = i + 1;
    const auto alike = [&](const Plan::StageItems& other) {
      return other.layers == stage.layers && other.embedding == stage.embedding && other.loss == stage.loss;
    };
    while (same < layout.size() && alike(layout[same])) ++same;
    if (i > 0) text += " | ";
    text += (stage.embedding ? "E+" : "") + std::to_string(stage.layers) + (stage.loss ? "+L" : "");
    if (same - i > 1) text += " x" + std::to_string(same - i);
    i = same;
  }
  return text;
}

}  // namespace stepcast::plan
