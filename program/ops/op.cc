// Names and categories of the op kinds.
#include "program/ops/op.h"

#include <array>

#include "base/check.h"

namespace stepcast::program {
namespace {

struct KindRow {
  std::string_view name;
  OpCategory category;
};

// In the order of OpKind.
constexpr std::array<KindRow, kOpKindCount> kKinds = {{
    {"zero_fill", OpCategory::kMemoryBound},
    {"copy", OpCategory::kCopy},
    {"cast", OpCategory::kMemoryBound},
    {"add", OpCategory::kMemoryBound},
    {"accumulate", OpCategory::kMemoryBound},
    {"token_load", OpCategory::kMemoryBound},
    {"embedding_forward", OpCategory::kMemoryBound},
    {"embedding_backward", OpCategory::kMemoryBound},
    {"rmsnorm_forward", OpCategory::kMemoryBound},
    {"rmsnorm_backward_input", OpCategory::kMemoryBound},
    {"rmsnorm_backward_weight", OpCategory::kMemoryBound},
    {"matmul", OpCategory::kMatmul},
    {"rotary_forward", OpCategory::kMemoryBound},
    {"rotary_backward", OpCategory::kMemoryBound},
    {"attention_forward", OpCategory::kAttention},
    {"attention_backward", OpCategory::kAttention},
    {"swiglu_forward", OpCategory::kMemoryBound},
    {"swiglu_backward", OpCategory::kMemoryBound},
    {"cross_entropy_max", OpCategory::kMemoryBound},
    {"cross_entropy_sum", OpCategory::kMemoryBound},
    {"cross_entropy_loss", OpCategory::kMemoryBound},
    {"cross_entropy_backward", OpCategory::kMemoryBound},
    {"sum_squares", OpCategory::kOptimizer},
    {"clip_factor", OpCategory::kOptimizer},
    {"adam", OpCategory::kOptimizer},
    {"all_reduce", OpCategory::kCollective},
    {"all_gather", OpCategory::kCollective},
    {"reduce_scatter", OpCategory::kCollective},
    {"broadcast", OpCategory::kCollective},
    {"send", OpCategory::kP2p},
    {"receive", OpCategory::kP2p},
    {"exchange", OpCategory::kP2p},
    {"join", OpCategory::kSync},
    {"host_read", OpCategory::kSync},
    {"layernorm_forward", OpCategory::kMemoryBound},
    {"layernorm_backward_input", OpCategory::kMemoryBound},
    {"layernorm_backward_weight", OpCategory::kMemoryBound},
    {"bias_backward", OpCategory::kMemoryBound},
    {"gelu_forward", OpCategory::kMemoryBound},
    {"gelu_backward", OpCategory::kMemoryBound},
    {"squared_relu_forward", OpCategory::kMemoryBound},
    {"squared_relu_backward", OpCategory::kMemoryBound},
    {"bias_dropout_add", OpCategory::kMemoryBound},
    {"dropout_forward", OpCategory::kMemoryBound},
    {"dropout_backward", OpCategory::kMemoryBound},
    {"position_forward", OpCategory::kMemoryBound},
    {"position_backward", OpCategory::kMemoryBound},
    {"attention_scores_forward", OpCategory::kAttention},
    {"attention_scores_backward", OpCategory::kAttention},
    {"softmax_forward", OpCategory::kMemoryBound},
    {"softmax_backward", OpCategory::kMemoryBound},
    {"attention_context_forward", OpCategory::kAttention},
    {"attention_context_backward", OpCategory::kAttention},
    {"own_rows", OpCategory::kMemoryBound},
    {"kv_extract", OpCategory::kMemoryBound},
    {"kv_accumulate", OpCategory::kMemoryBound},
    {"share_attention_forward", OpCategory::kAttention},
    {"share_attention_backward", OpCategory::kAttention},
    {"qk_norm_forward", OpCategory::kMemoryBound},
    {"qk_norm_backward_input", OpCategory::kMemoryBound},
    {"qk_norm_backward_weight", OpCategory::kMemoryBound},
    {"sum_parts", OpCategory::kMemoryBound},
    {"all_to_all", OpCategory::kCollective},
    {"heads_split", OpCategory::kMemoryBound},
    {"heads_join", OpCategory::kMemoryBound},
    {"shares_join", OpCategory::kMemoryBound},
    {"shares_split", OpCategory::kMemoryBound},
    {"own_group", OpCategory::kMemoryBound},
    {"own_group_backward", OpCategory::kMemoryBound},
    {"quantise", OpCategory::kMemoryBound},
    {"absmax", OpCategory::kMemoryBound},
    {"transpose", OpCategory::kMemoryBound},
    {"unscale", OpCategory::kOptimizer},
}};
static_assert(static_cast<int>(OpKind::kUnscale) + 1 == kOpKindCount);

const KindRow& row(OpKind kind) {
  const auto index = static_cast<std::size_t>(kind);
  CHECK(index < kKinds.size(), index);
  return kKinds[index];
}

}  // namespace

std::string_view to_string(OpKind kind) { return row(kind).name; }

bool is_attention_matmul(OpKind kind) {
  return kind == OpKind::kAttentionScoresForward || kind == OpKind::kAttentionScoresBackward ||
         kind == OpKind::kAttentionContextForward || kind == OpKind::kAttentionContextBackward;
}

std::optional<OpKind> op_kind_from(std::string_view name) {
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (kKinds[i].name == name) return static_cast<OpKind>(i);
  }
  return std::nullopt;
}

std::string_view to_string(Channel channel) {
  switch (channel) {
    case Channel::kMain:
      return "main";
    case Channel::kActivation:
      return "activation";
    case Channel::kGradient:
      return "gradient";
    case Channel::kWeights:
      return "weights";
  }
  return "?";
}

OpCategory category_of(OpKind kind) { return row(kind).category; }
std::optional<std::size_t> accumulable_operand(OpKind kind) {
  switch (kind) {
    case OpKind::kMatmul:
    case OpKind::kShareAttentionForward:
      return 2;
    case OpKind::kShareAttentionBackward:
    case OpKind::kAdam:
      return 5;
    default:
      return std::nullopt;
  }
}

std::int64_t column_blocks(const Shape& in, const Shape& out) {
  const std::int64_t columns = in.extent(1);
  const bool matrices = in.rank == 2 && out.rank == 2;
  return matrices && out.extent(1) > columns && out.extent(1) % columns == 0 ? out.extent(1) / columns : 1;
}

bool is_priced_only(OpKind kind) {
  return kind == OpKind::kQuantise || kind == OpKind::kAbsMax || kind == OpKind::kTranspose || kind == OpKind::kUnscale;
}

bool is_collective(OpKind kind) { return category_of(kind) == OpCategory::kCollective; }
bool is_p2p(OpKind kind) { return category_of(kind) == OpCategory::kP2p; }

}  // namespace stepcast::program
