// Every backward kernel of GPT-style layers against central differences of its forward kernel: see
// finite_differences.h.
#include <gtest/gtest.h>

#include <string>

#include "tests/kernels/finite_differences.h"

namespace stepcast::kernels {
namespace {

// eps = 0.3 is large enough to show where it is left out.
TEST(GptGradient, OfLayerNorm) {
  const Attributes eps = with_value(0.3);
  for (const bool with_residual : {false, true}) {
    Buffer x = random_buffer(kF64, {4, 9}, "x");
    Buffer w = random_buffer(kF64, {9}, "w");
    Buffer b = random_buffer(kF64, {9}, "b");
    Buffer r = random_buffer(kF64, {4, 9}, "r");
    Buffer residual = random_buffer(kF64, {4, 9}, "residual");
    Buffer y(kF64, {4, 9});
    Buffer stats(kF64, {2, 4});
    const auto loss = [&] {
      run(OpKind::kLayerNormForward, eps, {&x, &w, &b, &y, &stats});
      return dot(y, r) + (with_residual ? dot(x, residual) : 0.0);
    };
    loss();
    Buffer dx(kF64, {4, 9});
    if (with_residual) {
      run(OpKind::kLayerNormBackwardInput, eps, {&r, &x, &stats, &w, &dx, &residual});
    } else {
      run(OpKind::kLayerNormBackwardInput, eps, {&r, &x, &stats, &w, &dx});
    }
    Buffer dw = zeros(kF64, {9});
    Buffer db = zeros(kF64, {9});
    run(OpKind::kLayerNormBackwardWeight, eps, {&r, &x, &stats, &dw, &db});
    expect_gradient("dx", x, dx, loss);
    expect_gradient("dw", w, dw, loss);
    expect_gradient("db", b, db, loss);
  }
}

// y = x w^T + b.
TEST(GptGradient, OfTheBiasOfAMatmul) {
  Buffer x = random_buffer(kF64, {5, 7}, "x");
  Buffer w = random_buffer(kF64, {3, 7}, "w");
  Buffer b = random_buffer(kF64, {3}, "b");
  Buffer r = random_buffer(kF64, {5, 3}, "r");
  Buffer y(kF64, {5, 3});
  const auto loss = [&] {
    run(OpKind::kMatmul, {}, {&x, &w, &y, &b});
    return dot(y, r);
  };
  Buffer db = zeros(kF64, {3});
  run(OpKind::kBiasBackward, {}, {&r, &db});
  expect_gradient("db", b, db, loss);
}

// Random normal inputs keep away from the kink of the squared ReLU by far more than the step, and its slope is zero
// there anyway.
TEST(GptGradient, OfActivationsWithAndWithoutBias) {
  const struct {
    OpKind forward, backward;
  } kinds[] = {{OpKind::kGeluForward, OpKind::kGeluBackward},
               {OpKind::kSquaredReluForward, OpKind::kSquaredReluBackward}};
  for (const auto& kind : kinds) {
    Buffer in = random_buffer(kF64, {4, 6}, "in");
    Buffer bias = random_buffer(kF64, {6}, "bias");
    Buffer r = random_buffer(kF64, {4, 6}, "r");
    Buffer out(kF64, {4, 6});
    Buffer din(kF64, {4, 6});
    const std::string name(program::to_string(kind.forward));
    const auto loss = [&] {
      run(kind.forward, {}, {&in, &out});
      return dot(out, r);
    };
    run(kind.backward, {}, {&r, &in, &din});
    expect_gradient(name, in, din, loss);
    const auto biased_loss = [&] {
      run(kind.forward, {}, {&in, &out, &bias});
      return dot(out, r);
    };
    run(kind.backward, {}, {&r, &in, &din, &bias});
    expect_gradient(name + " with bias", in, din, biased_loss);
    // The bias is added to every row: its gradient is the sum of the input's over rows.
    Buffer dbias = zeros(kF64, {6});
    run(OpKind::kBiasBackward, {}, {&din, &dbias});
    expect_gradient(name + " bias", bias, dbias, biased_loss);
  }
}

Attributes dropout_of(double probability, const Attributes& base = {}) {
  Attributes a = base;
  a.value = probability;
  a.microbatches = 2;
  return a;
}

// A third of the elements gone; 2 sequences, the second of 2 microbatches, rows 6 to 11 of 12.
TEST(GptGradient, OfBiasDropoutAddAndDropout) {
  Attributes a = dropout_of(0.3);
  a.batch = 2;
  a.count = static_cast<std::int64_t>(program::DropoutSite::kMlpOutput);
  const RunOptions options{.index = 1, .index_count = 2, .sample_index = 1, .layer = 3, .microbatch = 1, .seed = 5};
  Buffer in = random_buffer(kF64, {6, 8}, "in");
  Buffer bias = random_buffer(kF64, {8}, "bias");
  Buffer residual = random_buffer(kF64, {6, 8}, "residual");
  Buffer r = random_buffer(kF64, {6, 8}, "r");
  Buffer out(kF64, {6, 8});
  Buffer mask(DType::kU8, {6, 8});
  const auto loss = [&] {
    run(OpKind::kBiasDropoutAdd, a, {&in, &bias, &residual, &out, &mask}, options);
    return dot(out, r);
  };
  loss();
  Buffer din(kF64, {6, 8});
  run(OpKind::kDropoutBackward, a, {&r, &mask, &din});
  Buffer dbias = zeros(kF64, {8});
  run(OpKind::kBiasBackward, {}, {&din, &dbias});
  expect_gradient("in", in, din, loss);
  expect_gradient("bias", bias, dbias, loss);
  expect_gradient("residual", residual, r, loss);
  const auto plain_loss = [&] {
    run(OpKind::kDropoutForward, a, {&in, &out, &mask}, options);
    return dot(out, r);
  };
  expect_gradient("dropout", in, din, plain_loss);  // the same site, hence the same mask
}

// Three tokens of each of two sequences; the second of two ranks holds rows 4 and 5 of 6.
TEST(GptGradient, OfLearnedPositions) {
  Attributes a;
  a.batch = 2;
  for (const RunOptions& options : {RunOptions{}, RunOptions{.index = 1, .index_count = 2}}) {
    const std::int64_t tokens = options.index_count == 1 ? 6 : 2;
    Buffer table = random_buffer(kF64, {4, 3}, "table");
    const Buffer embedded = random_buffer(kF64, {tokens, 3}, "x");
    Buffer r = random_buffer(kF64, {tokens, 3}, "r");
    const auto loss = [&] {
      Buffer x = embedded;
      run(OpKind::kPositionForward, a, {&table, &x}, options);
      return dot(x, r);
    };
    Buffer dtable = zeros(kF64, {4, 3});
    run(OpKind::kPositionBackward, a, {&r, &dtable}, options);
    expect_gradient("dtable", table, dtable, loss);
  }
}

// Fused attention with ALiBi of the second half of 8 heads, and with a quarter of the probabilities dropped.
TEST(GptGradient, OfFusedAttentionWithAlibiAndDropout) {
  const RunOptions options{.index = 1, .index_count = 2, .sample_index = 1, .layer = 2, .microbatch = 1, .seed = 9};
  for (const double probability : {0.0, 0.25}) {
    Attributes a = dropout_of(probability, heads_of(4, 2, 4, 2));
    a.count = 8;
    Buffer qkv = random_buffer(kF64, {10, 32}, "qkv");
    Buffer r = random_buffer(kF64, {10, 16}, "r");
    Buffer out(kF64, {10, 16});
    Buffer lse(kF64, {10, 4});
    const auto loss = [&] {
      run(OpKind::kAttentionForward, a, {&qkv, &out, &lse}, options);
      return dot(out, r);
    };
    loss();
    Buffer dqkv(kF64, {10, 32});
    run(OpKind::kAttentionBackward, a, {&r, &qkv, &out, &lse, &dqkv}, options);
    expect_gradient("dropout " + std::to_string(probability), qkv, dqkv, loss);
  }
}

struct UnfusedCase {
  std::int32_t heads, kv_heads, head_dim;
  std::int64_t batch, sequence;
  bool alibi;
  double dropout;
};

// The chain of unfused ops, forward and backward, on one set of operands.
struct Unfused {
  explicit Unfused(const UnfusedCase& c)
      : attributes(heads_of(c.heads, c.kv_heads, c.head_dim, c.batch)),
        drop(dropout_of(c.dropout, attributes)),
        qkv(random_buffer(kF64, {c.batch * c.sequence, (c.heads + 2 * c.kv_heads) * c.head_dim}, "qkv")),
        scores(kF64, {c.batch * c.heads, c.sequence, c.sequence}),
        probabilities(scores),
        dropped(scores),
        mask(DType::kU8, {c.batch * c.heads, c.sequence, c.sequence}),
        out(kF64, {c.batch * c.sequence, c.heads * c.head_dim}),
        dqkv(kF64, {c.batch * c.sequence, (c.heads + 2 * c.kv_heads) * c.head_dim}) {
    softmax = attributes;
    if (c.alibi) softmax.count = 2 * c.heads;
    drop.count = static_cast<std::int64_t>(program::DropoutSite::kScores);
  }
  Buffer& mixed() { return drop.value > 0 ? dropped : probabilities; }

