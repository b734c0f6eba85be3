// Random small plans within the rules: every degree, schedule, sharding, recompute and layer the lowering knows,
// up to 8 ranks.
#pragma once

#include <cstdint>
#include <string>

#include "base/random.h"
#include "tests/plan/tiny_scenario.h"

namespace stepcast::plan::testing {

// Half of the plans are of the Llama kind, the others a mixture of what GPT-style decoders have.
inline void draw_kind(TinyPlan& p, std::uint64_t seed, std::uint64_t i) {
  const RandomStream random(seed, "kind" + std::to_string(i));
  if (random.integer_at(0, 2) == 0) return;
  p.norm = static_cast<models::NormKind>(random.integer_at(1, 2));
  constexpr models::Activation kActivations[] = {models::Activation::kSilu, models::Activation::kGeluTanh,
                                                 models::Activation::kSquaredRelu};
  p.activation = kActivations[random.integer_at(2, 3)];
  p.positions = static_cast<models::PositionKind>(random.integer_at(3, 4));
  p.biases = random.integer_at(4, 2) == 1;
  p.qk_norm = random.integer_at(7, 2) == 1 ? models::QkNorm::kPerHead : models::QkNorm::kNone;
  p.dropout = random.integer_at(5, 2) == 1 ? 0.1 : 0;
  p.attention = static_cast<AttentionKind>(random.integer_at(6, 2));
}

// A third of the plans whose ranks and layers allow it split their sequences, over two or four members.
inline void draw_context(TinyPlan& p, const TinyShape& shape, std::uint64_t seed, std::uint64_t i) {
  const RandomStream random(seed, "context" + std::to_string(i));
  const auto cp = static_cast<std::int32_t>(2 << random.integer_at(1, 2));
  if (random.integer_at(0, 3) != 0 || p.tp * p.pp * p.dp * cp > 8) return;
  if (p.positions != models::PositionKind::kRotary || p.attention != AttentionKind::kFused) return;
  p.cp = cp;
  p.dropout = 0;
  p.cp_comm = static_cast<ContextComm>(random.integer_at(2, 3));
  const bool heads_divide = shape.kv_heads / p.tp % cp == 0;
  if (p.cp_comm == ContextComm::kAllToAll && !heads_divide) p.cp_comm = ContextComm::kP2p;
}

// Half of the ZeRO-3 plans reduce once a step, and half of those add to what they keep by a kernel of its own.
inline void draw_gradient_sync(TinyPlan& p, std::uint64_t seed, std::uint64_t i) {
  const RandomStream random(seed, "sync" + std::to_string(i));
  if (p.zero != 3 || random.integer_at(0, 2) == 0) return;
  p.sync = GradientSync::kLastMicrobatch;
  if (random.integer_at(1, 2) == 0) p.accumulation = GradientAccumulation::kSeparate;
}

// Plan number `i` of the seeded sequence.
inline Scenario random_scenario(std::uint64_t seed, std::uint64_t i) {
  const RandomStream random(seed, "plan" + std::to_string(i));
  std::uint64_t draw = 0;
  const auto pick = [&](std::uint64_t n) { return static_cast<std::int64_t>(random.integer_at(draw++, n)); };
  const auto flag = [&] { return pick(2) == 1; };
  TinyPlan p;
  p.name = "random" + std::to_string(i);
  do {
    p.tp = 1 << pick(3);
    p.pp = 1 << pick(3);
    p.dp = 1 << pick(3);
  } while (p.tp * p.pp * p.dp > 8);
  p.sequence_parallel = p.tp > 1 && flag();
  p.vp = p.pp > 1 && flag() ? 2 : 1;
  p.schedule = flag() ? ScheduleKind::kGpipe : ScheduleKind::k1F1B;
  p.micro_batch = 1 + pick(2);
  p.tied = pick(4) == 0;
  p.overlap = flag();
  p.zero = static_cast<std::int32_t>(pick(4));
  if (p.zero == 3 && p.tied) p.zero = 0;
  if (p.zero > 0 && p.dp > 1 && pick(3) == 0) p.replicate = 2;
  p.gather_ahead = flag();
  p.reshard = flag();
  p.prefetch = static_cast<std::int32_t>(pick(3));
  p.bucket_elements = 1000 + pick(20000);
  const std::int64_t recompute = pick(3);
  if (recompute == 1) p.recompute.kind = RecomputeKind::kFull;
  if (recompute == 2) p.recompute = {RecomputeKind::kSelective, flag(), flag(), flag()};

  TinyShape shape;
  shape.hidden = 16;
  shape.heads = 4;
  shape.kv_heads = 4;
  shape.ffn = 16 + 8 * pick(3);
  shape.vocab = 32;
  shape.sequence = 8;
  const std::int64_t stages = std::int64_t{p.pp} * p.vp;
  shape.layers = 0;
  for (std::int64_t s = 0; s < stages; ++s) {
    p.layout.push_back(pick(3));
    shape.layers += p.layout.back();
  }
  if (shape.layers == 0) shape.layers = p.layout.front() = 1;
  // Interleaved groups of P need P <= M and a last group of at least P: M = P or 2P here.
  const std::int64_t microbatches = p.vp > 1 ? std::int64_t{p.pp} * (1 + pick(2)) : 1 + pick(4);
  shape.global_batch = microbatches * p.micro_batch * p.dp;
  draw_kind(p, seed, i);
  draw_gradient_sync(p, seed, i);
  p.tp_comm = p.sequence_parallel && RandomStream(seed, "tp_comm" + std::to_string(i)).integer_at(0, 2) == 1;
  p.tp_ring_scatter = p.tp_comm && RandomStream(seed, "tp_comm" + std::to_string(i)).integer_at(1, 2) == 1;
  draw_context(p, shape, seed, i);
  return make_scenario(shape, p);
}

}  // namespace stepcast::plan::testing
