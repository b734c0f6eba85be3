// Shapes: one row, odd extents, extents around the lanes (16) of vectorised loops and the blocks (64 queries, 128 keys)
// of attention, and rows enough to be shared among threads.
#include "tests/kernels/fast_cases.h"

#include <algorithm>
#include <cmath>

namespace stepcast::kernels {
namespace {

using enum Use;
using enum Content;

struct Extent {
  std::int64_t rows;
  std::int64_t width;
};

constexpr Extent kExtents[] = {{1, 1}, {1, 15}, {3, 16}, {6, 17}, {5, 33}, {2, 129}, {40, 500}, {130, 257}};

std::string at(const char* name, std::int64_t rows, std::int64_t width) {
  return std::string(name) + " " + std::to_string(rows) + "x" + std::to_string(width);
}

Buffer values_of(const FastOperand& o, DType storage, std::size_t position, std::int64_t vocabulary) {
  if (o.content == kToken) {
    Buffer tokens(DType::kI32, o.shape);
    for (std::int64_t i = 0; i < tokens.size(); ++i) tokens.set(i, static_cast<double>(i * 5 % vocabulary));
    return tokens;
  }
  if (o.content == kMask) {
    Buffer mask(DType::kU8, o.shape);
    for (std::int64_t i = 0; i < mask.size(); ++i) mask.set(i, static_cast<double>(i * 5 % 7 % 2));
    return mask;
  }
  const bool stored = o.content == kStorage || o.content == kPositiveStorage;
  const DType dtype = stored ? storage : storage == DType::kF64 ? DType::kF64 : DType::kF32;
  const Buffer random = random_buffer(DType::kBf16, o.shape, "operand" + std::to_string(position));
  Buffer result(dtype, o.shape);
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const bool positive = o.content == kPositive || o.content == kPositiveStorage;
    const Bf16 above_half = to_bf16(static_cast<float>(std::abs(random.at(i)) + 0.5));
    const double value = positive ? static_cast<double>(to_float(above_half)) : random.at(i);
    result.set(i, o.values.empty() ? value : o.values[static_cast<std::size_t>(i)]);
  }
  return result;
}

// What roundings are relative to: operands are of the order of one, and a result may be a small difference of such.
double largest_magnitude(const Buffer& exact) {
  double largest = 1;
  for (const double value : exact.values()) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

// The first element that is not within `absolute` of the exact one before it is stored; where it is 0, the first that
// is not the exact one.
std::optional<std::int64_t> first_difference(const Buffer& got, const Buffer& exact, double absolute) {
  const double stored = got.dtype() == DType::kBf16 ? kBf16Rounding : kF32Rounding;
  for (std::int64_t i = 0; i < exact.size(); ++i) {
    const double want = exact.at(i);
    if (std::isinf(want) && got.at(i) == want) continue;
    // The rounding of what is already off by `absolute`.
    const double bound = absolute == 0 ? 0 : absolute + stored * (std::abs(want) + absolute);
    if (!(std::abs(got.at(i) - want) <= bound)) return i;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Buffer> run_fast_case(const FastCase& c, DType storage,
                                  const std::function<void(const KernelContext&)>& kernel, StreamState* state) {
  std::vector<Buffer> buffers;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    const Buffer values = values_of(c.operands[i], storage, i, c.vocabulary);
    buffers.push_back(c.operands[i].use == kWrite ? Buffer(values.dtype(), c.operands[i].shape) : values);
  }
  std::vector<Tensor> tensors;
  for (Buffer& buffer : buffers) tensors.push_back(buffer.tensor());
  kernel(KernelContext{.operands = tensors,
                       .attributes = &c.attributes,
                       .kind = c.kind,
                       .accumulate = c.options.accumulate,
                       .index = c.options.index,
                       .index_count = c.options.index_count,
                       .sample_index = c.options.sample_index,
                       .layer = c.options.layer,
                       .microbatch = c.options.microbatch,
                       .step = c.options.step,
                       .seed = c.options.seed,
                       .state = state});
  return buffers;
}

std::optional<std::string> difference(const FastCase& c, DType storage, const std::vector<Buffer>& got,
                                      const std::vector<Buffer>& exact) {
  for (std::size_t operand = 0; operand < got.size(); ++operand) {
    const double absolute = c.roundings * kF32Rounding * largest_magnitude(exact[operand]);
    const std::optional<std::int64_t> at = first_difference(got[operand], exact[operand], absolute);
    if (!at) continue;
    return c.name + (storage == DType::kF32 ? ", f32" : ", bf16") + ", operand " + std::to_string(operand) +
           ", element " + std::to_string(*at) + ": " + std::to_string(got[operand].at(*at)) + " for " +
           std::to_string(exact[operand].at(*at));
  }
  return std::nullopt;
}

// Elements of a row go through at most eight operations on values below the largest result; sums of columns add one
// rounding for each row. Gradients of weights are added to in f32 here, whatever the storage.
std::vector<FastCase> norm_cases() {
  std::vector<FastCase> cases;
  for (const Extent& extent : kExtents) {
    const std::int64_t rows = extent.rows;
    const std::int64_t width = extent.width;
    const FastOperand x{kRead, kStorage, {rows, width}};
    const FastOperand y{kWrite, kStorage, {rows, width}};
    const FastOperand weight{kRead, kStorage, {width}};
    const FastOperand rstd{kRead, kPositive, {rows}};
    const FastOperand stats{kRead, kPositive, {2, rows}};
    const FastOperand dweight{kInPlace, kFloat, {width}};
    const double sums = static_cast<double>(rows) + 8;
    const auto add = [&](const char* name, OpKind kind, Attributes a, std::vector<FastOperand> operands, double bound) {
      cases.push_back({at(name, rows, width), kind, a, std::move(operands), {}, bound});
    };
    using enum OpKind;
    add("rms forward", kRmsNormForward, with_value(1e-5), {x, weight, y, {kWrite, kFloat, {rows}}}, 8);
    // Two terms may cancel: a few of the larger ones' roundings.
    add("rms input", kRmsNormBackwardInput, {}, {x, x, rstd, weight, y}, 32);
    add("rms input, residual", kRmsNormBackwardInput, {}, {x, x, rstd, weight, y, x}, 32);
    add("rms weight", kRmsNormBackwardWeight, {}, {x, x, rstd, dweight}, sums);
    add("rms weight, stored", kRmsNormBackwardWeight, {}, {x, x, rstd, {kInPlace, kStorage, {width}}}, sums);
    // A row of one element is its own mean: what is left is the bias.
    add("layer forward", kLayerNormForward, with_value(1e-1), {x, weight, weight, y, {kWrite, kFloat, {2, rows}}}, 32);
    add("layer input", kLayerNormBackwardInput, {}, {x, x, stats, weight, y}, 32);
    add("layer input, residual", kLayerNormBackwardInput, {}, {x, x, stats, weight, y, x}, 32);
    add("layer weight", kLayerNormBackwardWeight, {}, {x, x, stats, dweight, dweight}, sums);
    add("bias", kBiasBackward, {}, {x, dweight}, sums);
  }
  return cases;
}

// The exponential errs by 3e-7, five roundings; slopes multiply it with a few others.
std::vector<FastCase> activation_cases() {
  std::vector<FastCase> cases;
  for (const Extent& extent : kExtents) {
    const std::int64_t rows = extent.rows;
    const std::int64_t width = extent.width;
    const FastOperand x{kRead, kStorage, {rows, width}};
    const FastOperand y{kWrite, kStorage, {rows, width}};
    const FastOperand bias{kRead, kStorage, {width}};
    const FastOperand pair{kRead, kStorage, {rows, 2 * width}};
    const auto add = [&](const char* name, OpKind kind, std::vector<FastOperand> operands) {
      cases.push_back({at(name, rows, width), kind, {}, std::move(operands), {}, 20});
    };
    using enum OpKind;
    add("swiglu", kSwiGluForward, {pair, y});
    add("swiglu backward", kSwiGluBackward, {x, pair, {kWrite, kStorage, {rows, 2 * width}}});
    add("gelu", kGeluForward, {x, y});
    add("gelu, bias", kGeluForward, {x, y, bias});
    add("gelu backward", kGeluBackward, {x, x, y});
    add("gelu backward, bias", kGeluBackward, {x, x, y, bias});
    add("squared relu", kSquaredReluForward, {x, y, bias});
    add("squared relu backward", kSquaredReluBackward, {x, x, y, bias});
  }
  return cases;
}

std::vector<FastCase> elementwise_cases() {
  std::vector<FastCase> cases;
  for (const auto [rows, width] : kExtents) {
    const FastOperand x{kRead, kStorage, {rows, width}};
    const FastOperand y{kWrite, kStorage, {rows, width}};
    const FastOperand f{kRead, kFloat, {rows, width}};
    using enum OpKind;
    cases.push_back({at("add", rows, width), kAdd, {}, {x, x, y}, {}, 1});
    cases.push_back({at("cast", rows, width), kCast, {}, {x, {kWrite, kFloat, {rows, width}}}, {}, 1});
    cases.push_back({at("cast down", rows, width), kCast, {}, {f, y}, {}, 1});
    cases.push_back({at("cast same", rows, width), kCast, {}, {x, y}, {}, 1});
    cases.push_back({at("accumulate", rows, width), kAccumulate, {}, {x, {kInPlace, kStorage, {rows, width}}}, {}, 1});
    cases.push_back(
        {at("accumulate f32", rows, width), kAccumulate, {}, {x, {kInPlace, kFloat, {rows, width}}}, {}, 1});
    cases.push_back(
        {at("accumulate down", rows, width), kAccumulate, {}, {f, {kInPlace, kStorage, {rows, width}}}, {}, 1});
  }
  return cases;
}

std::vector<FastCase> rotary_cases() {
  std::vector<FastCase> cases;
  struct Form {
    std::int32_t heads, kv_heads, dim;
    std::int64_t batch, positions, turned, index, members;
  };
  constexpr Form kForms[] = {{1, 1, 2, 1, 1, 0, 0, 1},   {4, 2, 6, 2, 9, 0, 0, 1},   {3, 1, 10, 1, 7, 4, 0, 1},
                             {4, 4, 64, 3, 70, 0, 0, 1}, {4, 2, 32, 2, 20, 0, 1, 3}, {2, 1, 8, 1, 12, 0, 1, 2}};
  for (const Form& f : kForms) {
    Attributes a = heads_of(f.heads, f.kv_heads, f.dim, f.batch);
    a.value = 10000;
    a.count = f.turned;
    const FastOperand qkv{kInPlace, kStorage, {f.positions * f.batch, std::int64_t{f.heads + 2 * f.kv_heads} * f.dim}};
    const RunOptions options{.index = f.index, .index_count = f.members};
    const std::string name = at("rotary", f.positions * f.batch, f.dim);
    cases.push_back({name, OpKind::kRotaryForward, a, {qkv}, options, 4});
    cases.push_back({name + " backward", OpKind::kRotaryBackward, a, {qkv}, options, 4});
  }
  return cases;
}

std::vector<FastCase> cross_entropy_cases() {
  std::vector<FastCase> cases;
  for (const auto [rows, width] : kExtents) {
    for (const std::int64_t index : {0, 1}) {
      const RunOptions holder{.index = index, .index_count = 2};
      const FastOperand logits{kRead, kStorage, {rows, width}};
      const FastOperand max{kRead, kPositive, {rows}};
      const FastOperand sums{kRead, kPositive, {2, rows}};
      const FastOperand tokens{kRead, kToken, {rows}};
      const std::int64_t vocabulary = 2 * width;
      using enum OpKind;
      cases.push_back({at("max", rows, width), kCrossEntropyMax, {}, {logits, {kWrite, kFloat, {rows}}}, holder, 0});
      // logit - max is rounded once, and may be 8: eight roundings of the exponential, which errs by five.
      cases.push_back({at("sum", rows, width),
                       kCrossEntropySum,
                       {},
                       {logits, max, tokens, {kWrite, kFloat, {2, rows}}},
                       holder,
                       16,
                       vocabulary});
      cases.push_back({at("backward", rows, width),
                       kCrossEntropyBackward,
                       with_value(0.25),
                       {max, sums, tokens, {kInPlace, kStorage, {rows, width}}},
                       holder,
                       20,
                       vocabulary});
    }
  }
  return cases;
}

std::vector<FastCase> optimizer_cases() {
  std::vector<FastCase> cases;
  Attributes a;
  a.learning_rate = 1e-2;
  a.beta1 = 0.9;
  a.beta2 = 0.95;
  a.eps = 1e-8;
  for (const std::int64_t n : {1, 15, 16, 1023, 1025, 5000, 70001}) {
    const FastOperand clip{kRead, kPositive, {1}};
    const FastOperand master{kInPlace, kFloat, {n}};
    const FastOperand weight{kWrite, kStorage, {n}};
    const FastOperand m{kInPlace, kFloat, {n}};
    const FastOperand v{kInPlace, kPositive, {n}};
    const FastOperand small_m{kInPlace, kStorage, {n}};
    const FastOperand small_v{kInPlace, kPositiveStorage, {n}};
    const FastOperand gradient{kRead, kStorage, {n}};
    const FastOperand wide_gradient{kRead, kFloat, {n}};
    const RunOptions third{.step = 3};
    using enum OpKind;
    cases.push_back({at("adam", 1, n), kAdam, a, {wide_gradient, clip, m, v, master, weight}, third, 8});
    cases.push_back({at("adam, no weight", 1, n), kAdam, a, {wide_gradient, clip, m, v, master}, third, 8});
    cases.push_back({at("adam, small", 1, n), kAdam, a, {gradient, clip, small_m, small_v, master, weight}, third, 8});
    // The own part of three.
    const FastOperand whole{kRead, kFloat, {3 * n}};
    const FastOperand whole_master{kInPlace, kFloat, {3 * n}};
    const FastOperand whole_weight{kInPlace, kStorage, {3 * n}};
    cases.push_back({at("adam, part", 1, n),
                     kAdam,
                     a,
                     {whole, clip, m, v, whole_master, whole_weight},
                     {.index = 2, .index_count = 3},
                     8});
    const FastOperand sum{kInPlace, kFloat, {1}};
    cases.push_back({at("squares", 1, n), kSumSquares, with_value(0.5), {gradient, sum}, {}, 4});
    Attributes part = with_value(0.5);
    part.count = 3;
    cases.push_back(
        {at("squares of a part", 1, n), kSumSquares, part, {whole, sum}, {.index = 1, .index_count = 3}, 4});
  }
  return cases;
}

}  // namespace stepcast::kernels
