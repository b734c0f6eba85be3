// Pass lists of GPipe, 1F1B and interleaved 1F1B, and the point-to-point steps around them.
#include "plan/schedule.h"

#include <algorithm>
#include <string>

#include "base/check.h"

namespace stepcast::plan {
namespace {

PassItem forward(std::int64_t chunk, std::int64_t microbatch) {
  return {PassKind::kForward, static_cast<std::uint16_t>(chunk), static_cast<std::uint32_t>(microbatch)};
}

PassItem backward(std::int64_t chunk, std::int64_t microbatch) {
  return {PassKind::kBackward, static_cast<std::uint16_t>(chunk), static_cast<std::uint32_t>(microbatch)};
}

struct ChunkMicrobatch {
  std::int64_t chunk = 0;
  std::int64_t microbatch = 0;
};

// Megatron's table: for each group of G microbatches, chunk by chunk, the microbatches of the group.
std::vector<ChunkMicrobatch> interleaved_table(const ScheduleShape& s) {
  std::vector<ChunkMicrobatch> table;
  table.reserve(static_cast<std::size_t>(s.microbatches * s.chunks));
  for (std::int64_t first = 0; first < s.microbatches; first += s.group) {
    const std::int64_t last = std::min<std::int64_t>(first + s.group, s.microbatches);
    for (std::int64_t chunk = 0; chunk < s.chunks; ++chunk) {
      for (std::int64_t m = first; m < last; ++m) table.push_back({chunk, m});
    }
  }
  return table;
}

std::vector<PassItem> gpipe(const ScheduleShape& s) {
  std::vector<PassItem> passes;
  for (std::int64_t m = 0; m < s.microbatches; ++m) passes.push_back(forward(0, m));
  for (std::int64_t m = 0; m < s.microbatches; ++m) passes.push_back(backward(0, m));
  return passes;
}

// Warm-up forwards, then one forward and one backward in turn, then the remaining backwards.
std::vector<PassItem> one_forward_one_backward(const ScheduleShape& s, std::int32_t rank) {
  const std::vector<ChunkMicrobatch> table = interleaved_table(s);
  const auto total = static_cast<std::int64_t>(table.size());
  const std::int64_t warmup = warmup_passes(s, rank);
  const auto forward_at = [&](std::int64_t k) {
    const ChunkMicrobatch& e = table[static_cast<std::size_t>(k)];
    return forward(e.chunk, e.microbatch);
  };
  const auto backward_at = [&](std::int64_t k) {
    const ChunkMicrobatch& e = table[static_cast<std::size_t>(k)];
    return backward(s.chunks - 1 - e.chunk, e.microbatch);
  };
  std::vector<PassItem> passes;
  passes.reserve(2 * table.size());
  for (std::int64_t k = 0; k < warmup; ++k) passes.push_back(forward_at(k));
  for (std::int64_t k = 0; k + warmup < total; ++k) {
    passes.push_back(forward_at(k + warmup));
    passes.push_back(backward_at(k));
  }
  for (std::int64_t k = total - warmup; k < total; ++k) passes.push_back(backward_at(k));
  return passes;
}

}  // namespace

std::int64_t warmup_passes(const ScheduleShape& s, std::int32_t rank) {
  const std::int64_t total = s.microbatches * s.chunks;
  const std::int64_t later_ranks = s.ranks - rank - 1;
  switch (s.kind) {
    case ScheduleKind::kGpipe:
      return total;
    case ScheduleKind::k1F1B:
      return std::min(later_ranks, total);
    case ScheduleKind::kInterleaved1F1B:
      return std::min(2 * later_ranks + std::int64_t{s.chunks - 1} * s.group, total);
  }
  return 0;
}

std::vector<PassItem> pass_list(const ScheduleShape& s, std::int32_t rank) {
  CHECK(s.ranks >= 1 && s.chunks >= 1 && s.microbatches >= 1, s.ranks, s.chunks, s.microbatches);
  CHECK(rank >= 0 && rank < s.ranks, rank, s.ranks);
  CHECK(s.kind == ScheduleKind::kInterleaved1F1B || s.chunks == 1, s.chunks);
  if (s.kind == ScheduleKind::kGpipe) return gpipe(s);
  ScheduleShape shape = s;
  if (s.kind == ScheduleKind::k1F1B) shape.group = 1;
  CHECK(shape.group >= 1, shape.group);
  return one_forward_one_backward(shape, rank);
}

std::vector<PipelineStep> pipeline_steps(const ScheduleShape& s, std::int32_t rank) {
  std::vector<PipelineStep> steps;
  const std::int64_t last_stage = std::int64_t{s.ranks} * s.chunks - 1;
  // Neighbouring stages share a rank only when there is one rank: then nothing is sent.
  const bool alone = s.ranks == 1;
  for (const PassItem& pass : pass_list(s, rank)) {
    const std::int64_t stage = std::int64_t{pass.chunk} * s.ranks + rank;
    const bool is_forward = pass.kind == PassKind::kForward;
    const bool receives = !alone && (is_forward ? stage > 0 : stage < last_stage);
    const bool sends = !alone && (is_forward ? stage < last_stage : stage > 0);
    if (receives) steps.push_back({is_forward ? StepKind::kReceiveActivation : StepKind::kReceiveGradient, pass});
    steps.push_back({StepKind::kPass, pass});
    if (sends) steps.push_back({is_forward ? StepKind::kSendActivation : StepKind::kSendGradient, pass});
  }
  return steps;
}

std::string to_text(const std::vector<PassItem>& passes, const ScheduleShape& s, std::int32_t rank) {
  std::string text;
  for (const PassItem& pass : passes) {
    if (!text.empty()) text += ' ';
    text += pass.kind == PassKind::kForward ? 'F' : 'B';
    text += std::to_string(std::int64_t{pass.chunk} * s.ranks + rank) + "." + std::to_string(pass.microbatch);
  }
  return text;
}

}  // namespace stepcast::plan
