// Fills a rank's parameter shards with their initial values and reads them back, by global element.
//
// Element (r, c) of a [rows, cols] parameter starts as std * normal(seed, name, r * cols + c), or one, rounded to
// binary32 and then to the shard's type: the same for every plan. Moments and gradients start at zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

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

// A buffer of a rank in host memory, until the next call.
using ReadBuffer = std::function<const std::byte*(program::RankId rank, program::BufferId buffer)>;

// A parameter's whole tensor [rows * cols], assembled from the shards of `kind` over `ranks` (f32); elements that none
// of them holds are NaN.
std::vector<float> gather_shards(const program::Program& p, std::span<const program::RankId> ranks,
                                 program::ParameterId parameter, program::ShardKind kind, const ReadBuffer& read);

// The value of the loss view of the first of `ranks` that has one.
std::optional<double> read_loss(const program::Program& p, std::span<const program::RankId> ranks,
                                const ReadBuffer& read);

}  // namespace stepcast::exec
