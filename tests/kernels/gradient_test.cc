// Every backward kernel of Llama-type layers against central differences of its forward kernel, all in double: see
// finite_differences.h.
#include <gtest/gtest.h>

#include <string>

#include "tests/kernels/finite_differences.h"

namespace stepcast::kernels {
namespace {

// Forward y = x w^T; the plan computes dx by NN and dw by TN.
TEST(Gradient, OfMatmul) {
  Buffer x = random_buffer(kF64, {5, 7}, "x");
  Buffer w = random_buffer(kF64, {3, 7}, "w");
  Buffer r = random_buffer(kF64, {5, 3}, "r");
  Buffer y(kF64, {5, 3});
  Attributes form;
  const auto loss = [&] {
    form.form = program::MatmulForm::kNT;
    run(OpKind::kMatmul, form, {&x, &w, &y});
    return dot(y, r);
  };
  Buffer dx(kF64, {5, 7});
  form.form = program::MatmulForm::kNN;
  run(OpKind::kMatmul, form, {&r, &w, &dx});
  Buffer dw(kF64, {3, 7});
  form.form = program::MatmulForm::kTN;
  run(OpKind::kMatmul, form, {&r, &x, &dw});
  expect_gradient("dx", x, dx, loss);
  expect_gradient("dw", w, dw, loss);
}

// eps = 0.3 is large enough to show where it is left out.
TEST(Gradient, OfRmsNorm) {
  const Attributes eps = with_value(0.3);
  for (const bool with_residual : {false, true}) {
    Buffer x = random_buffer(kF64, {4, 9}, "x");
    Buffer w = random_buffer(kF64, {9}, "w");
    Buffer r = random_buffer(kF64, {4, 9}, "r");
    Buffer residual = random_buffer(kF64, {4, 9}, "residual");
    Buffer y(kF64, {4, 9});
    Buffer rstd(kF64, {4});
    // With a residual branch x reaches the loss directly as well, with gradient `residual`.
    const auto loss = [&] {
      run(OpKind::kRmsNormForward, eps, {&x, &w, &y, &rstd});
      return dot(y, r) + (with_residual ? dot(x, residual) : 0.0);
    };
    loss();
    Buffer dx(kF64, {4, 9});
    if (with_residual) {
      run(OpKind::kRmsNormBackwardInput, eps, {&r, &x, &rstd, &w, &dx, &residual});
    } else {
      run(OpKind::kRmsNormBackwardInput, eps, {&r, &x, &rstd, &w, &dx});
    }
    Buffer dw = zeros(kF64, {9});
    run(OpKind::kRmsNormBackwardWeight, eps, {&r, &x, &rstd, &dw});
    expect_gradient("dx", x, dx, loss);
    expect_gradient("dw", w, dw, loss);
  }
}

struct HeadCase {
  std::int32_t heads, kv_heads, head_dim;
  std::int64_t batch, sequence;
};

// One head; grouped heads (2 and 3 per kv head); several sequences; head_dim from 2 to 8; one position.
constexpr HeadCase kHeadCases[] = {{1, 1, 2, 1, 5}, {4, 2, 4, 2, 5}, {6, 2, 2, 3, 4}, {3, 1, 8, 2, 3}, {2, 2, 6, 2, 1}};

Shape qkv_shape(const HeadCase& c) { return {c.batch * c.sequence, (c.heads + 2 * c.kv_heads) * c.head_dim}; }

TEST(Gradient, OfRotary) {
  for (const HeadCase& c : kHeadCases) {
    Attributes attributes = heads_of(c.heads, c.kv_heads, c.head_dim, c.batch);
    attributes.value = 50.0;
    Buffer x = random_buffer(kF64, qkv_shape(c), "x");
    const Buffer r = random_buffer(kF64, qkv_shape(c), "r");
    const auto loss = [&] {
      Buffer turned = x;
      run(OpKind::kRotaryForward, attributes, {&turned});
      return dot(turned, r);
    };
    Buffer dx = r;
    run(OpKind::kRotaryBackward, attributes, {&dx});
    expect_gradient("head_dim " + std::to_string(c.head_dim), x, dx, loss);
  }
}

// Only the first 2 and 4 of 6 elements of a head are turned; the others pass.
TEST(Gradient, OfRotaryOfAPartOfEachHead) {
  for (const std::int64_t turned : {2, 4}) {
    Attributes attributes = heads_of(2, 1, 6, 2);
    attributes.value = 50.0;
    attributes.count = turned;
    Buffer x = random_buffer(kF64, {10, 24}, "x");
    const Buffer r = random_buffer(kF64, {10, 24}, "r");
    const auto loss = [&] {
      Buffer y = x;
      run(OpKind::kRotaryForward, attributes, {&y});
      return dot(y, r);
    };
    Buffer dx = r;
    run(OpKind::kRotaryBackward, attributes, {&dx});
    expect_gradient("turned " + std::to_string(turned), x, dx, loss);
  }
}

// Norms of each head (weights of head_dim) and of all heads at once.
TEST(Gradient, OfNormsOfQueriesAndKeys) {
  for (const HeadCase& c : kHeadCases) {
    for (const bool per_head : {true, false}) {
      Attributes attributes = heads_of(c.heads, c.kv_heads, c.head_dim, c.batch);
      attributes.value = 0.3;
      const std::int64_t tokens = c.batch * c.sequence;
      const std::int64_t q = per_head ? c.head_dim : c.heads * c.head_dim;
      const std::int64_t k = per_head ? c.head_dim : c.kv_heads * c.head_dim;
      Buffer q_weight = random_buffer(kF64, {q}, "q_weight");
      Buffer k_weight = random_buffer(kF64, {k}, "k_weight");
      Buffer x = random_buffer(kF64, qkv_shape(c), "x");
      const Buffer r = random_buffer(kF64, qkv_shape(c), "r");
      Buffer raw(kF64, {tokens, (c.heads + c.kv_heads) * c.head_dim});
      Buffer rstd(kF64, {tokens, per_head ? c.heads + c.kv_heads : 2});
      const auto loss = [&] {
        Buffer y = x;
        run(OpKind::kQkNormForward, attributes, {&q_weight, &k_weight, &y, &raw, &rstd});
        return dot(y, r);
      };
      loss();
      Buffer dx = r;
      Buffer dq = zeros(kF64, {q});
      Buffer dk = zeros(kF64, {k});
      run(OpKind::kQkNormBackwardWeight, attributes, {&dx, &raw, &rstd, &dq, &dk});
      run(OpKind::kQkNormBackwardInput, attributes, {&raw, &rstd, &q_weight, &k_weight, &dx});
      const std::string name = std::to_string(c.heads) + " heads of " + std::to_string(c.head_dim);
      expect_gradient("dx, " + name, x, dx, loss);
      expect_gradient("dq_weight, " + name, q_weight, dq, loss);
      expect_gradient("dk_weight, " + name, k_weight, dk, loss);
    }
  }
}

TEST(Gradient, OfAttention) {
  for (const HeadCase& c : kHeadCases) {
    const Attributes attributes = heads_of(c.heads, c.kv_heads, c.head_dim, c.batch);
    const std::int64_t tokens = c.batch * c.sequence;
    Buffer qkv = random_buffer(kF64, qkv_shape(c), "qkv");
    Buffer r = random_buffer(kF64, {tokens, c.heads * c.head_dim}, "r");
    Buffer out(kF64, {tokens, c.heads * c.head_dim});
    Buffer lse(kF64, {tokens, c.heads});
    const auto loss = [&] {
      run(OpKind::kAttentionForward, attributes, {&qkv, &out, &lse});
      return dot(out, r);
    };
    loss();
    Buffer dqkv(kF64, qkv_shape(c));
    run(OpKind::kAttentionBackward, attributes, {&r, &qkv, &out, &lse, &dqkv});
    expect_gradient("heads " + std::to_string(c.heads) + " of " + std::to_string(c.head_dim), qkv, dqkv, loss);
  }
}

TEST(Gradient, OfSwiGlu) {
  Buffer gate_up = random_buffer(kF64, {4, 10}, "gate_up");
  Buffer r = random_buffer(kF64, {4, 5}, "r");
  Buffer out(kF64, {4, 5});
  const auto loss = [&] {
    run(OpKind::kSwiGluForward, {}, {&gate_up, &out});
    return dot(out, r);
  };
  Buffer dgate_up(kF64, {4, 10});
  run(OpKind::kSwiGluBackward, {}, {&r, &gate_up, &dgate_up});
  expect_gradient("dgate_up", gate_up, dgate_up, loss);
}

// Holder 1 of 2 has tokens 4..7: 4 twice, 5 and 7 once, 6 never; 1 and 3 are another holder's.
TEST(Gradient, OfEmbeddingOfTheSecondHolder) {
  const RunOptions second{.index = 1, .index_count = 2};
  Buffer tokens(DType::kI32, {6}, {4, 1, 7, 4, 5, 3});
  Buffer table = random_buffer(kF64, {4, 3}, "table");
  Buffer r = random_buffer(kF64, {6, 3}, "r");
  Buffer out(kF64, {6, 3});
  const auto loss = [&] {
    run(OpKind::kEmbeddingForward, {}, {&tokens, &table, &out}, second);
    return dot(out, r);
  };
  Buffer dtable = zeros(kF64, {4, 3});
  run(OpKind::kEmbeddingBackward, {}, {&tokens, &r, &dtable}, second);
  expect_gradient("dtable", table, dtable, loss);
}

// Backward kernels that accumulate add to what is there, so a second run doubles the gradient.
TEST(Gradient, OfWeightsIsAccumulated) {
  Buffer tokens(DType::kI32, {2}, {0, 1});
  Buffer r = random_buffer(kF64, {2, 3}, "r");
  Buffer x = random_buffer(kF64, {2, 3}, "x");
  Buffer rstd(kF64, {2}, {0.5, 2});
  Buffer dtable = zeros(kF64, {2, 3});
  Buffer dweight = zeros(kF64, {3});
  run(OpKind::kEmbeddingBackward, {}, {&tokens, &r, &dtable});
  run(OpKind::kRmsNormBackwardWeight, {}, {&r, &x, &rstd, &dweight});
  const Buffer table_once = dtable;
  const Buffer weight_once = dweight;
  run(OpKind::kEmbeddingBackward, {}, {&tokens, &r, &dtable});
  run(OpKind::kRmsNormBackwardWeight, {}, {&r, &x, &rstd, &dweight});
  for (std::int64_t i = 0; i < dtable.size(); ++i) EXPECT_EQ(dtable.at(i), 2 * table_once.at(i));
  for (std::int64_t i = 0; i < dweight.size(); ++i) EXPECT_EQ(dweight.at(i), 2 * weight_once.at(i));
}

}  // namespace
}  // namespace stepcast::kernels
