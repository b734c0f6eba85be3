// The event engine: runs a workload in time order and records when everything happened.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/engine/workload.h"
#include "sim/free.h"
#include "sim/jitter.h"
#include "sim/watch.h"

namespace stepcast::sim {

// One of the samples of a jitter.
struct JitterDraw {
  JitterOptions options;
  std::uint64_t sample = 0;
};

struct EngineOptions {
  bool contention = true;
  Free free = Free::kNothing;
  std::optional<JitterDraw> jitter = std::nullopt;
  Watch watch{};
};

// Throws InternalError naming what waits if something never completes, which a checked Program cannot do.
Timeline run_engine(const Workload& w, const EngineOptions& options);

// The same times without contention from the longest paths of the matched graph, by other means: the engine's oracle.
// Jitter and contention of the options must be off.
Timeline relax_times(const Workload& w, const EngineOptions& options);

// What an op or a transfer takes alone, options considered.
class AloneTimes {
 public:
  AloneTimes(const Workload& w, const EngineOptions& options);

  Duration launch(const PricedOp& op) const { return options_.free == Free::kHost ? Duration() : op.launch; }
  Duration local(const RankShape& shape, std::uint32_t op_in_rank, std::uint32_t op) const {
    const Duration alone = free_local_ && is_free(shape, op_in_rank) ? Duration() : shape.ops[op_in_rank].local.time;
    return options_.jitter ? jittered(alone, op, false) : alone;
  }
  // Costs nothing in this what-if: no time, and nothing of the device.
  bool is_free_transfer(std::uint32_t t) const {
    return free_exposed_ && w_.lane_of_transfer(t).exposed == *free_exposed_;
  }
  Duration transfer(std::uint32_t t) const {
    const Duration alone = is_free_transfer(t) ? Duration() : w_.price_of(t).cost.time;
    return options_.jitter ? jittered(alone, t, true) : alone;
  }

 private:
  bool is_free(const RankShape& shape, std::uint32_t op_in_rank) const;
  Duration jittered(Duration alone, std::uint32_t subject, bool communication) const;

  const Workload& w_;
  EngineOptions options_;
  bool free_local_ = false;
  std::optional<Exposed> free_exposed_;
};

}  // namespace stepcast::sim
