// Sums over layers: parameters and FLOPs per token.
//
// What replaces attention: a gated delta rule is four products of its state a token (Megatron-LM's training.py: KK^T,
// VK^T, the update, SQ: 8 key_dim value_dim FLOPs a head forward), a Mamba-2 scan 7 width state FLOPs (same file; the
// authors call it an estimate). Their convolutions are counted, two FLOPs a weight; Megatron-LM leaves Mamba's out.
#include <algorithm>

#include "base/check.h"
#include "models/architecture.h"
#include "models/parameters.h"

namespace stepcast::models {
namespace {

constexpr double kBackwardToo = 3.0;  // the backward pass costs twice the forward pass

std::int64_t narrow(Wide value) {
  CHECK(value >= 0 && value <= Wide{kMaxParameters});
  return static_cast<std::int64_t>(value);
}

void require_sound(const Architecture& a) {
  const std::vector<ShapeProblem> problems = problems_of(a);
  CHECK(problems.empty(), a.name, problems.empty() ? "" : problems.front().field + " " + problems.front().message);
}

struct AttentionFlops {
  double full = 0;
  double causal = 0;
};

// QK^T and AV cost 2 a d FLOPs per key, token and layer forward, twice that backward (arXiv 2104.04473, appendix; PaLM
// appendix B). Token i sees min(i, keys) of the keys before it: keys (1 - keys / 2 sequence) on average.
AttentionFlops attention_flops(double width, std::int64_t keys, std::int64_t sequence) {
  const auto seen = static_cast<double>(std::min(keys, sequence));
  const double full = 2.0 * kBackwardToo * width * seen;
  return {full, full * (1.0 - seen / (2.0 * static_cast<double>(sequence)))};
}

AttentionFlops layer_attention_flops(const Architecture& a, Mixer mixer, std::int64_t sequence) {
  const double width = a.latent ? static_cast<double>(a.heads * (a.latent->qk_dim() + a.latent->v_dim))
                                : 2.0 * static_cast<double>(a.q_width());
  std::int64_t keys = mixer == Mixer::kWindowAttention ? a.window : sequence;
  if (!a.indexer) return attention_flops(width, keys, sequence);
  keys = std::min(keys, a.indexer->top_k);
  const AttentionFlops chosen = attention_flops(width, keys, sequence);
  // The indexer scores every key; its heads multiply queries by keys only.
  const AttentionFlops scores =
      attention_flops(static_cast<double>(a.indexer->heads * a.indexer->head_dim), sequence, sequence);
  return {chosen.full + scores.full, chosen.causal + scores.causal};
}

double delta_flops(const GatedDeltaNet& d) {
  const double state = 8.0 * static_cast<double>(d.value_heads * d.key_dim) * static_cast<double>(d.value_dim);
  return kBackwardToo * (state + 2.0 * static_cast<double>(d.conv_width() * d.conv_kernel));
}

double mamba_flops(const Mamba2& m) {
  const double scan = 7.0 * static_cast<double>(m.width()) * static_cast<double>(m.state);
  return kBackwardToo * (scan + 2.0 * static_cast<double>(m.conv_width() * m.conv_kernel));
}

AttentionFlops mixer_flops(const Architecture& a, Mixer mixer, std::int64_t sequence) {
  switch (mixer) {
    case Mixer::kAttention:
    case Mixer::kWindowAttention:
      return layer_attention_flops(a, mixer, sequence);
    case Mixer::kGatedDeltaNet:
      return {delta_flops(*a.delta), delta_flops(*a.delta)};
    case Mixer::kMamba2:
      return {mamba_flops(*a.mamba), mamba_flops(*a.mamba)};
    case Mixer::kNone:
      break;
  }
  return {};
}

// Of all layers, per token.
AttentionFlops attention_flops_per_token(const Architecture& a, std::int64_t sequence) {
  CHECK(sequence >= 1 && sequence <= kMaxSize, sequence);
  AttentionFlops sum;
  for (const auto& [kind, count] : a.kind_counts()) {
    const AttentionFlops layer = mixer_flops(a, kind.mixer, sequence);
    sum.full += static_cast<double>(count) * layer.full;
    sum.causal += static_cast<double>(count) * layer.causal;
  }
  return sum;
}

}  // namespace

ParameterCount count_parameters(const Architecture& a) {
  require_sound(a);
  ParameterCount n;
  Wide mixers = 0;
  Wide feed_forward = 0;
  Wide experts = 0;
  Wide idle = 0;  // experts that do not work for a token
  Wide norms = (a.embedding_norm ? 2 : 1) * norm_parameters(a);
  Wide matmul = Wide{a.vocab} * a.hidden;
  for (const auto& [kind, count] : a.kind_counts()) {
    const LayerParameters layer = layer_parameters(a, kind);
    mixers += count * layer.mixer.all;
    feed_forward += count * layer.feed_forward.all;
    experts += count * layer.experts * layer.expert.all;
    idle += count * (layer.total() - layer.active());
    norms += count * layer.norms;
    matmul += count * layer.matmul();
  }
  n.embedding = narrow(Wide{a.vocab} * a.hidden);
  n.positions = a.positions == PositionKind::kLearned ? narrow(Wide{a.max_positions} * a.hidden) : 0;
  n.mixers = narrow(mixers);
  n.feed_forward = narrow(feed_forward);
  n.experts = narrow(experts);
  n.norms = narrow(norms);
  n.head = a.tied_embeddings ? 0 : n.embedding;
  n.total = n.embedding + n.positions + n.mixers + n.feed_forward + n.experts + n.norms + n.head;
  n.active = n.total - narrow(idle);
  n.matmul = narrow(matmul);
  n.mtp = narrow(mtp_parameters(a));
  return n;
}

FlopsPerToken training_flops_per_token(const Architecture& a, std::int64_t sequence) {
  const double matmul = 2.0 * kBackwardToo * static_cast<double>(count_parameters(a).matmul);
  const AttentionFlops attention = attention_flops_per_token(a, sequence);
  return {.full = matmul + attention.full, .causal = matmul + attention.causal};
}

double maxtext_flops_per_token(const Architecture& a, std::int64_t sequence) {
  const ParameterCount n = count_parameters(a);
  const auto counted = static_cast<double>(n.active_without_input(a.tied_embeddings) - n.positions);
  return 6.0 * counted + attention_flops_per_token(a, sequence).full;
}

std::int64_t padded_vocab(std::int64_t vocab, std::int64_t multiple) {
  CHECK(vocab >= 1 && vocab <= kMaxSize && multiple >= 1 && multiple <= kMaxSize, vocab, multiple);
  return (vocab + multiple - 1) / multiple * multiple;
}

}  // namespace stepcast::models
