// FLOPs, bytes and message sizes against values worked out by hand.
#include <gtest/gtest.h>

#include "program/ops/rules.h"
#include "tests/program/sample_ops.h"

namespace stepcast::program {
namespace {

using testing::SampleOp;

Work work(OpKind kind) {
  for (const SampleOp& s : testing::all_samples()) {
    if (s.op.kind == kind) return work_of(s.op, s.types);
  }
  return {};
}

TEST(WorkOf, CountsAMatmul) {
  // a[4,6] b[8,6] -> c[4,8]: M 4, N 8, K 6: 2*4*8*6 = 384 FLOP. bf16: reads 2*(24+48) = 144 B, writes 2*32 = 64 B.
  const Work w = work(OpKind::kMatmul);
  EXPECT_EQ(w.flops.count, 384);
  EXPECT_EQ(w.m, 4);
  EXPECT_EQ(w.n, 8);
  EXPECT_EQ(w.k, 6);
  EXPECT_EQ(w.read.count, 144);
  EXPECT_EQ(w.written.count, 64);
  EXPECT_EQ(w.message.count, 0);
}

TEST(WorkOf, CountsTheWeightGradientsReductionOverTokens) {
  // TN: a[5,2] b[5,3] -> c[2,3] f32 accumulated: 2*2*3*5 = 60 FLOP; reads 2*(10+15) + 4*6 = 74 B, writes 24 B.
  SampleOp s = testing::sample(OpKind::kMatmul, {{Access::kRead, testing::bf16({5, 2})},
                                                 {Access::kRead, testing::bf16({5, 3})},
                                                 {Access::kAccumulate, testing::f32({2, 3})}});
  s.op.attributes.form = MatmulForm::kTN;
  const Work w = work_of(s.op, s.types);
  EXPECT_EQ(w.flops.count, 60);
  EXPECT_EQ(w.m, 2);
  EXPECT_EQ(w.n, 3);
  EXPECT_EQ(w.k, 5);
  EXPECT_EQ(w.read.count, 74);
  EXPECT_EQ(w.written.count, 24);
}

// [4, 6] bf16 is 48 B; 24 elements of 8 bits 24 B; an f32 4 B.
TEST(WorkOf, CountsQuantisation) {
  const Work quantise = work(OpKind::kQuantise);
  EXPECT_EQ(quantise.read.count, 48 + 4);
  EXPECT_EQ(quantise.written.count, 24 + 24);
  EXPECT_EQ(quantise.flops.count, 0);
  EXPECT_EQ(work(OpKind::kAbsMax).read.count, 48);
  EXPECT_EQ(work(OpKind::kTranspose).read.count, 24);
  EXPECT_EQ(work(OpKind::kTranspose).written.count, 24);
  EXPECT_EQ(work(OpKind::kUnscale).read.count, 48 + 4);
  EXPECT_EQ(work(OpKind::kUnscale).written.count, 96 + 4);
}

// Blocks of 128 elements with 4 bytes of scale, of 32 with one, of 16 half bytes with one; a begun block is whole.
TEST(TensorTypes, CountTheScalesOfBlocks) {
  const auto bytes = [](DType t, std::int64_t n) { return TensorType{t, {n}}.bytes(); };
  EXPECT_EQ(bytes(DType::kF8, 256), 256);
  EXPECT_EQ(bytes(DType::kF8Block, 256), 2 * 132);
  EXPECT_EQ(bytes(DType::kMxF8, 256), 8 * 33);
  EXPECT_EQ(bytes(DType::kNvF4, 256), 16 * 9);
  EXPECT_EQ(bytes(DType::kMxF8, 33), 2 * 33);
  EXPECT_EQ(bytes(DType::kF16, 3), 6);
}

TEST(WorkOf, CountsCausalAttention) {
  // T 4 in 2 sequences of s = 2; 2 heads of 2: forward 2*T*s*heads*head_dim = 2*4*2*4 = 64 FLOP, backward 160.
  EXPECT_EQ(work(OpKind::kAttentionForward).flops.count, 64);
  EXPECT_EQ(work(OpKind::kAttentionBackward).flops.count, 160);
  // Forward reads qkv 4*8*2 = 64 B and writes out 4*4*2 = 32 B and lse 4*2*4 = 32 B.
  EXPECT_EQ(work(OpKind::kAttentionForward).read.count, 64);
  EXPECT_EQ(work(OpKind::kAttentionForward).written.count, 64);
}

// T 4, 2 heads and 1 kv head of 2: q and k are 6 of the 8 columns of qkv, 4*6*2 = 48 B. Forward reads them and two
// weights of 4 B, and writes them, what they were (48 B) and 3 f32 statistics a token (48 B).
TEST(WorkOf, NormsOfQueriesAndKeysTouchTheirColumns) {
  EXPECT_EQ(work(OpKind::kQkNormForward).read.count, 56);
  EXPECT_EQ(work(OpKind::kQkNormForward).written.count, 144);
  EXPECT_EQ(work(OpKind::kQkNormBackwardInput).read.count, 48 + 48 + 8 + 48);
  EXPECT_EQ(work(OpKind::kQkNormBackwardInput).written.count, 48);
  EXPECT_EQ(work(OpKind::kQkNormBackwardWeight).read.count, 48 + 48 + 48 + 16);
  EXPECT_EQ(work(OpKind::kQkNormBackwardWeight).written.count, 16);
  EXPECT_EQ(work(OpKind::kQkNormForward).flops.count, 0);
}

// Nothing is halved where scores are materialised. T 4, s 2, 2 heads of 2, 1 kv head: 2*4*2*4 = 64 FLOP a matmul, two
// of them backward. Scores are [4,2,2] bf16, 32 B; of qkv [4,8] they touch 6 columns, 48 B, and the context 2, 16 B.
TEST(WorkOf, CountsAttentionOnMaterialisedScores) {
  const Work scores = work(OpKind::kAttentionScoresForward);
  EXPECT_EQ(scores.flops.count, 64);
  EXPECT_EQ(scores.k, 2);
  EXPECT_EQ(scores.read.count, 48);
  EXPECT_EQ(scores.written.count, 32);
  const Work scores_backward = work(OpKind::kAttentionScoresBackward);
  EXPECT_EQ(scores_backward.flops.count, 128);
  EXPECT_EQ(scores_backward.k, 2);  // the harmonic mean of 2 channels and 2 keys
  EXPECT_EQ(scores_backward.read.count, 32 + 48);
  EXPECT_EQ(scores_backward.written.count, 48);  // filled, not added to
  const Work context = work(OpKind::kAttentionContextForward);
  EXPECT_EQ(context.flops.count, 64);
  EXPECT_EQ(context.read.count, 32 + 16);
  EXPECT_EQ(context.written.count, 32);
  const Work context_backward = work(OpKind::kAttentionContextBackward);
  EXPECT_EQ(context_backward.flops.count, 128);
  EXPECT_EQ(context_backward.read.count, 32 + 32 + 16);
  EXPECT_EQ(context_backward.written.count, 32 + 16);
  // The softmax's gradient is made in place: probabilities and gradient read, gradient written.
  EXPECT_EQ(work(OpKind::kSoftmaxBackward).read.count, 64);
  EXPECT_EQ(work(OpKind::kSoftmaxBackward).written.count, 32);
}

// x is [4,6] bf16, 48 B; a bias 12 B; a mask one byte an element, 24 B. Two sequences of 2 touch 2 of 10 positions, 24
// B.
TEST(WorkOf, CountsWhatFusedGptKernelsMove) {
  EXPECT_EQ(work(OpKind::kBiasDropoutAdd).read.count, 48 + 12 + 48);
  EXPECT_EQ(work(OpKind::kBiasDropoutAdd).written.count, 48 + 24);
  EXPECT_EQ(work(OpKind::kDropoutBackward).read.count, 48 + 24);
  EXPECT_EQ(work(OpKind::kGeluForward).read.count, 48 + 12);
  EXPECT_EQ(work(OpKind::kPositionForward).read.count, 24 + 48);
  EXPECT_EQ(work(OpKind::kPositionForward).written.count, 48);
  EXPECT_EQ(work(OpKind::kPositionBackward).written.count, 48);  // 2 rows of 6 f32
}

TEST(WorkOf, CountsOnlyTheRowsAnEmbeddingTouches) {
  // 4 tokens of i32 and 4 rows of 6 bf16: 16 + 48 B read, 48 written, though the table has 10 rows.
  EXPECT_EQ(work(OpKind::kEmbeddingForward).read.count, 64);
  EXPECT_EQ(work(OpKind::kEmbeddingForward).written.count, 48);
  // Backward: tokens 16, dout 48 and 4 rows of 6 f32 = 96 read; 96 written.
  EXPECT_EQ(work(OpKind::kEmbeddingBackward).read.count, 160);
  EXPECT_EQ(work(OpKind::kEmbeddingBackward).written.count, 96);
}

TEST(WorkOf, CountsAdam) {
  // 24 elements: reads grad, m, v, master of 96 B and a factor of 4 B; writes m, v, master of 96 B and 48 B of bf16.
  EXPECT_EQ(work(OpKind::kAdam).read.count, 388);
  EXPECT_EQ(work(OpKind::kAdam).written.count, 336);
}

TEST(WorkOf, TakesMessagesAsNcclTestsDoes) {
  // The buffer is 4*6 bf16 = 48 B; a gather or scatter over 2 members counts the whole.
  EXPECT_EQ(work(OpKind::kAllReduce).message.count, 48);
  EXPECT_EQ(work(OpKind::kBroadcast).message.count, 48);
  EXPECT_EQ(work(OpKind::kAllGather).message.count, 48);
  EXPECT_EQ(work(OpKind::kReduceScatter).message.count, 48);
  EXPECT_EQ(work(OpKind::kAllToAll).message.count, 48);  // the whole send buffer, the own part included
  EXPECT_EQ(work(OpKind::kSend).message.count, 48);
  EXPECT_EQ(work(OpKind::kReceive).message.count, 48);
  EXPECT_EQ(work(OpKind::kExchange).message.count, 48);  // sends 48 and receives 48: the sent part counts
  EXPECT_EQ(work(OpKind::kAdd).message.count, 0);
}

TEST(WorkOf, CountsElementwiseTraffic) {
  EXPECT_EQ(work(OpKind::kAdd).read.count, 96);          // two of 48 B
  EXPECT_EQ(work(OpKind::kAccumulate).read.count, 144);  // 48 of bf16 and 96 of f32
  EXPECT_EQ(work(OpKind::kAccumulate).written.count, 96);
  EXPECT_EQ(work(OpKind::kZeroFill).read.count, 0);
  EXPECT_EQ(work(OpKind::kZeroFill).written.count, 48);
  EXPECT_EQ(work(OpKind::kJoin).read.count, 0);
}

}  // namespace
}  // namespace stepcast::program