  void forward() {
    run(OpKind::kAttentionScoresForward, attributes, {&qkv, &scores});
    run(OpKind::kSoftmaxForward, softmax, {&scores, &probabilities}, options);
    if (drop.value > 0) run(OpKind::kDropoutForward, drop, {&probabilities, &dropped, &mask}, options);
    run(OpKind::kAttentionContextForward, attributes, {&mixed(), &qkv, &out});
  }
  void backward(Buffer& dout) {
    Buffer gradient(kF64, scores.tensor().type.shape);
    run(OpKind::kAttentionContextBackward, attributes, {&dout, &mixed(), &qkv, &gradient, &dqkv});
    if (drop.value > 0) run(OpKind::kDropoutBackward, drop, {&gradient, &mask, &gradient});
    run(OpKind::kSoftmaxBackward, softmax, {&probabilities, &gradient});
    run(OpKind::kAttentionScoresBackward, attributes, {&gradient, &qkv, &dqkv});
  }

  RunOptions options{.index = 1, .index_count = 2, .sample_index = 1, .layer = 2, .microbatch = 1, .seed = 9};
  Attributes attributes, softmax, drop;
  Buffer qkv, scores, probabilities, dropped, mask, out, dqkv;
};

constexpr UnfusedCase kUnfusedCases[] = {
    {1, 1, 2, 1, 5, false, 0}, {4, 2, 4, 2, 5, false, 0.25}, {6, 2, 2, 3, 4, true, 0}, {4, 4, 2, 2, 3, true, 0.25}};

TEST(GptGradient, OfUnfusedAttention) {
  for (const UnfusedCase& c : kUnfusedCases) {
    Unfused chain(c);
    Buffer r = random_buffer(kF64, {c.batch * c.sequence, c.heads * c.head_dim}, "r");
    const auto loss = [&] {
      chain.forward();
      return dot(chain.out, r);
    };
    loss();
    chain.backward(r);
    expect_gradient("heads " + std::to_string(c.heads), chain.qkv, chain.dqkv, loss);
  }
}

// The same function: rounding apart, fused and unfused attention agree, with the same mask and the same slopes. Sums of
// some tens of terms of order 1 in double: 1e-13.
TEST(UnfusedAttention, EqualsFusedAttention) {
  for (const UnfusedCase& c : kUnfusedCases) {
    Unfused chain(c);
    chain.forward();
    Attributes fused = chain.drop;
    fused.count = chain.softmax.count;
    Buffer out(kF64, {c.batch * c.sequence, c.heads * c.head_dim});
    Buffer lse(kF64, {c.batch * c.sequence, c.heads});
    run(OpKind::kAttentionForward, fused, {&chain.qkv, &out, &lse}, chain.options);
    for (std::int64_t i = 0; i < out.size(); ++i) ASSERT_NEAR(chain.out.at(i), out.at(i), 1e-13) << c.heads << " " << i;
  }
}

}  // namespace
}  // namespace stepcast::kernels
