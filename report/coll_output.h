// `coll` on screen and as JSON: collective times in the columns of nccl-tests, and how NCCL runs each size.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/cost/collective_time.h"

namespace stepcast::report {

struct CollRow {
  std::int64_t size = 0;   // bytes as nccl-tests defines it
  std::int64_t count = 0;  // float elements: of the buffer; of a member's part where it is split
  sim::PricedTransfer transfer;
};

struct CollResult {
  sim::CollectiveOp op = sim::CollectiveOp::kAllReduce;
  std::string cluster;
  std::int64_t gpus = 0;
  std::int64_t nodes = 0;
  std::string calibration;
  std::map<std::string, std::string> environment;
  std::vector<CollRow> rows;
};

// Of a message of about `bytes` on `gpus`: nccl-tests rounds so that every member's part is whole 16 bytes. Without the
// transfer.
CollRow coll_row(sim::CollectiveOp op, std::int64_t bytes, std::int64_t gpus);

std::string coll_screen(const CollResult& result);
// Schema stepcast/coll/1: {schema, op, cluster, gpus, nodes, calibration, environment, rows [{size_bytes, count, type,
// redop, root, time_us, algbw_gb_per_s, busbw_gb_per_s, algorithm, protocol, channels}]}.
std::string coll_json(const CollResult& result);

}  // namespace stepcast::report
