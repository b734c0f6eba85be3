// Words to flags. An unknown word is an error here although NCCL skips it: a typo would pin nothing, or all.
#include "sim/cost/nccl_pins.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace stepcast::sim {
namespace {

constexpr std::int32_t kMostCtas = 64;  // NCCL's MAXCHANNELS

using Word = std::pair<std::string_view, std::size_t>;

constexpr std::array<Word, 7> kAlgorithmWords = {{
    {"Tree", static_cast<std::size_t>(Algorithm::kTree)},
    {"Ring", static_cast<std::size_t>(Algorithm::kRing)},
    {"CollnetDirect", static_cast<std::size_t>(Algorithm::kCollnetDirect)},
    {"CollnetChain", static_cast<std::size_t>(Algorithm::kCollnetChain)},
    {"NVLS", static_cast<std::size_t>(Algorithm::kNvls)},
    {"NVLSTree", static_cast<std::size_t>(Algorithm::kNvlsTree)},
    {"PAT", static_cast<std::size_t>(Algorithm::kPat)},
}};

constexpr std::array<Word, 3> kProtocolWords = {{
    {"LL", static_cast<std::size_t>(Protocol::kLl)},
    {"LL128", static_cast<std::size_t>(Protocol::kLl128)},
    {"Simple", static_cast<std::size_t>(Protocol::kSimple)},
}};

std::string lower_case(std::string_view text) {
  std::string low(text);
  std::transform(low.begin(), low.end(), low.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return low;
}

std::string trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return std::string(text);
}

std::string words_text(std::span<const Word> words) {
  std::string text;
  for (const Word& word : words) text += (text.empty() ? "" : ", ") + std::string(word.first);
  return text;
}

std::vector<std::string> items_of(std::string_view list) {
  std::vector<std::string> items;
  while (true) {
    const std::size_t comma = list.find(',');
    items.push_back(trimmed(list.substr(0, comma)));
    if (comma == std::string_view::npos) return items;
    list.remove_prefix(comma + 1);
  }
}

// Sets `flags` (all but the first, which stands for none) by a list or an exclusion.
void read_list(const std::string& variable, const Location& where, const std::string& given,
               std::span<const Word> words, std::span<bool> flags, ProblemList& problems) {
  if (given.find_first_of(":;") != std::string::npos) {
    problems.add(ErrorKind::kUnsupported, variable + ": a list per collective is known, not supported yet", where,
                 {"one list for all: " + words_text(words)});
    return;
  }
  std::string_view list = given;
  const bool excludes = list.starts_with('^');
  if (excludes) list.remove_prefix(1);
  std::fill(flags.begin() + 1, flags.end(), excludes);
  for (const std::string& item : items_of(list)) {
    const auto word = std::find_if(words.begin(), words.end(),
                                   [&](const Word& w) { return lower_case(w.first) == lower_case(item); });
    if (word != words.end()) {
      flags[word->second] = !excludes;
      continue;
    }
    problems.add(ErrorKind::kInput, variable + ": unknown word '" + item + "'", where,
                 {"a list of " + words_text(words) + ", or ^ and the list of those not to use"});
  }
}

std::int32_t read_number(const std::string& variable, const Location& where, const std::string& given,
                         std::int32_t least, std::int32_t most, ProblemList& problems) {
  std::int32_t value = 0;
  const std::string text = trimmed(given);
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = code == std::errc() && end == text.data() + text.size();
  if (whole && value >= least && value <= most) return value;
  problems.add(ErrorKind::kInput, variable + ": expected a whole number, not '" + given + "'", where,
               {std::to_string(least) + " to " + std::to_string(most)});
  return least;
}

}  // namespace

bool is_nccl_pin(std::string_view name) {
  constexpr std::array<std::string_view, 4> kPins = {"NCCL_ALGO", "NCCL_MAX_CTAS", "NCCL_NVLS_ENABLE", "NCCL_PROTO"};
  return std::find(kPins.begin(), kPins.end(), name) != kPins.end();
}

NcclPins parse_nccl_pins(const std::map<std::string, std::string>& environment, const PinLocations& where) {
  NcclPins pins;
  ProblemList problems;
  const auto given = [&](const char* name) {
    const auto it = environment.find(name);
    return it == environment.end() ? nullptr : &it->second;
  };
  const auto at = [&](const char* name) {
    const auto it = where.find(name);
    return it == where.end() ? Location{"", 0, name} : it->second;
  };
  for (const char* name : {"NCCL_NVLS_ENABLE", "NCCL_PROTO", "NCCL_ALGO"}) {
    if (given(name) != nullptr) pins.where = at(name);
  }
  if (const std::string* text = given("NCCL_ALGO")) {
    read_list("NCCL_ALGO", at("NCCL_ALGO"), *text, kAlgorithmWords, pins.algorithms, problems);
  }
  if (const std::string* text = given("NCCL_PROTO")) {
    read_list("NCCL_PROTO", at("NCCL_PROTO"), *text, kProtocolWords, pins.protocols, problems);
    pins.protocols_given = true;
  }
  // 2, NCCL's default, means where the hardware has it; here 1 does too.
  if (const std::string* text = given("NCCL_NVLS_ENABLE")) {
    pins.nvls = read_number("NCCL_NVLS_ENABLE", at("NCCL_NVLS_ENABLE"), *text, 0, 2, problems) != 0;
  }
  if (const std::string* text = given("NCCL_MAX_CTAS")) {
    pins.max_ctas = read_number("NCCL_MAX_CTAS", at("NCCL_MAX_CTAS"), *text, 1, kMostCtas, problems);
  }
  problems.throw_if_any();
  return pins;
}

}  // namespace stepcast::sim
