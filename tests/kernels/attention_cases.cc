// Attention: whole sequences, shares of them, and the matmuls of stacks without a fused kernel. Lengths around the
// tiles of 64 and 32 queries and of 64 and 128 keys that kernels have, heads that no tile or vector fits, up to 256
// channels.
#include <algorithm>
#include <cmath>

#include "tests/kernels/fast_cases.h"

namespace stepcast::kernels {

using enum Use;
using enum Content;

namespace {

struct AttentionForm {
  std::int32_t heads, kv_heads, dim;
  std::int64_t batch, positions;
  double dropout = 0;
  std::int64_t alibi = 0;  // heads of the model
};

constexpr AttentionForm kForms[] = {
    {1, 1, 1, 1, 1},        {4, 2, 2, 2, 3},        {2, 1, 5, 1, 64},          {2, 2, 16, 1, 65},
    {4, 2, 8, 2, 129},      {3, 1, 32, 1, 200},     {2, 1, 64, 3, 150},        {1, 1, 128, 1, 257},
    {4, 4, 8, 1, 70, 0, 8}, {2, 2, 8, 2, 130, 0.2}, {4, 2, 8, 1, 140, 0.3, 8}, {1, 1, 20, 3, 1},
    {3, 1, 20, 3, 33},      {2, 1, 20, 1, 129},     {2, 1, 160, 1, 67},        {1, 1, 256, 1, 33}};

Attributes attributes_of(const AttentionForm& f) {
  Attributes a = heads_of(f.heads, f.kv_heads, f.dim, f.batch);
  a.value = f.dropout;
  a.count = f.alibi;
  a.microbatches = 2;
  return a;
}

std::vector<double> exact_operand(const FastCase& c, std::size_t position, bool in_bf16) {
  const std::vector<Buffer> after = run_fast_case(c, DType::kF64, reference_kernel(c.kind), nullptr);
  std::vector<double> values = after[position].values();
  for (double& value : values) {
    const auto rounded = static_cast<float>(value);
    value = in_bf16 ? static_cast<double>(to_float(to_bf16(rounded))) : static_cast<double>(rounded);
  }
  return values;
}

// A score, a sum of dim products over sqrt(dim), is some sqrt(dim) large with dim + 4 roundings, which its exponential
// turns into relative errors; sums over keys add one for each. A gradient has two such factors in each of its terms.
double score_roundings(std::int64_t dim) {
  return (static_cast<double>(dim) + 4) * std::max(2.0, std::sqrt(static_cast<double>(dim)));
}

std::string name_of(const AttentionForm& f) {
  return std::to_string(f.heads) + "/" + std::to_string(f.kv_heads) + " heads of " + std::to_string(f.dim) + ", " +
         std::to_string(f.batch) + "x" + std::to_string(f.positions);
}

}  // namespace

std::vector<FastCase> attention_cases() {
  std::vector<FastCase> cases;
  for (const AttentionForm& f : kForms) {
    const std::int64_t tokens = f.batch * f.positions;
    const std::int64_t width = std::int64_t{f.heads} * f.dim;
    const Shape wide{tokens, std::int64_t{f.heads + 2 * f.kv_heads} * f.dim};
    const FastOperand qkv{kRead, kStorage, wide};
    const RunOptions options{.layer = 3, .microbatch = 1, .step = 2, .seed = 11};
    const double bound = score_roundings(f.dim) + static_cast<double>(f.positions);
    FastCase forward{name_of(f),       OpKind::kAttentionForward,
                     attributes_of(f), {qkv, {kWrite, kStorage, {tokens, width}}, {kWrite, kFloat, {tokens, f.heads}}},
                     options,          bound};
    const FastOperand out{kRead, kStorage, {tokens, width}, exact_operand(forward, 1, true)};
    const FastOperand lse{kRead, kFloat, {tokens, f.heads}, exact_operand(forward, 2, false)};
    const FastOperand dout{kRead, kStorage, {tokens, width}};
    FastCase backward{name_of(f) + ", backward",
                      OpKind::kAttentionBackward,
                      attributes_of(f),
                      {dout, qkv, out, lse, {kWrite, kStorage, wide}},
                      options,
                      4 * bound};
    cases.push_back(std::move(forward));
    cases.push_back(std::move(backward));
  }
  return cases;
}

// Every member of groups of one to three, with its own keys, those of another member, and those of all.
std::vector<FastCase> share_attention_cases() {
  std::vector<FastCase> cases;
  constexpr AttentionForm kShares[] = {
      {2, 1, 4, 2, 6}, {4, 2, 8, 1, 70}, {1, 1, 16, 1, 260}, {3, 1, 20, 3, 34}, {1, 1, 144, 1, 36}};
  for (const AttentionForm& f : kShares) {
    for (const std::int64_t members : {2, 3}) {
      for (const std::int64_t back : {std::int64_t{0}, std::int64_t{1}, std::int64_t{-1}}) {
        const bool gathered = back < 0;
        const std::int64_t tokens = f.batch * f.positions;
        const std::int64_t width = std::int64_t{f.heads} * f.dim;
        const std::int64_t kv_rows = gathered ? members * tokens : tokens;
        Attributes a = heads_of(f.heads, f.kv_heads, f.dim, f.batch);
        a.count = gathered ? 0 : back;
        const FastOperand qkv{kRead, kStorage, {tokens, std::int64_t{f.heads + 2 * f.kv_heads} * f.dim}};
        const FastOperand kv{kRead, kStorage, {kv_rows, std::int64_t{2 * f.kv_heads} * f.dim}};
        const double bound = score_roundings(f.dim) + static_cast<double>(f.positions * members);
        for (const bool accumulate : {false, true}) {
          const RunOptions options{.accumulate = accumulate, .index = members - 1, .index_count = members};
          const Use use = accumulate ? kInPlace : kWrite;
          const std::string name = name_of(f) + ", " + std::to_string(members) + " members, back " +
                                   std::to_string(back) + (accumulate ? ", merged" : "");
          cases.push_back({name,
                           OpKind::kShareAttentionForward,
                           a,
                           {qkv, kv, {use, kStorage, {tokens, width}}, {use, kFloat, {tokens, f.heads}}},
                           options,
                           bound});
          // The log-sum-exp of all keys is at least that of these: made larger by 1 here.
          FastCase alone = cases.back();
          alone.options.accumulate = false;
          alone.operands[2].use = alone.operands[3].use = kWrite;
          std::vector<double> lse = exact_operand(alone, 3, false);
          for (double& value : lse) value = std::isinf(value) ? 1 : value + 1;
          cases.push_back({name + ", backward",
                           OpKind::kShareAttentionBackward,
                           a,
                           {{kRead, kStorage, {tokens, width}},
                            qkv,
                            kv,
                            {kRead, kStorage, {tokens, width}},
                            {kRead, kFloat, {tokens, f.heads}, lse},
                            {use, kStorage, {tokens, std::int64_t{f.heads + 2 * f.kv_heads} * f.dim}},
                            {kWrite, kStorage, {kv_rows, std::int64_t{2 * f.kv_heads} * f.dim}}},
                           options,
                           4 * bound});
        }
      }
    }
  }
  return cases;
}

// The matmuls of attention on materialised scores: sums of dim products, of s, and, where query heads share a kv head,
// of s for each. Scores and probabilities are any numbers here.
std::vector<FastCase> unfused_attention_cases() {
  std::vector<FastCase> cases;
  constexpr AttentionForm kUnfused[] = {{1, 1, 1, 1, 1},  {4, 2, 8, 2, 7},   {3, 1, 20, 3, 33},
                                        {2, 1, 20, 1, 1}, {2, 2, 64, 1, 65}, {4, 1, 20, 1, 129}};
  for (const AttentionForm& f : kUnfused) {
    const std::int64_t tokens = f.batch * f.positions;
    const Shape wide{tokens, std::int64_t{f.heads + 2 * f.kv_heads} * f.dim};
    const FastOperand qkv{kRead, kStorage, wide};
    const FastOperand out{kRead, kStorage, {tokens, std::int64_t{f.heads} * f.dim}};
    const FastOperand scores{kRead, kStorage, {f.batch * f.heads, f.positions, f.positions}};
    const auto written = [](FastOperand operand) {
      operand.use = kWrite;
      return operand;
    };
    const double over_channels = score_roundings(f.dim);
    const double over_keys = score_roundings(f.positions * f.heads / f.kv_heads);
    const auto add = [&](const char* what, OpKind kind, std::vector<FastOperand> operands, double bound) {
      cases.push_back({name_of(f) + what, kind, attributes_of(f), std::move(operands), {}, bound});
    };
    using enum OpKind;
    add(", scores", kAttentionScoresForward, {qkv, written(scores)}, over_channels);
    add(", scores backward", kAttentionScoresBackward, {scores, qkv, {kInPlace, kStorage, wide}}, over_keys);
    add(", context", kAttentionContextForward, {scores, qkv, written(out)}, over_keys);
    add(", context backward", kAttentionContextBackward, {out, scores, qkv, written(scores), written(qkv)},
        std::max(over_channels, over_keys));
  }
  return cases;
}

}  // namespace stepcast::kernels
