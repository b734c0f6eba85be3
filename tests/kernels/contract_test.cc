// What every kernel owes, whatever it computes: written operands are overwritten whole, read operands stay as they are,
// bf16 results are the f32 results rounded once, and the table has a kernel for exactly the kinds that exec does not
// run itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/kernels/tensors.h"

namespace stepcast::kernels {
namespace {

using Values = std::vector<double>;

enum class Element { kStorage, kStatistic, kToken, kMask };
enum class Use { kRead, kWrite, kAccumulate };

struct OperandSpec {
  Use use;
  Element element;
  Shape shape;
};

struct Case {
  OpKind kind;
  Attributes attributes;
  std::vector<OperandSpec> operands;
};

constexpr Use kR = Use::kRead;
constexpr Use kW = Use::kWrite;
constexpr Use kA = Use::kAccumulate;
constexpr Element kX = Element::kStorage;
constexpr Element kStat = Element::kStatistic;
constexpr Element kTok = Element::kToken;
constexpr Element kM = Element::kMask;

Attributes rotary_attributes() {
  Attributes a = heads_of(4, 2, 2, 2);
  a.value = 100;
  return a;
}

Attributes qk_norm_attributes() {
  Attributes a = heads_of(4, 2, 2, 2);
  a.value = 0.1;
  return a;
}

Attributes matmul_attributes(program::MatmulForm form) {
  Attributes a;
  a.form = form;
  return a;
}

// Dropout with half of the elements gone, and ALiBi, on scores of 4 heads of 2 sequences.
Attributes dropout_attributes() {
  Attributes a = heads_of(4, 2, 2, 2);
  a.microbatches = 1;
  a.value = 0.5;
  return a;
}

Attributes alibi_attributes() {
  Attributes a = heads_of(4, 2, 2, 2);
  a.count = 4;
  return a;
}

// The kinds of GPT-style layers, with the sizes of cases().
std::vector<Case> gpt_cases() {
  const Attributes none;
  const Attributes heads = heads_of(4, 2, 2, 2);
  const Attributes drop = dropout_attributes();
  const OperandSpec x_in{kR, kX, {6, 5}}, x_out{kW, kX, {6, 5}}, row_in{kR, kX, {5}}, row_sum{kA, kX, {5}};
  const OperandSpec stats_in{kR, kStat, {2, 6}}, scores_in{kR, kX, {8, 3, 3}}, scores_out{kW, kX, {8, 3, 3}};
  const OperandSpec qkv_in{kR, kX, {6, 16}}, out_in{kR, kX, {6, 8}};
  return {
      {OpKind::kLayerNormForward, with_value(0.1), {x_in, row_in, row_in, x_out, {kW, kStat, {2, 6}}}},
      {OpKind::kLayerNormBackwardInput, none, {x_in, x_in, stats_in, row_in, x_out}},
      {OpKind::kLayerNormBackwardInput, none, {x_in, x_in, stats_in, row_in, x_out, x_in}},
      {OpKind::kLayerNormBackwardWeight, none, {x_in, x_in, stats_in, row_sum, row_sum}},
      {OpKind::kMatmul,
       matmul_attributes(program::MatmulForm::kNT),
       {x_in, {kR, kX, {7, 5}}, {kW, kX, {6, 7}}, {kR, kX, {7}}}},
      {OpKind::kBiasBackward, none, {x_in, row_sum}},
      {OpKind::kGeluForward, none, {x_in, x_out, row_in}},
      {OpKind::kGeluForward, none, {x_in, x_out}},
      {OpKind::kGeluBackward, none, {x_in, x_in, x_out, row_in}},
      {OpKind::kSquaredReluForward, none, {x_in, x_out, row_in}},
      {OpKind::kSquaredReluBackward, none, {x_in, x_in, x_out}},
      {OpKind::kBiasDropoutAdd, drop, {x_in, row_in, x_in, x_out, {kW, kM, {6, 5}}}},
      {OpKind::kBiasDropoutAdd, none, {x_in, row_in, x_in, x_out}},
      {OpKind::kDropoutForward, drop, {x_in, x_out, {kW, kM, {6, 5}}}},
      {OpKind::kDropoutForward, drop, {scores_in, scores_out, {kW, kM, {8, 3, 3}}}},
      {OpKind::kDropoutBackward, drop, {x_in, {kR, kM, {6, 5}}, x_out}},
      {OpKind::kPositionForward, heads, {{kR, kX, {3, 5}}, {kA, kX, {6, 5}}}},
      {OpKind::kPositionBackward, heads, {x_in, {kA, kX, {3, 5}}}},
      {OpKind::kAttentionForward, drop, {qkv_in, {kW, kX, {6, 8}}, {kW, kStat, {6, 4}}}},
      {OpKind::kAttentionForward, alibi_attributes(), {qkv_in, {kW, kX, {6, 8}}, {kW, kStat, {6, 4}}}},
      {OpKind::kAttentionBackward, drop, {out_in, qkv_in, out_in, {kR, kStat, {6, 4}}, {kW, kX, {6, 16}}}},
      {OpKind::kAttentionScoresForward, heads, {qkv_in, scores_out}},
      {OpKind::kAttentionScoresBackward, heads, {scores_in, qkv_in, {kA, kX, {6, 16}}}},
      {OpKind::kSoftmaxForward, alibi_attributes(), {scores_in, scores_out}},
      {OpKind::kSoftmaxBackward, heads, {scores_in, {kA, kX, {8, 3, 3}}}},
      {OpKind::kAttentionContextForward, heads, {scores_in, qkv_in, {kW, kX, {6, 8}}}},
      {OpKind::kAttentionContextBackward, heads, {out_in, scores_in, qkv_in, scores_out, {kW, kX, {6, 16}}}},
  };
}

// T = 6 tokens of 2 sequences, h = 5, V = 7, 4 heads and 2 kv heads of 2.
std::vector<Case> llama_cases() {
  const Attributes none;
  const Attributes attention = heads_of(4, 2, 2, 2);
  return {
      {OpKind::kZeroFill, none, {{kW, kX, {6, 5}}}},
      {OpKind::kCopy, none, {{kR, kX, {6, 5}}, {kW, kX, {30}}}},
      {OpKind::kCast, none, {{kR, kX, {6, 5}}, {kW, kX, {6, 5}}}},
      {OpKind::kAdd, none, {{kR, kX, {6, 5}}, {kR, kX, {6, 5}}, {kW, kX, {6, 5}}}},
      {OpKind::kAccumulate, none, {{kR, kX, {6, 5}}, {kA, kX, {6, 5}}}},
      {OpKind::kSumParts, none, {{kR, kX, {6, 5}}, {kW, kX, {2, 5}}}},
      {OpKind::kEmbeddingForward, none, {{kR, kTok, {6}}, {kR, kX, {7, 5}}, {kW, kX, {6, 5}}}},
      {OpKind::kRmsNormForward, with_value(0.1), {{kR, kX, {6, 5}}, {kR, kX, {5}}, {kW, kX, {6, 5}}, {kW, kStat, {6}}}},
      {OpKind::kRmsNormBackwardInput,
       none,
       {{kR, kX, {6, 5}}, {kR, kX, {6, 5}}, {kR, kStat, {6}}, {kR, kX, {5}}, {kW, kX, {6, 5}}}},
      {OpKind::kRmsNormBackwardInput,
       none,
       {{kR, kX, {6, 5}}, {kR, kX, {6, 5}}, {kR, kStat, {6}}, {kR, kX, {5}}, {kW, kX, {6, 5}}, {kR, kX, {6, 5}}}},
      {OpKind::kRmsNormBackwardWeight, none, {{kR, kX, {6, 5}}, {kR, kX, {6, 5}}, {kR, kStat, {6}}, {kA, kX, {5}}}},
      {OpKind::kMatmul,
       matmul_attributes(program::MatmulForm::kNT),
       {{kR, kX, {6, 5}}, {kR, kX, {7, 5}}, {kW, kX, {6, 7}}}},
      {OpKind::kMatmul,
       matmul_attributes(program::MatmulForm::kNN),
       {{kR, kX, {6, 5}}, {kR, kX, {5, 7}}, {kW, kX, {6, 7}}}},
      {OpKind::kMatmul,
       matmul_attributes(program::MatmulForm::kTN),
       {{kR, kX, {6, 5}}, {kR, kX, {6, 7}}, {kW, kX, {5, 7}}}},
      {OpKind::kRotaryForward, rotary_attributes(), {{kA, kX, {6, 16}}}},
      {OpKind::kRotaryBackward, rotary_attributes(), {{kA, kX, {6, 16}}}},
      {OpKind::kQkNormForward,
       qk_norm_attributes(),
       {{kR, kX, {2}}, {kR, kX, {2}}, {kA, kX, {6, 16}}, {kW, kX, {6, 12}}, {kW, kStat, {6, 6}}}},
      {OpKind::kQkNormBackwardInput,
       attention,
       {{kR, kX, {6, 12}}, {kR, kStat, {6, 6}}, {kR, kX, {2}}, {kR, kX, {2}}, {kA, kX, {6, 16}}}},
      {OpKind::kQkNormBackwardWeight,
       attention,
       {{kR, kX, {6, 16}}, {kR, kX, {6, 12}}, {kR, kStat, {6, 6}}, {kA, kX, {2}}, {kA, kX, {2}}}},
      {OpKind::kAttentionForward, attention, {{kR, kX, {6, 16}}, {kW, kX, {6, 8}}, {kW, kStat, {6, 4}}}},
      {OpKind::kAttentionBackward,
       attention,
       {{kR, kX, {6, 8}}, {kR, kX, {6, 16}}, {kR, kX, {6, 8}}, {kR, kStat, {6, 4}}, {kW, kX, {6, 16}}}},
      {OpKind::kOwnRows, none, {{kR, kX, {6, 5}}, {kW, kX, {6, 5}}}},
      {OpKind::kKvExtract, attention, {{kR, kX, {6, 16}}, {kW, kX, {6, 8}}}},
      {OpKind::kKvAccumulate, attention, {{kR, kX, {6, 8}}, {kA, kX, {6, 16}}}},
      {OpKind::kShareAttentionForward,
       attention,
       {{kR, kX, {6, 16}}, {kR, kX, {6, 8}}, {kW, kX, {6, 8}}, {kW, kStat, {6, 4}}}},
      {OpKind::kShareAttentionBackward,
       attention,
       {{kR, kX, {6, 8}},
        {kR, kX, {6, 16}},
        {kR, kX, {6, 8}},
        {kR, kX, {6, 8}},
        {kR, kStat, {6, 4}},
        {kW, kX, {6, 16}},
        {kW, kX, {6, 8}}}},
      {OpKind::kSwiGluForward, none, {{kR, kX, {6, 10}}, {kW, kX, {6, 5}}}},
      {OpKind::kSwiGluBackward, none, {{kR, kX, {6, 5}}, {kR, kX, {6, 10}}, {kW, kX, {6, 10}}}},
      {OpKind::kCrossEntropyMax, none, {{kR, kX, {6, 7}}, {kW, kStat, {6}}}},
      {OpKind::kCrossEntropySum, none, {{kR, kX, {6, 7}}, {kR, kStat, {6}}, {kR, kTok, {6}}, {kW, kStat, {2, 6}}}},
      {OpKind::kCrossEntropyLoss, with_value(0.5), {{kR, kStat, {6}}, {kR, kStat, {2, 6}}, {kA, kStat, {1}}}},
      {OpKind::kCrossEntropyBackward,
       with_value(0.5),
       {{kR, kStat, {6}}, {kR, kStat, {2, 6}}, {kR, kTok, {6}}, {kA, kX, {6, 7}}}},
      {OpKind::kSumSquares, with_value(0.5), {{kR, kX, {6, 5}}, {kA, kStat, {1}}}},
      {OpKind::kClipFactor, with_value(0.5), {{kR, kStat, {1}}, {kW, kStat, {1}}}},
  };
}

std::vector<Case> cases() {
  std::vector<Case> all = llama_cases();
  for (Case& c : gpt_cases()) all.push_back(std::move(c));
  return all;
}

// Statistics are positive, as rstd and sums of exp are; tokens are below V = 7. Values are exact in bf16, so that every
// storage type starts from the same numbers.
Buffer filled(const OperandSpec& spec, DType storage, std::size_t position) {
  const std::string name = "operand" + std::to_string(position);
  if (spec.element == Element::kToken) {
    Buffer tokens(DType::kI32, spec.shape);
    for (std::int64_t i = 0; i < tokens.size(); ++i) tokens.set(i, static_cast<double>(i % 7));
    return tokens;
  }
  if (spec.element == Element::kMask) {
    Buffer mask(DType::kU8, spec.shape);
    for (std::int64_t i = 0; i < mask.size(); ++i) mask.set(i, static_cast<double>(i % 2));
    return mask;
  }
  const DType dtype = spec.element == Element::kStorage ? storage : storage == DType::kF64 ? DType::kF64 : DType::kF32;
  const Buffer rounded = random_buffer(DType::kBf16, spec.shape, name);
  Buffer result(dtype, spec.shape);
  for (std::int64_t i = 0; i < result.size(); ++i) {
    result.set(i, spec.element == Element::kStatistic ? std::abs(rounded.at(i)) + 0.5 : rounded.at(i));
  }
  return result;
}

// The operands after the kernel has run; written ones were NaN before.
std::vector<Buffer> run_case(const Case& c, DType storage) {
  std::vector<Buffer> buffers;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    const Buffer values = filled(c.operands[i], storage, i);
    buffers.push_back(c.operands[i].use == kW ? Buffer(values.dtype(), c.operands[i].shape) : values);
  }
  std::vector<Tensor> tensors;
  for (Buffer& buffer : buffers) tensors.push_back(buffer.tensor());
  reference_kernel(c.kind)({.operands = tensors, .attributes = &c.attributes, .kind = c.kind});
  return buffers;
}

std::string name_of(const Case& c, std::size_t operand) {
  return "kind " + std::to_string(static_cast<int>(c.kind)) + " operand " + std::to_string(operand);
}

TEST(Contract, WrittenOperandsAreOverwrittenWhole) {
  for (const DType storage : {DType::kF32, DType::kBf16, DType::kF64}) {
    for (const Case& c : cases()) {
      const std::vector<Buffer> after = run_case(c, storage);
      for (std::size_t i = 0; i < after.size(); ++i) {
        for (const double value : after[i].values()) ASSERT_TRUE(std::isfinite(value)) << name_of(c, i);
      }
    }
  }
}

TEST(Contract, ReadOperandsStayAsTheyAre) {
  for (const Case& c : cases()) {
    const std::vector<Buffer> after = run_case(c, DType::kBf16);
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (c.operands[i].use != kR) continue;
      ASSERT_EQ(after[i].bytes(), filled(c.operands[i], DType::kBf16, i).bytes()) << name_of(c, i);
    }
  }
}

