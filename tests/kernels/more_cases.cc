// Calls of the kinds that fast_cases.cc has none of. What is copied, drawn or counted is the same whatever the type: 0
// roundings.
#include <algorithm>
#include <string>

#include "tests/kernels/fast_cases.h"

namespace stepcast::kernels {
namespace {

using enum Use;
using enum Content;

// Rows and columns: one, around a warp (32), over several warps of a block, and more columns than a block has threads.
struct RowExtent {
  std::int64_t rows;
  std::int64_t width;
};
constexpr RowExtent kRowExtents[] = {{1, 1}, {6, 5}, {12, 33}, {30, 300}, {70, 64}};

std::string sized(const char* name, std::int64_t rows, std::int64_t width) {
  return std::string(name) + " " + std::to_string(rows) + "x" + std::to_string(width);
}

}  // namespace

std::vector<FastCase> memory_cases() {
  std::vector<FastCase> cases;
  for (const auto [rows, width] : kRowExtents) {
    const FastOperand x{kRead, kStorage, {rows, width}};
    const FastOperand y{kWrite, kStorage, {rows, width}};
    cases.push_back({sized("zero", rows, width), OpKind::kZeroFill, {}, {y}, {}, 0});
    cases.push_back({sized("copy", rows, width), OpKind::kCopy, {}, {x, y}, {}, 0});
    // Three values of at most five, and their sum, are rounded.
    cases.push_back(
        {sized("sum of parts", rows, width), OpKind::kSumParts, {}, {{kRead, kStorage, {3 * rows, width}}, y}, {}, 4});
  }
  return cases;
}

// Two holders of a table, of tokens that occur once, several times and all the same.
std::vector<FastCase> embedding_cases() {
  std::vector<FastCase> cases;
  for (const auto [rows, width] : kRowExtents) {
    for (const std::int64_t held : {std::int64_t{5}, std::int64_t{7}, rows}) {
      for (const std::int64_t index : {0, 1}) {
        const std::int64_t vocabulary = held == 5 ? 5 : 2 * held;  // of 5, each is the token 0
        const RunOptions holder{.index = index, .index_count = 2};
        const FastOperand tokens{kRead, kToken, {rows}};
        const FastOperand x{kRead, kStorage, {rows, width}};
        const FastOperand table{kRead, kStorage, {held, width}};
        const FastOperand out{kWrite, kStorage, {rows, width}};
        const FastOperand dtable{kInPlace, kFloat, {held, width}};
        const FastOperand stored{kInPlace, kStorage, {held, width}};
        const auto add = [&](const char* name, OpKind kind, std::vector<FastOperand> operands, double bound) {
          cases.push_back({sized(name, rows, width), kind, {}, std::move(operands), holder, bound, vocabulary});
        };
        const double sums = static_cast<double>(rows) + 2;  // a rounding for each row
        add("embedding", OpKind::kEmbeddingForward, {tokens, table, out}, 0);
        add("embedding backward", OpKind::kEmbeddingBackward, {tokens, x, dtable}, sums);
        add("embedding backward, stored", OpKind::kEmbeddingBackward, {tokens, x, stored}, sums);
      }
    }
  }
  return cases;
}

// The rows of one rank, and a part of them that begins and ends within a position.
std::vector<FastCase> position_cases() {
  struct Form {
    std::int64_t rows, batch, index, members;
  };
  constexpr Form kForms[] = {{1, 1, 0, 1}, {6, 2, 0, 1}, {6, 2, 1, 2}, {4, 3, 1, 3}, {40, 3, 2, 3}};
  std::vector<FastCase> cases;
  for (const Form& f : kForms) {
    for (const std::int64_t width : {1, 33, 300}) {
      const std::int64_t positions = (f.rows * f.members + f.batch - 1) / f.batch + 1;  // one that no row has
      const RunOptions own{.index = f.index, .index_count = f.members};
      Attributes a;
      a.batch = f.batch;
      const auto add = [&](const char* name, OpKind kind, std::vector<FastOperand> operands, double bound) {
        cases.push_back({sized(name, f.rows, width), kind, a, std::move(operands), own, bound});
      };
      const FastOperand x{kRead, kStorage, {f.rows, width}};
      add("position", OpKind::kPositionForward,
          {{kRead, kStorage, {positions, width}}, {kInPlace, kStorage, {f.rows, width}}}, 1);
      const double sums = static_cast<double>(f.batch) + 2;
      add("position backward", OpKind::kPositionBackward, {x, {kInPlace, kFloat, {positions, width}}}, sums);
      add("position backward, stored", OpKind::kPositionBackward, {x, {kInPlace, kStorage, {positions, width}}}, sums);
    }
  }
  return cases;
}

// The last has more elements than a launch has threads (2^22).
std::vector<FastCase> token_cases() {
  std::vector<FastCase> cases;
  for (const std::int64_t tokens : {5, 15, 65, 1025, 5 * 840'000}) {
    Attributes a;
    a.batch = 5;
    a.microbatches = 3;
    a.count = 2;
    a.vocab = 50257;
    const FastOperand drawn{kWrite, kToken, {tokens}};
    cases.push_back({sized("tokens", 1, tokens),
                     OpKind::kTokenLoad,
                     a,
                     {drawn, drawn},
                     {.index = 1, .index_count = 2, .seed = 11},
                     0});
  }
  return cases;
}

// A kept element is scaled, and what is added to it, in three roundings; masks are the same.
std::vector<FastCase> dropout_cases() {
  std::vector<FastCase> cases;
  Attributes a = heads_of(2, 2, 1, 3);
  a.microbatches = 2;
  a.count = static_cast<std::int64_t>(program::DropoutSite::kMlpOutput);
  const RunOptions second{
      .index = 1, .index_count = 2, .sample_index = 1, .layer = 3, .microbatch = 1, .step = 2, .seed = 11};
  const auto add = [&](std::string name, OpKind kind, double probability, std::vector<FastOperand> operands) {
    a.value = probability;
    cases.push_back({std::move(name), kind, a, std::move(operands), second, 4});
  };
  for (const auto [rows, width] : kRowExtents) {
    const FastOperand x{kRead, kStorage, {rows * 3, width}};
    const FastOperand y{kWrite, kStorage, {rows * 3, width}};
    const FastOperand bias{kRead, kStorage, {width}};
    const FastOperand mask{kWrite, kMask, {rows * 3, width}};
    add(sized("bias, add", rows * 3, width), OpKind::kBiasDropoutAdd, 0, {x, bias, x, y});
    add(sized("bias, dropout, add", rows * 3, width), OpKind::kBiasDropoutAdd, 0.3, {x, bias, x, y, mask});
    add(sized("dropout", rows * 3, width), OpKind::kDropoutForward, 0.3, {x, y, mask});
    add(sized("dropout backward", rows * 3, width), OpKind::kDropoutBackward, 0.3,
        {x, {kRead, kMask, {rows * 3, width}}, y});
  }
  for (const std::int64_t sequence : {1, 5, 33, 130}) {
    const Shape scores{6, sequence, sequence};
    add(sized("dropout of scores", sequence, sequence), OpKind::kDropoutForward, 0.2,
        {{kRead, kStorage, scores}, {kWrite, kStorage, scores}, {kWrite, kMask, scores}});
  }
  return cases;
}

// A score is below 5 and its distance from the largest below 10, as rounded: ten roundings of an exponential of at most
// 1. A gradient is a product of p and of what is a sum over probabilities, of rounded products.
std::vector<FastCase> softmax_cases() {
  std::vector<FastCase> cases;
  for (const std::int64_t sequence : {1, 3, 33, 70, 257}) {
    for (const std::int64_t alibi_heads : {0, 6}) {
      Attributes a = heads_of(3, 3, 1, 1);
      a.count = alibi_heads;
      const RunOptions second{.index = 1, .index_count = 2};
      const Shape shape{sequence > 200 ? 1 : sequence > 3 ? 3 : 6, sequence, sequence};
      const std::string name = sized("softmax", sequence, sequence) + (alibi_heads > 0 ? ", alibi" : "");
      cases.push_back(
          {name, OpKind::kSoftmaxForward, a, {{kRead, kStorage, shape}, {kWrite, kStorage, shape}}, second, 16});
      const Buffer exact =
          run_fast_case(cases.back(), DType::kF64, reference_kernel(OpKind::kSoftmaxForward), nullptr)[1];
      std::vector<double> probabilities = exact.values();
      for (double& p : probabilities) p = static_cast<double>(to_float(to_bf16(static_cast<float>(p))));
      cases.push_back({name + ", backward",
                       OpKind::kSoftmaxBackward,
                       a,
                       {{kRead, kStorage, shape, probabilities}, {kInPlace, kStorage, shape}},
                       second,
                       16});
    }
  }
  return cases;
}

// As norm_cases(): a weight for each head, and one for all of q or k.
std::vector<FastCase> qk_norm_cases() {
  std::vector<FastCase> cases;
  struct Form {
    std::int32_t heads, kv_heads, dim;
    std::int64_t rows;
  };
  constexpr Form kForms[] = {{1, 1, 1, 1}, {4, 2, 2, 6}, {2, 1, 20, 3}, {3, 1, 33, 40}, {4, 4, 128, 5}};
  for (const Form& f : kForms) {
    for (const bool each_head : {true, false}) {
      const std::int64_t q = std::int64_t{f.heads} * f.dim;
      const std::int64_t k = std::int64_t{f.kv_heads} * f.dim;
      const Shape q_weight{each_head ? f.dim : q};
      const Shape k_weight{each_head ? f.dim : k};
      const Shape qkv{f.rows, q + 2 * k};
      const Shape raw{f.rows, q + k};
      const Shape rstd{f.rows, each_head ? std::int64_t{f.heads + f.kv_heads} : 2};
      const FastOperand weights[] = {{kRead, kStorage, q_weight}, {kRead, kStorage, k_weight}};
      Attributes a = heads_of(f.heads, f.kv_heads, f.dim, 1);
      a.value = 1e-5;
      const auto add = [&](const char* name, OpKind kind, std::vector<FastOperand> operands, double bound) {
        cases.push_back(
            {sized(name, f.rows, f.dim) + (each_head ? "" : ", whole"), kind, a, std::move(operands), {}, bound});
      };
      add("qk norm", OpKind::kQkNormForward,
          {weights[0], weights[1], {kInPlace, kStorage, qkv}, {kWrite, kStorage, raw}, {kWrite, kFloat, rstd}}, 8);
      add("qk norm input", OpKind::kQkNormBackwardInput,
          {{kRead, kStorage, raw}, {kRead, kPositive, rstd}, weights[0], weights[1], {kInPlace, kStorage, qkv}}, 32);
      const double sums = static_cast<double>(f.rows * f.heads) + 8;
      add("qk norm weight", OpKind::kQkNormBackwardWeight,
          {{kRead, kStorage, qkv},
           {kRead, kStorage, raw},
           {kRead, kPositive, rstd},
           {kInPlace, kFloat, q_weight},
           {kInPlace, kFloat, k_weight}},
          sums);
      add("qk norm weight, stored", OpKind::kQkNormBackwardWeight,
          {{kRead, kStorage, qkv},
           {kRead, kStorage, raw},
           {kRead, kPositive, rstd},
           {kInPlace, kStorage, q_weight},
           {kInPlace, kStorage, k_weight}},
          sums);
    }
  }
  return cases;
}

namespace {

// own_rows, kv_extract, kv_accumulate: `rows` rows of a member's share.
void add_share_cases(std::int64_t rows, std::int64_t width, std::vector<FastCase>& cases) {
  Attributes a = heads_of(3, 2, 2, 3);
  for (const std::int64_t members : {1, 2, 3}) {
    for (std::int64_t index = 0; index < members; ++index) {
      const RunOptions own{.index = index, .index_count = members};
      cases.push_back({sized("own rows", rows, width),
                       OpKind::kOwnRows,
                       a,
                       {{kRead, kStorage, {members * rows, width}}, {kWrite, kStorage, {rows, width}}},
                       own,
                       0});
      cases.push_back({sized("own tokens", rows, 1),
                       OpKind::kOwnRows,
                       a,
                       {{kRead, kToken, {members * rows}}, {kWrite, kToken, {rows}}},
                       own,
                       0,
                       1000});
    }
  }
  const Shape qkv{rows, 7 * width};
  const Shape kv{rows, 4 * width};
  a.head_dim = static_cast<std::int32_t>(width);
  cases.push_back({sized("kv extract", rows, width),
                   OpKind::kKvExtract,
                   a,
                   {{kRead, kStorage, qkv}, {kWrite, kStorage, kv}},
                   {},
                   0});
  cases.push_back({sized("kv accumulate", rows, width),
                   OpKind::kKvAccumulate,
                   a,
                   {{kRead, kStorage, kv}, {kInPlace, kStorage, qkv}},
                   {},
                   1});
}

// Splits and joins of heads and of shares, of one part and of three.
void add_part_cases(std::int64_t rows, std::int64_t width, std::int64_t members, bool three,
                    std::vector<FastCase>& cases) {
  const std::vector<std::int64_t> widths =
      three ? std::vector<std::int64_t>{2 * width, width, width} : std::vector<std::int64_t>{width};
  const std::int64_t columns = three ? 4 * width : width;
  const Attributes a = heads_of(1, 1, 1, 3);
  const std::string name = sized("parts", rows, width) + " of " + std::to_string(members);
  const auto add = [&](OpKind kind, bool splits, Shape whole_shape) {
    std::vector<FastOperand> operands;
    for (const std::int64_t w : widths) operands.push_back({splits ? kWrite : kRead, kStorage, {members, rows, w}});
    operands.insert(splits ? operands.begin() : operands.end(), {splits ? kRead : kWrite, kStorage, whole_shape});
    cases.push_back({name, kind, a, std::move(operands), {}, 0});
  };
  add(OpKind::kHeadsSplit, true, {rows, members * columns});
  add(OpKind::kHeadsJoin, false, {rows, members * columns});
  add(OpKind::kSharesJoin, false, {members * rows, columns});
  add(OpKind::kSharesSplit, true, {members * rows, columns});
}

// Groups of `sharing` of the members.
void add_group_cases(std::int64_t rows, std::int64_t members, std::int64_t sharing, std::vector<FastCase>& cases) {
  Attributes a = heads_of(3, 1, 12, 1);
  a.count = sharing;
  const Shape parts{members, rows, 3 * 12 + 2 * 12 / sharing};
  const Shape qkv{rows, 5 * 12};
  for (std::int64_t index = 0; index < members; ++index) {
    const RunOptions own{.index = index, .index_count = members};
    const std::string name = sized("group", rows, sharing) + ", member " + std::to_string(index);
    cases.push_back({name, OpKind::kOwnGroup, a, {{kRead, kStorage, parts}, {kWrite, kStorage, qkv}}, own, 0});
    cases.push_back({name + ", backward",
                     OpKind::kOwnGroupBackward,
                     a,
                     {{kRead, kStorage, qkv}, {kWrite, kStorage, parts}},
                     own,
                     0});
  }
}

}  // namespace

std::vector<FastCase> row_copy_cases() {
  std::vector<FastCase> cases;
  for (const auto [rows, width] : kRowExtents) {
    const std::int64_t own = rows * 6;  // an even number of positions of three sequences
    add_share_cases(own, width, cases);
    for (const std::int64_t members : {1, 2, 3}) {
      add_part_cases(own, width, members, false, cases);
      add_part_cases(own, width, members, true, cases);
    }
  }
  for (const std::int64_t rows : {1, 35}) {
    add_group_cases(rows, 4, 2, cases);
    add_group_cases(rows, 3, 3, cases);
    add_group_cases(rows, 2, 1, cases);
  }
  return cases;
}

// Sums in double are rounded once, and so is a factor.
std::vector<FastCase> scalar_cases() {
  std::vector<FastCase> cases;
  for (const std::int64_t tokens : {1, 6, 33, 1000, 9000}) {
    cases.push_back({sized("loss", 1, tokens),
                     OpKind::kCrossEntropyLoss,
                     with_value(1.0 / static_cast<double>(tokens)),
                     {{kRead, kFloat, {tokens}}, {kRead, kPositive, {2, tokens}}, {kInPlace, kFloat, {1}}},
                     {},
                     2});
  }
  for (const double max_norm : {0.01, 1.0, 100.0}) {
    cases.push_back({"clip factor",
                     OpKind::kClipFactor,
                     with_value(max_norm),
                     {{kRead, kPositive, {1}}, {kWrite, kFloat, {1}}},
                     {},
                     2});
  }
  return cases;
}

// Rows wider than 8 columns for each thread of the largest block, and more rows than sums of columns have chunks of.
std::vector<FastCase> large_row_cases() {
  std::vector<FastCase> cases;
  constexpr std::int64_t kRows = 2;
  constexpr std::int64_t kWidth = 4100;
  const FastOperand x{kRead, kStorage, {kRows, kWidth}};
  const FastOperand y{kWrite, kStorage, {kRows, kWidth}};
  const FastOperand weight{kRead, kStorage, {kWidth}};
  const FastOperand stats{kRead, kPositive, {2, kRows}};
  const FastOperand tokens{kRead, kToken, {kRows}};
  const auto add = [&](const char* name, OpKind kind, std::vector<FastOperand> operands, double bound) {
    cases.push_back({sized(name, kRows, kWidth), kind, with_value(1e-5), std::move(operands), {}, bound});
  };
  add("rms forward", OpKind::kRmsNormForward, {x, weight, y, {kWrite, kFloat, {kRows}}}, 8);
  add("rms input", OpKind::kRmsNormBackwardInput, {x, x, {kRead, kPositive, {kRows}}, weight, y}, 32);
  add("layer forward", OpKind::kLayerNormForward, {x, weight, weight, y, {kWrite, kFloat, {2, kRows}}}, 32);
  add("layer input", OpKind::kLayerNormBackwardInput, {x, x, stats, weight, y}, 32);
  add("max", OpKind::kCrossEntropyMax, {x, {kWrite, kFloat, {kRows}}}, 0);
  add("sum", OpKind::kCrossEntropySum, {x, {kRead, kPositive, {kRows}}, tokens, {kWrite, kFloat, {2, kRows}}}, 16);
  constexpr std::int64_t kManyRows = 20'000;
  const FastOperand many{kRead, kStorage, {kManyRows, 3}};
  // A rounding for each row, at most.
  cases.push_back(
      {sized("bias", kManyRows, 3), OpKind::kBiasBackward, {}, {many, {kInPlace, kFloat, {3}}}, {}, kManyRows});
  return cases;
}

}  // namespace stepcast::kernels
