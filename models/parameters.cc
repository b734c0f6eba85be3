// Weights of the mixers and feed-forward blocks, as their classes in transformers lay them out.
#include "models/parameters.h"

namespace stepcast::models {
namespace {

Wide wide(bool present, Wide value) { return present ? value : Wide{0}; }

Weights grouped_attention(const Architecture& a) {
  const Wide hidden = a.hidden;
  const Wide q = Wide{a.heads} * a.head_dim;
  const Wide kv = Wide{a.kv_heads} * a.head_dim;
  const Wide gate = wide(a.attention_output_gate, q);
  Weights w;
  w.matmul = hidden * (q + gate + 2 * kv) + q * hidden;
  w.all = w.matmul + wide(a.qkv_bias, q + 2 * kv) + wide(a.attention_output_bias, hidden) +
          wide(a.attention_sinks, a.heads);
  if (a.qk_norm == QkNorm::kPerHead) w.all += 2 * Wide{a.head_dim};
  if (a.qk_norm == QkNorm::kFullWidth) w.all += q + kv;
  return w;
}

// DeepseekV3Attention; its indexer keys pass a LayerNorm with bias.
Weights latent_attention(const Architecture& a) {
  const LatentAttention& m = *a.latent;
  const Wide hidden = a.hidden;
  const Wide heads = a.heads;
  const Wide queries = heads * m.qk_dim();
  Weights w;
  w.matmul = m.q_rank == 0 ? hidden * queries : hidden * m.q_rank + m.q_rank * queries;
  w.matmul += hidden * (m.kv_rank + m.rope_dim) + m.kv_rank * heads * (m.nope_dim + m.v_dim);
  w.matmul += heads * m.v_dim * hidden;
  w.all = m.q_rank + m.kv_rank;  // their norms
  if (a.indexer) {
    const SparseIndexer& i = *a.indexer;
    w.matmul += Wide{m.q_rank} * i.heads * i.head_dim + hidden * i.head_dim + hidden * i.heads;
    w.all += 2 * Wide{i.head_dim};
  }
  w.all += w.matmul;
  return w;
}

Weights gated_delta_net(const Architecture& a) {
  const GatedDeltaNet& d = *a.delta;
  const Wide hidden = a.hidden;
  Weights w;
  w.matmul = hidden * (2 * Wide{d.key_width()} + 2 * d.value_width() + 2 * d.value_heads) + d.value_width() * hidden;
  // Convolution without bias, a decay and a step bias a head, the output norm of one head.
  w.all = w.matmul + Wide{d.conv_width()} * d.conv_kernel + 2 * d.value_heads + d.value_dim;
  return w;
}

Weights mamba2(const Architecture& a) {
  const Mamba2& m = *a.mamba;
  const Wide hidden = a.hidden;
  Weights w;
  w.matmul = hidden * m.in_width() + Wide{m.width()} * hidden;
  // Convolution; A, D and the step bias of each head; the output norm.
  w.all = w.matmul + Wide{m.conv_width()} * m.conv_kernel + wide(m.conv_bias, m.conv_width()) + 3 * m.heads + m.width();
  w.all += wide(m.projection_bias, Wide{m.in_width()} + hidden);
  return w;
}

Weights mixer_weights(const Architecture& a, Mixer mixer) {
  switch (mixer) {
    case Mixer::kAttention:
    case Mixer::kWindowAttention:
      return a.latent ? latent_attention(a) : grouped_attention(a);
    case Mixer::kGatedDeltaNet:
      return gated_delta_net(a);
    case Mixer::kMamba2:
      return mamba2(a);
    case Mixer::kNone:
      break;
  }
  return {};
}

Weights mlp_weights(const Architecture& a, std::int64_t width, bool bias) {
  const Wide in = (a.gated_mlp ? 2 : 1) * Wide{width};
  Weights w;
  w.matmul = Wide{a.hidden} * in + Wide{width} * a.hidden;
  w.all = w.matmul + wide(bias, in + a.hidden);
  return w;
}

// The router and the shared experts.
Weights shared_weights(const Architecture& a) {
  const MixtureOfExperts& e = *a.experts;
  const Weights shared = e.shared_ffn == 0 ? Weights{} : mlp_weights(a, e.shared_ffn, a.mlp_bias);
  Weights w;
  w.matmul = Wide{a.hidden} * e.experts + shared.matmul + wide(e.shared_gate, a.hidden);
  w.all = w.matmul + (shared.all - shared.matmul) + wide(e.router_bias, e.experts) + wide(e.selection_bias, e.experts);
  return w;
}

}  // namespace

Wide norm_parameters(const Architecture& a) { return (a.norm_bias ? 2 : 1) * Wide{a.hidden}; }

LayerParameters layer_parameters(const Architecture& a, const LayerKind& kind) {
  LayerParameters p;
  p.mixer = mixer_weights(a, kind.mixer);
  if (kind.mixer != Mixer::kNone) p.norms += norm_parameters(a);
  if (kind.feed_forward == FeedForward::kNone) return p;
  p.norms += norm_parameters(a);
  if (kind.feed_forward == FeedForward::kMlp) {
    p.feed_forward = mlp_weights(a, a.ffn, a.mlp_bias);
    return p;
  }
  p.feed_forward = shared_weights(a);
  p.expert = mlp_weights(a, a.experts->ffn, a.experts->expert_bias);
  p.experts = a.experts->experts;
  p.active_experts = a.experts->top_k;
  return p;
}

Wide total_parameters(const Architecture& a) {
  const Wide table = Wide{a.vocab} * a.hidden;
  Wide total = (a.tied_embeddings ? 1 : 2) * table + norm_parameters(a);
  if (a.positions == PositionKind::kLearned) total += Wide{a.max_positions} * a.hidden;
  if (a.embedding_norm) total += norm_parameters(a);
  for (const auto& [kind, count] : a.kind_counts()) total += Wide{count} * layer_parameters(a, kind).total();
  return total;
}

// The model's last layer, two norms of its inputs, their projection and an output norm (DeepSeek-V3, section 2.2).
Wide mtp_parameters(const Architecture& a) {
  if (a.mtp_layers == 0) return 0;
  const Wide layer = layer_parameters(a, a.kind_of(a.layers - 1)).total();
  return a.mtp_layers * (layer + 2 * Wide{a.hidden} * a.hidden + 3 * norm_parameters(a));
}

}  // namespace stepcast::models