// From equal inputs both types do the same float arithmetic; only the last step, storing, rounds bf16. So the results
// are equal to the bit after rounding, and hence within 2^-8 relative of each other. Statistics are not rounded at all.
TEST(Contract, Bf16ResultsAreTheF32ResultsRoundedOnce) {
  for (const Case& c : cases()) {
    const std::vector<Buffer> exact = run_case(c, DType::kF32);
    const std::vector<Buffer> rounded = run_case(c, DType::kBf16);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      for (std::int64_t e = 0; e < exact[i].size(); ++e) {
        const bool storage = c.operands[i].element == Element::kStorage;
        const double expected =
            storage ? static_cast<double>(to_float(to_bf16(static_cast<float>(exact[i].at(e))))) : exact[i].at(e);
        ASSERT_EQ(rounded[i].at(e), expected) << name_of(c, i) << " element " << e;
      }
    }
  }
}

// f32 differs from f64 by rounding only. Sums here have at most 16 terms of values below 10 and pass through a handful
// of operations: 1e-4 absolute or relative is some hundred f32 roundings (6e-8) of such values.
TEST(Contract, F32ResultsAreCloseToF64Results) {
  for (const Case& c : cases()) {
    const std::vector<Buffer> exact = run_case(c, DType::kF64);
    const std::vector<Buffer> single = run_case(c, DType::kF32);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      for (std::int64_t e = 0; e < exact[i].size(); ++e) {
        const double expected = exact[i].at(e);
        ASSERT_NEAR(single[i].at(e), expected, 1e-4 * std::max(1.0, std::abs(expected))) << name_of(c, i);
      }
    }
  }
}

