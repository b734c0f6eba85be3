// Which collectives a step issues, counted from the Program: no cost model takes part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/program.h"
#include "sim/prediction.h"

namespace stepcast::report {

// Collectives of one kind, group and size. `bytes` is the message as program/ops/rules defines it: an all-reduce's
// buffer, an all-gather's or reduce-scatter's whole.
struct CollectiveCount {
  std::string group;       // name of the role: tp, dp, ...
  std::string op;          // all_reduce, ...
  std::int64_t bytes = 0;  // of one of them
  std::int64_t count = 0;  // per step and rank, of the class of ranks that issues most of them
  bool operator==(const CollectiveCount&) const = default;
};

// By group, then op, then size, the largest first.
std::vector<CollectiveCount> count_collectives(const program::Program& p, const sim::Prediction& prediction);

}  // namespace stepcast::report
