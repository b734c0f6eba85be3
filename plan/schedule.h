// Pipeline schedules as pass lists: for each pipeline rank, the order in which it runs the forward and backward passes
// of its chunks. Lowering turns passes into calls; nothing here knows layers, sizes or times.
//
// Sources: GPipe (arXiv 1811.06965); 1F1B (PipeDream-flush, arXiv 2006.09503); interleaved 1F1B as Megatron-Core orders
// it (arXiv 2104.04473; megatron/core/pipeline_parallel/schedules.py, get_schedule_table).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/scenario.h"

namespace stepcast::plan {

enum class PassKind : std::uint8_t { kForward, kBackward };

struct PassItem {
  PassKind kind = PassKind::kForward;
  std::uint16_t chunk = 0;  // local to the rank, 0 .. vp-1
  std::uint32_t microbatch = 0;
  bool operator==(const PassItem&) const = default;
};

struct ScheduleShape {
  ScheduleKind kind = ScheduleKind::k1F1B;
  std::int32_t ranks = 1;         // P
  std::int32_t chunks = 1;        // v per rank; 1 unless interleaved
  std::int64_t microbatches = 1;  // M
  std::int32_t group = 1;         // G: microbatches per chunk turn, interleaved only
};

// The pass list of pipeline rank `rank`. Does not judge the shape: a group below P yields the list that deadlocks, for
// program/check to refuse.
std::vector<PassItem> pass_list(const ScheduleShape& shape, std::int32_t rank);

// Forward passes before the first backward on `rank` (interleaved: in chunk-microbatches): Megatron's warm-up count.
std::int64_t warmup_passes(const ScheduleShape& shape, std::int32_t rank);

// A pass list with its communication: what a rank does, step by step. Virtual stage s = chunk * P + rank sits on rank
// s mod P. A receive comes right before the pass that needs it and a send right after the pass that makes it; both run
// on streams of their own, so neither blocks later passes.
enum class StepKind : std::uint8_t { kPass, kReceiveActivation, kSendActivation, kReceiveGradient, kSendGradient };
struct PipelineStep {
  StepKind kind = StepKind::kPass;
  PassItem pass;
};
std::vector<PipelineStep> pipeline_steps(const ScheduleShape& shape, std::int32_t rank);

// "F0.1 B2.0 ...": kind, virtual stage, microbatch.
std::string to_text(const std::vector<PassItem>& passes, const ScheduleShape& shape, std::int32_t rank);

}  // namespace stepcast::plan
