// Fills a rank's parameter shards with their initial values and reads them back, by global element.
//
// Element (r, c) of a [rows, cols] parameter starts as std * normal(seed, name, r * cols + c), or one, rounded to
// binary32 and then to the shard's type: the same for every plan. Moments and gradients start at zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "program/program.h"

namespace stepcast::exec {

// Calls visit(global element, stored element) for each element of the parameter that `shard` holds on `rank`; stored
// elements count from the shard's byte offset.
void visit_elements(const program::Parameter& parameter, const program::ParameterShard& shard,
                    const program::Rank& rank,
                    const std::function<void(std::int64_t global, std::int64_t stored)>& visit);

// Writes the initial values of the shard into its buffer's memory; weights and masters only, the rest is left as it is.
void fill_shard(const program::Program& p, const program::ParameterShard& shard, const program::Rank& rank,
                std::byte* buffer, std::int64_t buffer_bytes);

}  // namespace stepcast::exec
