// Columns, rounding and words as nccl-tests has them (NVIDIA/nccl-tests src/common.cu), then how the size is run.
#include "report/coll_output.h"

#include <fmt/format.h>

#include "report/json.h"

namespace stepcast::report {
namespace {

using sim::CollectiveOp;

constexpr std::int64_t kFloat = 4;  // bytes

bool is_split(CollectiveOp op) {
  return op == CollectiveOp::kAllGather || op == CollectiveOp::kReduceScatter || op == CollectiveOp::kAllToAll;
}

const char* reduction(CollectiveOp op) {
  return op == CollectiveOp::kAllReduce || op == CollectiveOp::kReduceScatter ? "sum" : "none";
}

int root(CollectiveOp op) { return op == CollectiveOp::kBroadcast ? 0 : -1; }

double microseconds(const CollRow& row) { return row.transfer.cost.time.seconds() * 1e6; }

// GB/s of 1e9.
double algorithm_bandwidth(const CollRow& row) {
  const double seconds = row.transfer.cost.time.seconds();
  return seconds > 0 ? static_cast<double>(row.size) / seconds / 1e9 : 0;
}

double bus_bandwidth(const CollRow& row) { return row.transfer.cost.bus_bandwidth / 1e9; }

std::string pins_text(const std::map<std::string, std::string>& environment) {
  std::string text;
  for (const auto& [name, value] : environment) text += " " + name + "=" + value;
  return text;
}

}  // namespace

CollRow coll_row(CollectiveOp op, std::int64_t bytes, std::int64_t gpus) {
  if (!is_split(op)) return {bytes / kFloat * kFloat, bytes / kFloat, {}};
  const std::int64_t part = bytes / kFloat / gpus / 4 * 4;
  return {part * gpus * kFloat, part, {}};
}

std::string coll_screen(const CollResult& result) {
  std::string text = fmt::format("# {}: {} GPUs in {} {} of {}, calibration {}{}\n", sim::to_string(result.op),
                                 result.gpus, result.nodes, result.nodes == 1 ? "node" : "nodes", result.cluster,
                                 result.calibration, pins_text(result.environment));
  text += fmt::format("#{:>13} {:>12} {:>6} {:>6} {:>5} {:>11} {:>8} {:>8}  {:<10} {:<8} {:>8}\n", "size", "count",
                      "type", "redop", "root", "time", "algbw", "busbw", "algorithm", "protocol", "channels");
  text += fmt::format("#{:>13} {:>12} {:>6} {:>6} {:>5} {:>11} {:>8} {:>8}\n", "(B)", "(elements)", "", "", "", "(us)",
                      "(GB/s)", "(GB/s)");
  double sum = 0;
  for (const CollRow& row : result.rows) {
    text += fmt::format("{:>14} {:>12} {:>6} {:>6} {:>5} {:>11.2f} {:>8.2f} {:>8.2f}  {:<10} {:<8} {:>8}\n", row.size,
                        row.count, "float", reduction(result.op), root(result.op), microseconds(row),
                        algorithm_bandwidth(row), bus_bandwidth(row), sim::to_string(row.transfer.cost.algorithm),
                        sim::to_string(row.transfer.cost.protocol), row.transfer.channels);
    sum += bus_bandwidth(row);
  }
  if (!result.rows.empty()) {
    text += fmt::format("# Avg bus bandwidth    : {:.4f}\n", sum / static_cast<double>(result.rows.size()));
  }
  return text;
}

std::string coll_json(const CollResult& result) {
  Json json = Json::object();
  json["schema"] = "stepcast/coll/1";
  json["op"] = sim::to_string(result.op);
  json["cluster"] = result.cluster;
  json["gpus"] = result.gpus;
  json["nodes"] = result.nodes;
  json["calibration"] = result.calibration;
  json["environment"] = Json::object();
  for (const auto& [name, value] : result.environment) json["environment"][name] = value;
  json["rows"] = Json::array();
  for (const CollRow& row : result.rows) {
    Json item = Json::object();
    item["size_bytes"] = row.size;
    item["count"] = row.count;
    item["type"] = "float";
    item["redop"] = reduction(result.op);
    item["root"] = root(result.op);
    item["time_us"] = microseconds(row);
    item["algbw_gb_per_s"] = algorithm_bandwidth(row);
    item["busbw_gb_per_s"] = bus_bandwidth(row);
    item["algorithm"] = sim::to_string(row.transfer.cost.algorithm);
    item["protocol"] = sim::to_string(row.transfer.cost.protocol);
    item["channels"] = row.transfer.channels;
    json["rows"].push_back(std::move(item));
  }
  return to_text(json);
}

}  // namespace stepcast::report
