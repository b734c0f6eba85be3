// Nemotron-H: each layer is one block, a Mamba-2 mixer, an MLP or attention without positions, as a pattern says.
#include <string>

#include "models/families.h"

namespace stepcast::models {
namespace {

Mamba2 read_mamba(Fields& fields) {
  Mamba2 m;
  m.heads = fields.required("mamba_num_heads");
  m.head_dim = fields.required("mamba_head_dim");
  m.groups = fields.required("n_groups");
  m.state = fields.required("ssm_state_size");
  m.conv_kernel = fields.integer("conv_kernel").value_or(4);
  m.chunk = fields.integer("chunk_size").value_or(128);
  m.conv_bias = fields.boolean("use_conv_bias", true);
  m.projection_bias = fields.boolean("mamba_proj_bias", false);
  return m;
}

LayerKind kind_of(char symbol) {
  switch (symbol) {
    case 'M':
      return {.mixer = Mixer::kMamba2, .feed_forward = FeedForward::kNone};
    case '*':
      return {.mixer = Mixer::kAttention, .feed_forward = FeedForward::kNone};
    default:
      return {.mixer = Mixer::kNone, .feed_forward = FeedForward::kMlp};
  }
}

}  // namespace

void read_nemotron_h(Fields& fields, Architecture& a) {
  constexpr const char* kPattern = "hybrid_override_pattern";
  a.positions = PositionKind::kNone;
  a.gated_mlp = false;
  a.mamba = read_mamba(fields);
  const std::string pattern = fields.text(kPattern).value_or("");
  if (!fields.has(kPattern)) {
    fields.refuse(kPattern, ErrorKind::kInput, "missing key", {"a letter a layer: M, - or *"});
    return;
  }
  if (pattern.find_first_not_of("M-*") != std::string::npos) {
    fields.refuse(kPattern, ErrorKind::kUnsupported, "layers other than M (Mamba-2), - (MLP) and * (attention)");
    return;
  }
  if (static_cast<std::int64_t>(pattern.size()) != a.layers) {
    fields.refuse(kPattern, ErrorKind::kInput,
                  std::to_string(pattern.size()) + " letters for " + std::to_string(a.layers) + " layers");
    return;
  }
  set_kinds(fields, a, [&](std::int64_t i) { return kind_of(pattern[static_cast<std::size_t>(i)]); });
}

}  // namespace stepcast::models
