// Calls on which kernels of other backends are held against the reference kernels in f64, and the bound of their
// difference.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/kernels/tensors.h"

namespace stepcast::kernels {

// Relative errors of a value that is rounded to f32 and to bf16.
inline constexpr double kF32Rounding = 0x1p-24;
inline constexpr double kBf16Rounding = 0x1p-8;

enum class Use { kRead, kWrite, kInPlace };

// Element type of an operand, given the storage type of the case: itself, f32 (statistics, masters, gradients kept in
// f32), the same but positive, i32 tokens, or u8 masks.
enum class Content { kStorage, kFloat, kPositive, kPositiveStorage, kToken, kMask };

struct FastOperand {
  Use use = Use::kRead;
  Content content = Content::kStorage;
  Shape shape;
  std::vector<double> values = {};  // empty: random
};

struct FastCase {
  std::string name;
  OpKind kind;
  Attributes attributes;
  std::vector<FastOperand> operands;
  RunOptions options = {};
  // The fast kernel's f32 results, before they are stored, are within this many roundings (2^-24), of the
  // largest magnitude of the operand's exact result or of 1. 0: they are the exact ones.
  double roundings = 8;
  std::int64_t vocabulary = 7;  // tokens are below it
};

std::vector<FastCase> norm_cases();
std::vector<FastCase> activation_cases();
std::vector<FastCase> elementwise_cases();
std::vector<FastCase> rotary_cases();
std::vector<FastCase> cross_entropy_cases();
std::vector<FastCase> optimizer_cases();
std::vector<FastCase> attention_cases();
std::vector<FastCase> share_attention_cases();
std::vector<FastCase> unfused_attention_cases();
// In more_cases.cc: kinds that have no fast CPU kernel, and large rows.
std::vector<FastCase> memory_cases();
std::vector<FastCase> embedding_cases();
std::vector<FastCase> position_cases();
std::vector<FastCase> token_cases();
std::vector<FastCase> dropout_cases();
std::vector<FastCase> softmax_cases();
std::vector<FastCase> qk_norm_cases();
std::vector<FastCase> row_copy_cases();
std::vector<FastCase> scalar_cases();
std::vector<FastCase> large_row_cases();

// Runs the case with storage type `storage` by `kernel`, from the same numbers whatever the type (they are exact in
// bf16). Operands that are written hold NaN before. Gives every operand afterwards.
std::vector<Buffer> run_fast_case(const FastCase& c, DType storage,
                                  const std::function<void(const KernelContext&)>& kernel, StreamState* state);

// The first element of `got` that differs from the exact one (the reference's, in f64) by more than the case allows;
// empty when none does.
std::optional<std::string> difference(const FastCase& c, DType storage, const std::vector<Buffer>& got,
                                      const std::vector<Buffer>& exact);

}  // namespace stepcast::kernels
