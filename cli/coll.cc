// stepcast coll: what a collective takes on a cluster, in the columns of nccl-tests.
#include <CLI/CLI.hpp>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "cli/calibration_choice.h"
#include "cli/commands.h"
#include "cli/scenario_options.h"
#include "config/search.h"
#include "config/text.h"
#include "plan/cluster_reader.h"
#include "report/coll_output.h"
#include "sim/cost/analytic.h"
#include "sim/cost/nccl_pins.h"

namespace stepcast::cli {
namespace {

struct CollOptions {
  std::string op;
  std::string cluster;
  std::int64_t gpus = 0;
  std::string begin = "32M";
  std::string end;
  double factor = 2;
  std::string calibration;
  std::vector<std::string> environment;
  bool json = false;
};

constexpr std::array<sim::CollectiveOp, 6> kOps = {sim::CollectiveOp::kAllReduce,     sim::CollectiveOp::kAllGather,
                                                   sim::CollectiveOp::kReduceScatter, sim::CollectiveOp::kBroadcast,
                                                   sim::CollectiveOp::kAllToAll,      sim::CollectiveOp::kSendRecv};

constexpr double kMostBytes = 1e15;

constexpr const char* kCollExamples = R"(Examples
  stepcast coll all_reduce --cluster hgx-h100 --gpus 8 -b 1M -e 8G
  stepcast coll all_gather --cluster hgx-h100-ndr400-rail --gpus 256 -b 1M -e 1G -f 4
  stepcast coll all_reduce --cluster hgx-h100 --gpus 8 -b 1G --env NCCL_NVLS_ENABLE=0

Sizes are those of nccl-tests: 1M is 2^20 bytes; all_gather, reduce_scatter and alltoall count all members' parts.
GPUs are the first ones of the cluster, every node filled before the next.)";

sim::CollectiveOp op_of(const std::string& name) {
  std::vector<std::string> names;
  for (const sim::CollectiveOp op : kOps) {
    if (sim::to_string(op) == name) return op;
    names.emplace_back(sim::to_string(op));
  }
  throw Error(ErrorKind::kUsage, "unknown collective '" + name + "'", {}, {"known: " + config::join(names)});
}

// 8, 1M, 1.5G: a number and a power of 1024.
std::int64_t size_of(const std::string& option, const std::string& text) {
  constexpr std::string_view kSuffixes = "KMGT";
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  bool good = code == std::errc() && rest.size() <= 1 && value >= 0;
  if (good && !rest.empty()) {
    const auto power = kSuffixes.find(static_cast<char>(std::toupper(static_cast<unsigned char>(rest[0]))));
    good = power != std::string_view::npos;
    if (good) value *= std::pow(1024.0, static_cast<double>(power + 1));
  }
  if (good && value <= kMostBytes) return static_cast<std::int64_t>(value);
  throw Error(ErrorKind::kUsage, option + ": '" + text + "' is no size", {},
              {"bytes, or such as 64K, 1M, 8G (powers of 1024)"});
}

std::vector<std::int64_t> sizes_of(const CollOptions& options) {
  const std::int64_t begin = size_of("-b", options.begin);
  const std::int64_t end = options.end.empty() ? begin : size_of("-e", options.end);
  if (begin < 4 || end < begin) {
    const std::string given = "-b " + options.begin + (options.end.empty() ? "" : " and -e " + options.end);
    throw Error(ErrorKind::kUsage, given + (options.end.empty() ? " is no size to start at" : " are no range of sizes"),
                {}, {"4 bytes at least, and -e not below -b"});
  }
  if (!(options.factor > 1)) throw Error(ErrorKind::kUsage, "-f must be above 1", {}, {"-f 2 doubles the size"});
  std::vector<std::int64_t> sizes;
  for (double size = static_cast<double>(begin); size <= static_cast<double>(end);) {
    sizes.push_back(static_cast<std::int64_t>(size));
    size = std::max(std::floor(size * options.factor), size + 1);
    if (sizes.size() > 10'000) throw Error(ErrorKind::kUsage, "more than 10,000 sizes: take a larger -f");
  }
  return sizes;
}

// What is priced of the --env settings; a note names the others.
std::map<std::string, std::string> environment_of(const std::vector<std::string>& settings) {
  std::map<std::string, std::string> environment;
  std::vector<std::string> idle;
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw Error(ErrorKind::kUsage, "--env " + setting + ": expected NAME=VALUE", {},
                  {"such as --env NCCL_ALGO=Ring"});
    }
    const std::string name = setting.substr(0, equals);
    if (sim::is_nccl_pin(name)) {
      environment[name] = setting.substr(equals + 1);
    } else {
      idle.push_back(config::printable(name));
    }
  }
  if (!idle.empty()) std::fprintf(stderr, "note: --env: without influence here: %s\n", config::join(idle).c_str());
  return environment;
}

int coll(const CollOptions& options) {
  report::CollResult result;
  result.op = op_of(options.op);
  if (options.gpus < 2) throw Error(ErrorKind::kUsage, "a collective needs --gpus of at least 2");
  const std::vector<std::int64_t> sizes = sizes_of(options);
  const config::SearchPath search = search_path();
  topology::Cluster cluster = plan::load_cluster(options.cluster, search, options.gpus);
  const sim::Calibration calibration = choose_calibration({.name = options.calibration,
                                                           .device = cluster.node.device.name,
                                                           .beside = "",
                                                           .where = {"command line", 0, "calibration"}},
                                                          search);
  result.cluster = cluster.name;
  result.gpus = options.gpus;
  result.nodes = cluster.nodes;
  result.calibration = calibration.name;
  result.environment = environment_of(options.environment);
  const sim::AnalyticCostModel model(std::move(cluster), calibration, result.environment);
  std::vector<std::int32_t> devices(static_cast<std::size_t>(options.gpus));
  std::iota(devices.begin(), devices.end(), 0);
  const sim::PathClass path = model.path_class(devices);
  for (const std::int64_t size : sizes) {
    report::CollRow row = report::coll_row(result.op, size, options.gpus);
    row.transfer = model.collective(result.op, Bytes(row.size), path);
    result.rows.push_back(row);
  }
  print(options.json ? report::coll_json(result) : report::coll_screen(result));
  return 0;
}

}  // namespace

Command coll_command(CLI::App& parent) {
  const auto options = std::make_shared<CollOptions>();
  CLI::App* app = parent.add_subcommand("coll", "collective times on a cluster, in nccl-tests' columns");
  app->add_option("OP", options->op, "all_reduce, all_gather, reduce_scatter, broadcast, alltoall or sendrecv")
      ->required();
  app->add_option("--cluster", options->cluster, "cluster or node preset, or a file")->required()->type_name("C");
  app->add_option("--gpus", options->gpus, "devices that take part")->required()->type_name("N");
  app->add_option("-b", options->begin, "first size (32M when left out)")->type_name("SIZE");
  app->add_option("-e", options->end, "last size (the first when left out)")->type_name("SIZE");
  app->add_option("-f", options->factor, "from a size to the next (2 when left out)")->type_name("FACTOR");
  app->add_option("--calibration", options->calibration, "constants to use: a name or a file")->type_name("F");
  app->add_option("--env", options->environment, "a variable of NCCL, such as NCCL_ALGO=Ring; may be repeated")
      ->type_name("K=V")
      ->allow_extra_args(false)
      ->take_all();
  app->add_flag("--json", options->json, "one JSON object on standard output");
  app->footer(kCollExamples);
  return {app, [options] { return coll(*options); }};
}

}  // namespace stepcast::cli
