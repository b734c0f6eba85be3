// Families with a mixture of experts, on grouped or latent attention.
#include <algorithm>
#include <string>
#include <vector>

#include "models/families.h"

namespace stepcast::models {
namespace {

// Which layers have experts, from first_k_dense_replace on (DeepSeek, GLM) each, or each n-th.
void read_expert_layers(Fields& fields, Architecture& a, std::int64_t default_dense) {
  const std::int64_t dense = fields.integer("first_k_dense_replace").value_or(default_dense);
  const std::int64_t each = fields.integer("moe_layer_freq").value_or(1);
  if (dense < 0) fields.refuse("first_k_dense_replace", ErrorKind::kInput, "is below 0");
  if (each < 1) {
    fields.refuse("moe_layer_freq", ErrorKind::kInput, "is not at least 1");
    return;
  }
  set_kinds(fields, a, [&](std::int64_t i) {
    const bool experts = i >= dense && i % each == 0;
    return LayerKind{.feed_forward = experts ? FeedForward::kExperts : FeedForward::kMlp};
  });
}

// Qwen: each n-th layer, but for those listed.
void read_sparse_layers(Fields& fields, Architecture& a) {
  const std::int64_t step = fields.integer("decoder_sparse_step").value_or(1);
  const std::vector<std::int64_t> dense = fields.integers("mlp_only_layers").value_or(std::vector<std::int64_t>{});
  if (step < 1) {
    fields.refuse("decoder_sparse_step", ErrorKind::kInput, "is not at least 1");
    return;
  }
  const Architecture before = a;
  set_kinds(fields, a, [&](std::int64_t i) {
    LayerKind kind = before.kind_of(i);
    const bool listed = std::find(dense.begin(), dense.end(), i) != dense.end();
    kind.feed_forward = !listed && (i + 1) % step == 0 ? FeedForward::kExperts : FeedForward::kMlp;
    return kind;
  });
}

MixtureOfExperts read_experts(Fields& fields, std::int64_t ffn) {
  MixtureOfExperts e;
  e.experts = fields.required("num_experts");
  e.top_k = fields.required("num_experts_per_tok");
  e.ffn = ffn;
  return e;
}

// n_shared_experts of the width of one expert each, in one MLP.
void read_shared_experts(Fields& fields, MixtureOfExperts& e, std::int64_t otherwise) {
  const std::int64_t shared = fields.integer("n_shared_experts").value_or(otherwise);
  if (shared < 0 || shared > kMaxComponentSize) {
    fields.refuse("n_shared_experts", ErrorKind::kInput, "is not between 0 and 2^20");
    return;
  }
  if (e.ffn >= 1 && e.ffn <= kMaxComponentSize) e.shared_ffn = shared * e.ffn;
}

void read_groups(Fields& fields, MixtureOfExperts& e) {
  e.groups = fields.integer("n_group").value_or(1);
  e.groups_used = fields.integer("topk_group").value_or(1);
  e.scale = fields.number("routed_scaling_factor").value_or(1.0);
}

// DeepSeek's router: how it scores, and whether a bias balances the choice.
void read_router(Fields& fields, MixtureOfExperts& e, const char* scoring, const char* method) {
  read_groups(fields, e);
  const std::string score = fields.text("scoring_func").value_or(scoring);
  if (score != "softmax" && score != "sigmoid") {
    fields.refuse("scoring_func", ErrorKind::kUnsupported, "scoring function " + printable(Json(score)),
                  {"supported: softmax, sigmoid"});
  }
  e.score = score == "sigmoid" ? RouterScore::kSigmoid : RouterScore::kSoftmax;
  const std::string chosen = fields.text("topk_method").value_or(method);
  if (chosen != "greedy" && chosen != "group_limited_greedy" && chosen != "noaux_tc") {
    fields.refuse("topk_method", ErrorKind::kUnsupported, "choice of experts by " + printable(Json(chosen)),
                  {"supported: greedy, group_limited_greedy, noaux_tc"});
  }
  e.selection_bias = chosen == "noaux_tc";
}

void read_latent(Fields& fields, Architecture& a) {
  LatentAttention m;
  m.q_rank = fields.integer("q_lora_rank").value_or(0);
  if (!fields.has("q_lora_rank") && !fields.is_null("q_lora_rank")) {
    fields.refuse("q_lora_rank", ErrorKind::kInput, "missing key", {"null: queries without a low rank"});
  }
  m.kv_rank = fields.required("kv_lora_rank");
  m.nope_dim = fields.required("qk_nope_head_dim");
  m.rope_dim = fields.required("qk_rope_head_dim");
  m.v_dim = fields.required("v_head_dim");
  a.latent = m;
  const auto sane = [](std::int64_t size) { return size >= 1 && size <= kMaxComponentSize; };
  if (sane(m.nope_dim) && sane(m.rope_dim)) a.head_dim = m.qk_dim();
  if (a.qkv_bias) {
    fields.refuse("attention_bias", ErrorKind::kUnsupported, "latent attention with biases", {"supported: false"});
  }
}

}  // namespace

void read_mixtral(Fields& fields, Architecture& a) {
  a.experts = read_experts(fields, a.ffn);
  LayerKind kind{.feed_forward = FeedForward::kExperts};
  if (const auto window = fields.integer("sliding_window")) {
    a.window = *window;
    kind.mixer = Mixer::kWindowAttention;
  }
  a.kinds = {kind};
}

void read_qwen3_moe(Fields& fields, Architecture& a) {
  read_qwen3(fields, a);
  MixtureOfExperts e = read_experts(fields, fields.required("moe_intermediate_size"));
  e.normalised = fields.boolean("norm_topk_prob", false);
  a.experts = e;
  read_sparse_layers(fields, a);
}

// GptOssConfig: windows on every other layer, the first included, where layer_types does not say.
void read_gpt_oss(Fields& fields, Architecture& a) {
  MixtureOfExperts e = read_experts(fields, a.ffn);
  e.expert_bias = true;
  e.router_bias = true;
  a.experts = e;
  a.attention_sinks = true;
  a.window = fields.integer("sliding_window").value_or(128);
  a.kinds = {LayerKind{.feed_forward = FeedForward::kExperts}};
  if (read_layer_types(fields, a)) return;
  set_kinds(fields, a, [](std::int64_t i) {
    return LayerKind{.mixer = i % 2 == 0 ? Mixer::kWindowAttention : Mixer::kAttention,
                     .feed_forward = FeedForward::kExperts};
  });
}

void read_glm4_moe(Fields& fields, Architecture& a) {
  a.attention_output_bias = false;  // attention_bias is of q, k and v only
  if (fields.boolean("use_qk_norm", false)) a.qk_norm = QkNorm::kPerHead;
  MixtureOfExperts e = read_experts(fields, fields.required("moe_intermediate_size"));
  read_shared_experts(fields, e, 1);
  read_groups(fields, e);
  e.score = RouterScore::kSigmoid;
  e.selection_bias = true;
  e.normalised = fields.boolean("norm_topk_prob", true);
  a.experts = e;
  a.mtp_layers = fields.integer("num_nextn_predict_layers").value_or(0);
  read_expert_layers(fields, a, 1);
}

void read_deepseek_v2(Fields& fields, Architecture& a) {
  read_latent(fields, a);
  MixtureOfExperts e = read_experts(fields, fields.required("moe_intermediate_size"));
  read_shared_experts(fields, e, 0);
  read_router(fields, e, "softmax", "greedy");
  e.normalised = fields.boolean("norm_topk_prob", false);
  a.experts = e;
  read_expert_layers(fields, a, 0);
}

void read_deepseek_v3(Fields& fields, Architecture& a) {
  read_latent(fields, a);
  MixtureOfExperts e = read_experts(fields, fields.required("moe_intermediate_size"));
  read_shared_experts(fields, e, 1);
  read_router(fields, e, "sigmoid", "noaux_tc");
  e.normalised = fields.boolean("norm_topk_prob", true);
  a.experts = e;
  a.mtp_layers = fields.integer("num_nextn_predict_layers").value_or(0);
  read_expert_layers(fields, a, 3);
}

void read_deepseek_v32(Fields& fields, Architecture& a) {
  read_deepseek_v3(fields, a);
  a.indexer = SparseIndexer{.heads = fields.required("index_n_heads"),
                            .head_dim = fields.required("index_head_dim"),
                            .top_k = fields.required("index_topk")};
}

// Gated attention on each full_attention_interval-th layer, a gated delta net on the others.
void read_qwen3_next(Fields& fields, Architecture& a) {
  a.qk_norm = QkNorm::kPerHead;
  a.attention_output_gate = true;
  a.delta = GatedDeltaNet{.key_heads = fields.required("linear_num_key_heads"),
                          .value_heads = fields.required("linear_num_value_heads"),
                          .key_dim = fields.required("linear_key_head_dim"),
                          .value_dim = fields.required("linear_value_head_dim"),
                          .conv_kernel = fields.required("linear_conv_kernel_dim")};
  MixtureOfExperts e = read_experts(fields, fields.required("moe_intermediate_size"));
  e.shared_ffn = fields.required("shared_expert_intermediate_size");
  e.shared_gate = true;
  e.normalised = fields.boolean("norm_topk_prob", true);
  a.experts = e;
  const std::int64_t interval = fields.integer("full_attention_interval").value_or(4);
  if (interval < 1) {
    fields.refuse("full_attention_interval", ErrorKind::kInput, "is not at least 1");
    return;
  }
  if (!read_layer_types(fields, a)) {
    set_kinds(fields, a, [&](std::int64_t i) {
      return LayerKind{.mixer = (i + 1) % interval == 0 ? Mixer::kAttention : Mixer::kGatedDeltaNet};
    });
  }
  read_sparse_layers(fields, a);
}

}  // namespace stepcast::models
