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
    {"own_rows", OpCategory::kMemoryBound},
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
    {"kv_extract", OpCategory::kMemoryBound},
    {"kv_accumulate", OpCategory::kMemoryBound},
    {"context_attention_forward", OpCategory::kAttention},
    {"context_attention_backward", OpCategory::kAttention},
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
}};
static_assert(static_cast<int>(OpKind::kHostRead) + 1 == kOpKindCount);

const KindRow& row(OpKind kind) {
  const auto index = static_cast<std::size_t>(kind);
  CHECK(index < kKinds.size(), index);
  return kKinds[index];
}

}  // namespace

std::string_view to_string(OpKind kind) { return row(kind).name; }

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
    case OpKind::kContextAttentionForward:
      return 2;
    case OpKind::kContextAttentionBackward:
    case OpKind::kAdam:
      return 5;
    default:
      return std::nullopt;
  }
}

bool is_collective(OpKind kind) { return category_of(kind) == OpCategory::kCollective; }
bool is_p2p(OpKind kind) { return category_of(kind) == OpCategory::kP2p; }

}  // namespace stepcast::program