// Gradients of bf16 data are kept in f32: the f32 kernel on the same numbers says the same.
TEST(Contract, WeightGradientsOfBf16AreF32) {
  std::vector<Values> results;
  for (const DType storage : {DType::kF32, DType::kBf16}) {
    Buffer tokens(DType::kI32, {6}, {0, 1, 2, 1, 1, 0});
    Buffer dy = filled({kR, kX, {6, 5}}, storage, 0);
    Buffer x = filled({kR, kX, {6, 5}}, storage, 1);
    Buffer rstd = filled({kR, kStat, {6}}, storage, 2);
    Buffer dweight = filled({kA, kStat, {5}}, storage, 3);
    Buffer dtable = filled({kA, kStat, {3, 5}}, storage, 4);
    run(OpKind::kRmsNormBackwardWeight, {}, {&dy, &x, &rstd, &dweight});
    run(OpKind::kEmbeddingBackward, {}, {&tokens, &dy, &dtable});
    Values both = dweight.values();
    for (const double value : dtable.values()) both.push_back(value);
    results.push_back(both);
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(Contract, TableHasAKernelForEveryKindThatComputes) {
  for (int k = 0; k < program::kOpKindCount; ++k) {
    const auto kind = static_cast<OpKind>(k);
    const bool run_by_exec = program::is_communication(kind) || kind == OpKind::kJoin || kind == OpKind::kHostRead;
    EXPECT_EQ(reference_kernel(kind) == nullptr, run_by_exec || program::is_priced_only(kind)) << k;
  }
}

TEST(Contract, WrongElementTypesAndMissingOperandsAreRefused) {
  Buffer f32 = zeros(DType::kF32, {2, 4});
  Buffer bf16 = zeros(DType::kBf16, {2, 4});
  Buffer i32 = zeros(DType::kI32, {2, 4});
  EXPECT_THROW(run(OpKind::kAdd, {}, {&f32, &bf16, &f32}), InternalError);
  EXPECT_THROW(run(OpKind::kAdd, {}, {&i32, &i32, &i32}), InternalError);
  EXPECT_THROW(run(OpKind::kAdd, {}, {&f32, &f32}), InternalError);
  EXPECT_THROW(run(OpKind::kCopy, {}, {&f32, &bf16}), InternalError);
}

}  // namespace
}  // namespace stepcast::kernels
