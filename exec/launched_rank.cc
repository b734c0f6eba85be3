// See launched_rank.h.
#include "exec/launched_rank.h"

#include <charconv>
#include <string_view>

#include "base/error.h"

namespace stepcast::exec {
namespace {

constexpr int kMostRanks = 1 << 24;
constexpr std::size_t kMostHosts = 1000000;
constexpr int kHighestPort = 65535;

struct Named {
  std::string launcher;
  const Environment& variable;
};

std::string text_of(const Named& from, const char* name) {
  const char* const text = from.variable(name);
  if (text == nullptr || *text == '\0') {
    throw Error(ErrorKind::kEnvironment, from.launcher + " has not set " + name, {},
                {"start all ranks by " + from.launcher + ", or none"});
  }
  return text;
}

bool parse(std::string_view text, int& number) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc{} && end == text.data() + text.size();
}

int number_of(const Named& from, const char* name, int least, int most) {
  const std::string text = text_of(from, name);
  int number = 0;
  if (parse(text, number) && number >= least && number <= most) return number;
  throw Error(ErrorKind::kEnvironment,
              std::string(name) + " is '" + text + "', not a number from " + std::to_string(least) + " to " +
                  std::to_string(most),
              {}, {"these variables are set by " + from.launcher});
}

bool is_set(const Environment& variable, const char* name) {
  const char* const text = variable(name);
  return text != nullptr && *text != '\0';
}

// A batch script has a number among tasks too; its step's, where it has one, is among the last of 32 bits.
bool is_step_of_srun(const Environment& variable) {
  int step = 0;
  return is_set(variable, "SLURM_PROCID") && is_set(variable, "SLURM_STEP_ID") &&
         parse(variable("SLURM_STEP_ID"), step);
}

LaunchedRank torchrun_rank(const Environment& variable) {
  const Named from{"torchrun", variable};
  LaunchedRank rank;
  rank.launcher = from.launcher;
  rank.size = number_of(from, "WORLD_SIZE", 1, kMostRanks);
  rank.rank = number_of(from, "RANK", 0, rank.size - 1);
  rank.local_rank = number_of(from, "LOCAL_RANK", 0, rank.size - 1);
  rank.host = text_of(from, "MASTER_ADDR");
  rank.port = number_of(from, "MASTER_PORT", 1, kHighestPort - 1) + 1;
  return rank;
}

LaunchedRank srun_rank(const Environment& variable) {
  constexpr int kFirstPort = 20000;
  constexpr int kPorts = 10000;
  const Named from{"srun", variable};
  LaunchedRank rank;
  rank.launcher = from.launcher;
  rank.size = number_of(from, "SLURM_NTASKS", 1, kMostRanks);
  rank.rank = number_of(from, "SLURM_PROCID", 0, rank.size - 1);
  rank.local_rank = number_of(from, "SLURM_LOCALID", 0, rank.size - 1);
  const bool step = is_set(variable, "SLURM_STEP_NODELIST");
  rank.host = hosts_of(text_of(from, step ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST")).front();
  rank.port = kFirstPort + number_of(from, "SLURM_JOB_ID", 0, 2147483647) % kPorts;
  return rank;
}

[[noreturn]] void refuse_list(const std::string& list) {
  throw Error(ErrorKind::kEnvironment, "'" + list.substr(0, 80) + "' is no list of hosts", {},
              {"Slurm's form, such as n[001-004,7],login"});
}

// "001-004" or "7", behind `prefix` and before `suffix`.
void add_range(const std::string& list, std::string_view range, const std::string& prefix, const std::string& suffix,
               std::vector<std::string>& hosts) {
  const std::size_t dash = range.find('-');
  const std::string_view low = range.substr(0, dash);
  int first = 0;
  if (low.empty() || !parse(low, first) || first < 0) refuse_list(list);
  int last = first;
  if (dash != std::string_view::npos && !parse(range.substr(dash + 1), last)) refuse_list(list);
  if (last < first || static_cast<std::size_t>(last - first) >= kMostHosts - hosts.size()) refuse_list(list);
  for (int number = first; number <= last; ++number) {
    std::string digits = std::to_string(number);
    if (digits.size() < low.size()) digits.insert(0, low.size() - digits.size(), '0');
    hosts.push_back(prefix + digits + suffix);
  }
}

// One item between the commas outside brackets.
void add_item(const std::string& list, const std::string& item, std::vector<std::string>& hosts) {
  const std::size_t open = item.find('[');
  const std::size_t close = item.find(']');
  if (open == std::string::npos && close == std::string::npos) {
    if (item.empty() || hosts.size() >= kMostHosts) refuse_list(list);
    hosts.push_back(item);
    return;
  }
  if (open == std::string::npos || close == std::string::npos || close < open) refuse_list(list);
  const std::string suffix = item.substr(close + 1);
  if (suffix.find_first_of("[]") != std::string::npos) refuse_list(list);
  std::string_view ranges = std::string_view(item).substr(open + 1, close - open - 1);
  while (true) {
    const std::size_t comma = ranges.find(',');
    add_range(list, ranges.substr(0, comma), item.substr(0, open), suffix, hosts);
    if (comma == std::string_view::npos) return;
    ranges.remove_prefix(comma + 1);
  }
}

}  // namespace

std::optional<LaunchedRank> launched_rank(const Environment& variable) {
  std::optional<LaunchedRank> rank;
  if (is_set(variable, "RANK") && is_set(variable, "WORLD_SIZE")) {
    rank = torchrun_rank(variable);
  } else if (is_step_of_srun(variable)) {
    rank = srun_rank(variable);
  }
  if (!rank) return rank;
  const Named from{rank->launcher, variable};
  if (is_set(variable, "STEPCAST_PORT")) rank->port = number_of(from, "STEPCAST_PORT", 1, kHighestPort);
  if (is_set(variable, "STEPCAST_HOST")) rank->host = text_of(from, "STEPCAST_HOST");
  return rank;
}

std::vector<std::string> hosts_of(const std::string& list) {
  std::vector<std::string> hosts;
  std::string item;
  int depth = 0;
  for (const char c : list) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (depth < 0 || depth > 1) refuse_list(list);
    if (c == ',' && depth == 0) {
      add_item(list, item, hosts);
      item.clear();
    } else {
      item += c;
    }
  }
  add_item(list, item, hosts);
  return hosts;
}

}  // namespace stepcast::exec
