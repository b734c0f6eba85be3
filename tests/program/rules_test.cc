// Shape rules: a well-formed op of every kind passes; every wrong access, type, shape and count is refused.
#include <gtest/gtest.h>

#include <set>

#include "program/ops/rules.h"
#include "tests/program/sample_ops.h"

namespace stepcast::program {
namespace {

using testing::all_samples;
using testing::SampleOp;
using Place = std::pair<OpKind, std::size_t>;  // operand of a kind

TEST(CheckOperands, AcceptsAWellFormedOpOfEveryKind) {
  std::set<OpKind> kinds;
  for (const SampleOp& s : all_samples()) {
    EXPECT_EQ(check_operands(s.op, s.types), "") << s.op.name;
    kinds.insert(s.op.kind);
  }
  EXPECT_EQ(kinds.size(), static_cast<std::size_t>(kOpKindCount));
}

TEST(CheckOperands, RefusesEveryOtherAccess) {
  for (const SampleOp& s : all_samples()) {
    for (std::size_t i = 0; i < s.types.size(); ++i) {
      for (const Access access : {Access::kRead, Access::kWrite, Access::kAccumulate}) {
        SampleOp changed = s;
        changed.op.operands[i].access = access;
        // A matmul may write or accumulate its result, adam its weight, attention to a share the queries' gradient; its
        // output and log-sum-exp go together.
        const bool either = accumulable_operand(s.op.kind) == i && s.op.kind != OpKind::kShareAttentionForward;
        const bool fits = access == s.op.operands[i].access || (either && access != Access::kRead);
        EXPECT_EQ(check_operands(changed.op, changed.types).empty(), fits) << s.op.name << " operand " << i;
      }
    }
  }
}

TEST(CheckOperands, RefusesAnotherNumberOfOperands) {
  for (const SampleOp& s : all_samples()) {
    SampleOp more = s;
    more.op.operands.push_back({false, 0, Access::kRead});
    more.types.push_back(testing::f32({1}));
    EXPECT_NE(check_operands(more.op, more.types), "") << s.op.name;
    // Optional last operands: the residual of a norm's backward, the weight of adam, the bias before an activation, the
    // largest magnitude of what is quantised.
    const std::set<OpKind> optional = {OpKind::kRmsNormBackwardInput,
                                       OpKind::kLayerNormBackwardInput,
                                       OpKind::kAdam,
                                       OpKind::kGeluForward,
                                       OpKind::kGeluBackward,
                                       OpKind::kSquaredReluForward,
                                       OpKind::kSquaredReluBackward,
                                       OpKind::kQuantise};
    const bool last_is_optional = optional.contains(s.op.kind);
    if (s.types.empty()) continue;
    SampleOp fewer = s;
    fewer.op.operands.pop_back();
    fewer.types.pop_back();
    // A gather or scatter of one operand is in place and accumulates: reading alone does not fit it.
    EXPECT_EQ(check_operands(fewer.op, fewer.types).empty(), last_is_optional) << s.op.name;
  }
}

TEST(CheckOperands, RefusesIntegersForFloatsAndFloatsForIntegers) {
  // Kinds that move bytes take any type, alone or as long as both operands agree.
  const std::set<OpKind> any = {OpKind::kZeroFill, OpKind::kBroadcast, OpKind::kSend,
                                OpKind::kReceive,  OpKind::kExchange,  OpKind::kHostRead};
  for (const SampleOp& s : all_samples()) {
    for (std::size_t i = 0; i < s.types.size(); ++i) {
      SampleOp changed = s;
      changed.types[i].dtype = s.types[i].dtype == DType::kI32 ? DType::kF32 : DType::kI32;
      EXPECT_EQ(check_operands(changed.op, changed.types).empty(), any.contains(s.op.kind)) << s.op.name << " " << i;
    }
  }
}

TEST(CheckOperands, RefusesAnotherShapeOfAnyOperand) {
  const std::set<OpKind> any = {OpKind::kZeroFill, OpKind::kAllReduce, OpKind::kBroadcast, OpKind::kSend,
                                OpKind::kReceive,  OpKind::kExchange,  OpKind::kHostRead};
  // Sums of squares and embedding tables: one operand's size is free.
  const std::set<Place> free = {{OpKind::kSumSquares, 0},
                                {OpKind::kAbsMax, 0},
                                {OpKind::kCrossEntropyMax, 0},
                                {OpKind::kCrossEntropySum, 0},
                                {OpKind::kCrossEntropyBackward, 3}};
  for (const SampleOp& s : all_samples()) {
    for (std::size_t i = 0; i < s.types.size(); ++i) {
      SampleOp changed = s;
      changed.types[i].shape.dims[changed.types[i].shape.rank - 1U].bound += 1;
      const bool fits = any.contains(s.op.kind) || free.contains({s.op.kind, i});
      EXPECT_EQ(check_operands(changed.op, changed.types).empty(), fits) << s.op.name << " operand " << i;
    }
  }
}

TEST(CheckOperands, RefusesSizesThatOverflowAndEmptyExtents) {
  SampleOp fill = testing::sample(OpKind::kZeroFill, {{Access::kWrite, testing::f32({1LL << 31, 1LL << 31})}});
  EXPECT_NE(check_operands(fill.op, fill.types), "");  // 2^62 elements of 4 bytes
  fill.types[0] = testing::f32({0});
  EXPECT_NE(check_operands(fill.op, fill.types), "");
}

TEST(CheckOperands, ChecksAllMatmulForms) {
  using testing::bf16;
  // M 2, N 3, K 5. NT: a[2,5] b[3,5]; NN: a[2,5] b[5,3]; TN: a[5,2] b[5,3]; c is always [2,3].
  const std::vector<std::tuple<MatmulForm, Shape, Shape>> forms = {
      {MatmulForm::kNT, {2, 5}, {3, 5}}, {MatmulForm::kNN, {2, 5}, {5, 3}}, {MatmulForm::kTN, {5, 2}, {5, 3}}};
  for (const auto& [form, a, b] : forms) {
    for (const auto& [other, unused_a, unused_b] : forms) {
      SampleOp s = testing::sample(
          OpKind::kMatmul, {{Access::kRead, bf16(a)}, {Access::kRead, bf16(b)}, {Access::kWrite, bf16({2, 3})}});
      s.op.attributes.form = other;
      EXPECT_EQ(check_operands(s.op, s.types).empty(), form == other);
      EXPECT_EQ(unused_a.rank, unused_b.rank);
    }
  }
}

// Applies `change` to the sample of a kind and says whether it still passes.
template <class Change>
bool passes(OpKind kind, Change change) {
  for (SampleOp& s : all_samples()) {
    if (s.op.kind != kind) continue;
    change(s);
    return check_operands(s.op, s.types).empty();
  }
  return false;
}

TEST(CheckOperands, RefusesAttributesThatDoNotFit) {
  EXPECT_FALSE(passes(OpKind::kRmsNormForward, [](SampleOp& s) { s.op.attributes.value = 0; }));
  EXPECT_FALSE(passes(OpKind::kRotaryForward, [](SampleOp& s) { s.op.attributes.value = 0; }));
  EXPECT_FALSE(passes(OpKind::kAttentionForward, [](SampleOp& s) { s.op.attributes.batch = 3; }));
  EXPECT_FALSE(passes(OpKind::kAttentionForward, [](SampleOp& s) { s.op.attributes.kv_heads = 0; }));
  EXPECT_FALSE(passes(OpKind::kAttentionForward, [](SampleOp& s) { s.op.attributes.value = 1; }));
  EXPECT_FALSE(passes(OpKind::kAttentionForward, [](SampleOp& s) { s.op.attributes.value = 0.1; }));  // no microbatches
  EXPECT_FALSE(passes(OpKind::kAttentionForward, [](SampleOp& s) { s.op.attributes.count = -1; }));
  EXPECT_FALSE(passes(OpKind::kLayerNormForward, [](SampleOp& s) { s.op.attributes.value = 0; }));
  EXPECT_FALSE(passes(OpKind::kBiasDropoutAdd, [](SampleOp& s) { s.op.attributes.value = 0; }));  // with a mask
  EXPECT_FALSE(passes(OpKind::kDropoutBackward, [](SampleOp& s) { s.op.attributes.value = 0; }));
  EXPECT_FALSE(passes(OpKind::kSoftmaxForward, [](SampleOp& s) { s.op.attributes = {.count = 8}; }));
  EXPECT_FALSE(passes(OpKind::kAdd, [](SampleOp& s) { s.op.sample_role = RoleId(0); }));
  EXPECT_FALSE(passes(OpKind::kAdd, [](SampleOp& s) { s.op.attributes.multiprocessors = 4; }));
  EXPECT_TRUE(passes(OpKind::kMatmul, [](SampleOp& s) { s.op.attributes.multiprocessors = 4; }));
  EXPECT_TRUE(passes(OpKind::kExchange, [](SampleOp& s) { s.op.attributes.multiprocessors = 0; }));
  EXPECT_TRUE(passes(OpKind::kAllGather, [](SampleOp& s) { s.op.attributes.multiprocessors = 1; }));
  EXPECT_FALSE(passes(OpKind::kAllGather, [](SampleOp& s) { s.op.attributes.multiprocessors = 0; }));
  EXPECT_TRUE(passes(OpKind::kAllGather, [](SampleOp& s) { s.op.attributes.multiprocessors = -1; }));
  EXPECT_FALSE(passes(OpKind::kMatmul, [](SampleOp& s) { s.op.attributes.multiprocessors = -2; }));
  EXPECT_FALSE(passes(OpKind::kTokenLoad, [](SampleOp& s) { s.op.attributes.count = 1; }));
  EXPECT_FALSE(passes(OpKind::kTokenLoad, [](SampleOp& s) { s.op.attributes.vocab = 0; }));
  EXPECT_FALSE(passes(OpKind::kAllReduce, [](SampleOp& s) { s.op.group.reset(); }));
  EXPECT_FALSE(passes(OpKind::kAdd, [](SampleOp& s) { s.op.group = RoleId(0); }));
  EXPECT_FALSE(passes(OpKind::kSend, [](SampleOp& s) { s.op.parts[0].send = false; }));
  EXPECT_FALSE(passes(OpKind::kSend, [](SampleOp& s) { s.op.parts[0].operand = 1; }));
  EXPECT_FALSE(passes(OpKind::kExchange, [](SampleOp& s) { s.op.parts.pop_back(); }));
  EXPECT_FALSE(passes(OpKind::kJoin, [](SampleOp& s) { s.op.attributes.join_stream = s.op.stream; }));
  EXPECT_FALSE(passes(OpKind::kAdd, [](SampleOp& s) { s.op.symbol = SymbolId(0); }));
  EXPECT_FALSE(passes(OpKind::kAdd, [](SampleOp& s) { s.op.timing_index = true; }));
  EXPECT_FALSE(passes(OpKind::kAllGather, [](SampleOp& s) { s.op.member_counts = {12, 11}; }));  // of 24
  EXPECT_TRUE(passes(OpKind::kAllGather, [](SampleOp& s) { s.op.member_counts = {12, 12}; }));
}

// A bias of a matmul belongs to a result that is written, has as many elements as it has columns, and is read.
TEST(CheckOperands, LetsAMatmulAddABias) {
  using testing::bf16;
  SampleOp s = testing::sample(OpKind::kMatmul, {{Access::kRead, bf16({2, 5})},
                                                 {Access::kRead, bf16({3, 5})},
                                                 {Access::kWrite, bf16({2, 3})},
                                                 {Access::kRead, bf16({3})}});
  EXPECT_EQ(check_operands(s.op, s.types), "");
  s.types[3] = bf16({2});
  EXPECT_NE(check_operands(s.op, s.types), "");
  s.types[3] = bf16({3});
  s.op.operands[2].access = Access::kAccumulate;
  EXPECT_NE(check_operands(s.op, s.types), "");
}

// Operands of 8 or 4 bits agree, and give bf16 or f32; other ops do not take them.
TEST(CheckOperands, LetsAMatmulReadQuantisedOperands) {
  for (const DType narrow : {DType::kF8, DType::kF8Block, DType::kMxF8, DType::kNvF4}) {
    SampleOp s = testing::sample(OpKind::kMatmul, {{Access::kRead, {narrow, {2, 5}}},
                                                   {Access::kRead, {narrow, {3, 5}}},
                                                   {Access::kWrite, testing::bf16({2, 3})}});
    EXPECT_EQ(check_operands(s.op, s.types), "");
    s.types[2].dtype = DType::kF32;
    EXPECT_EQ(check_operands(s.op, s.types), "");
    s.types[2].dtype = narrow;
    EXPECT_NE(check_operands(s.op, s.types), "");
    s.types = {testing::bf16({2, 5}), {narrow, {3, 5}}, testing::bf16({2, 3})};
    EXPECT_NE(check_operands(s.op, s.types), "");
    EXPECT_FALSE(passes(OpKind::kAdd, [&](SampleOp& add) {
      for (TensorType& t : add.types) t.dtype = narrow;
    }));
  }
}

// A norm may write 8 bits with one scale, no others.
TEST(CheckOperands, LetsANormQuantise) {
  for (const OpKind kind : {OpKind::kRmsNormForward, OpKind::kLayerNormForward}) {
    const std::size_t y = kind == OpKind::kRmsNormForward ? 2 : 3;
    EXPECT_TRUE(passes(kind, [&](SampleOp& s) { s.types[y].dtype = DType::kF8; }));
    EXPECT_FALSE(passes(kind, [&](SampleOp& s) { s.types[y].dtype = DType::kMxF8; }));
  }
}

TEST(CheckOperands, UnscalesInPlaceOrIntoACopyOfOnePart) {
  SampleOp s = testing::sample(OpKind::kUnscale,
                               {{Access::kAccumulate, testing::f32({24})}, {Access::kAccumulate, testing::f32({1})}});
  EXPECT_NE(check_operands(s.op, s.types), "");  // no factor
  s.op.attributes.value = 1;
  EXPECT_EQ(check_operands(s.op, s.types), "");
  s.op.attributes.count = 4;
  EXPECT_NE(check_operands(s.op, s.types), "");  // whose part
  s.op.index_role = RoleId(0);
  EXPECT_EQ(check_operands(s.op, s.types), "");
  s = testing::sample(OpKind::kUnscale, {{Access::kRead, testing::bf16({24})},
                                         {Access::kWrite, testing::f32({6})},
                                         {Access::kAccumulate, testing::f32({1})}});
  s.op.attributes = {.count = 4, .value = 1};
  s.op.index_role = RoleId(0);
  EXPECT_EQ(check_operands(s.op, s.types), "");
  s.types[1] = testing::f32({8});
  EXPECT_NE(check_operands(s.op, s.types), "");
}

TEST(CheckOperands, AcceptsGatherAndScatterInPlace) {
  for (const OpKind kind : {OpKind::kAllGather, OpKind::kReduceScatter}) {
    SampleOp s = testing::sample(kind, {{Access::kAccumulate, testing::bf16({4, 6})}});
    s.op.group = RoleId(0);
    EXPECT_EQ(check_operands(s.op, s.types), "");
    s.op.operands[0].access = Access::kRead;
    EXPECT_NE(check_operands(s.op, s.types), "");
  }
}

// A reduce-scatter of [4,2] on two ranks fills the block `count` of an out with three times the columns: the first
// writes it, later ones leave the others as they are.
TEST(CheckOperands, LetsAReduceScatterFillABlockOfColumns) {
  using testing::bf16;
  SampleOp s = testing::sample(OpKind::kReduceScatter, {{Access::kRead, bf16({4, 2})}, {Access::kWrite, bf16({2, 6})}});
  s.op.group = RoleId(0);
  EXPECT_EQ(check_operands(s.op, s.types), "");
  s.op.attributes.count = 2;
  EXPECT_NE(check_operands(s.op, s.types), "");
  s.op.operands[1].access = Access::kAccumulate;
  EXPECT_EQ(check_operands(s.op, s.types), "");
  s.op.attributes.count = 3;
  EXPECT_NE(check_operands(s.op, s.types).find("out of range"), std::string::npos);
}

// Parts and the whole they make: every extent counts, and heads may be one tensor's or those of q, k and v.
TEST(CheckOperands, FitsPartsOfHeadsAndSharesToTheirWhole) {
  using testing::bf16;
  EXPECT_FALSE(passes(OpKind::kHeadsSplit, [](SampleOp& s) { s.types[0] = bf16({4, 12}); }));    // of 2 * (4 + 2 + 2)
  EXPECT_FALSE(passes(OpKind::kHeadsSplit, [](SampleOp& s) { s.types[2] = bf16({4, 4, 1}); }));  // 4 members, not 2
  EXPECT_FALSE(passes(OpKind::kHeadsSplit, [](SampleOp& s) {                                     // k without v
    s.op.operands.pop_back();
    s.types.pop_back();
  }));
  EXPECT_FALSE(passes(OpKind::kHeadsJoin, [](SampleOp& s) { s.types[1] = bf16({8, 4}); }));  // the shares' whole
  EXPECT_FALSE(passes(OpKind::kSharesSplit, [](SampleOp& s) { s.op.attributes.batch = 3; }));
  EXPECT_FALSE(passes(OpKind::kSharesJoin, [](SampleOp& s) { s.op.operands[3].access = Access::kRead; }));
  EXPECT_FALSE(passes(OpKind::kAllToAll, [](SampleOp& s) { s.types[1] = bf16({2, 6}); }));
  EXPECT_FALSE(passes(OpKind::kAllToAll, [](SampleOp& s) { s.op.member_counts = {12, 12}; }));
}

TEST(CheckOperands, PutsASharedHeadTogetherFromEqualParts) {
  EXPECT_FALSE(passes(OpKind::kOwnGroup, [](SampleOp& s) { s.op.attributes.count = 3; }));
  EXPECT_FALSE(passes(OpKind::kOwnGroup, [](SampleOp& s) { s.op.attributes.count = 1; }));  // parts of a whole head
  EXPECT_FALSE(passes(OpKind::kOwnGroup, [](SampleOp& s) { s.op.index_role.reset(); }));
  EXPECT_FALSE(passes(OpKind::kOwnGroupBackward, [](SampleOp& s) { s.types[1] = testing::bf16({2, 4, 5}); }));
}

TEST(CheckOperands, LetsAdamUseOnePartOfWholeTensors) {
  using testing::f32;
  // Moments of 6 elements; gradient and master hold 4 such parts. Without an index role that is an error.
  SampleOp s = testing::sample(OpKind::kAdam, {{Access::kRead, f32({24})},
                                               {Access::kRead, f32({1})},
                                               {Access::kAccumulate, f32({6})},
                                               {Access::kAccumulate, f32({6})},
                                               {Access::kAccumulate, f32({24})}});
  EXPECT_NE(check_operands(s.op, s.types), "");
  s.op.index_role = RoleId(0);
  EXPECT_EQ(check_operands(s.op, s.types), "");
  s.types[4] = f32({18});
  EXPECT_NE(check_operands(s.op, s.types), "");  // 4 parts against 3
}

TEST(CheckOperands, SumsNoIntegersOverAGroup) {
  const auto integers = [](SampleOp& s, Reduce reduce) {
    for (TensorType& t : s.types) t.dtype = DType::kI32;
    s.op.attributes.reduce = reduce;
  };
  for (const OpKind kind : {OpKind::kAllReduce, OpKind::kReduceScatter}) {
    EXPECT_FALSE(passes(kind, [&](SampleOp& s) { integers(s, Reduce::kSum); }));
    EXPECT_TRUE(passes(kind, [&](SampleOp& s) { integers(s, Reduce::kMax); }));
  }
  SampleOp in_place = testing::sample(OpKind::kReduceScatter, {{Access::kAccumulate, testing::i32({4})}});
  in_place.op.group = RoleId(0);
  EXPECT_NE(check_operands(in_place.op, in_place.types), "");
}

TEST(CheckOperands, KeepsSequencesBelow2To20Tokens) {
  // 2 sequences; samples are 2^20 positions apart.
  const auto load = [](std::int64_t sequence) {
    return passes(OpKind::kTokenLoad, [&](SampleOp& s) {
      for (TensorType& t : s.types) t.shape = {2 * sequence};
    });
  };
  EXPECT_TRUE(load((1 << 20) - 1));
  EXPECT_FALSE(load(1 << 20));
}

TEST(CheckOperands, SumsSquaresOfDoublesInDouble) {
  const TensorType doubles{DType::kF64, {4}};
  SampleOp s =
      testing::sample(OpKind::kSumSquares, {{Access::kRead, doubles}, {Access::kAccumulate, {DType::kF64, {1}}}});
  EXPECT_EQ(check_operands(s.op, s.types), "");
  s.types[1].dtype = DType::kF32;
  EXPECT_NE(check_operands(s.op, s.types), "");
}

TEST(Channels, HaveNames) {
  std::set<std::string_view> names;
  for (int i = 0; i < kChannelCount; ++i) names.insert(to_string(static_cast<Channel>(i)));
  EXPECT_EQ(names, (std::set<std::string_view>{"main", "activation", "gradient", "weights"}));
}

TEST(OpKinds, NamesReadBack) {
  for (int i = 0; i < kOpKindCount; ++i) {
    const auto kind = static_cast<OpKind>(i);
    EXPECT_EQ(op_kind_from(to_string(kind)), kind);
  }
  EXPECT_EQ(op_kind_from("convolution"), std::nullopt);
}

}  // namespace
}  // namespace stepcast::program
