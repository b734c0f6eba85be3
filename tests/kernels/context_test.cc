// Attention under context parallelism against attention to the whole sequence: each member's share of the queries, with
// the keys of all members block by block or gathered, gives the rows of the whole; so do the gradients, summed over the
// members. Attention to the whole sequence is checked by finite differences in gradient_test.cc.
//
// All in double. The ways differ in the order of sums of at most 32 terms of order 1: 1e-12 is some thousand roundings.
#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/tensors.h"

namespace stepcast::kernels {
namespace {

using Values = std::vector<double>;

constexpr DType kF64 = DType::kF64;
constexpr std::int32_t kHeads = 4;
constexpr std::int32_t kKvHeads = 2;
constexpr std::int32_t kDim = 4;
constexpr std::int64_t kBatch = 2;
constexpr std::int64_t kPositions = 16;
constexpr std::int64_t kRows = kBatch * kPositions;
constexpr std::int64_t kQkv = (kHeads + 2 * kKvHeads) * kDim;
constexpr std::int64_t kOut = kHeads * kDim;
constexpr std::int64_t kKv = 2 * kKvHeads * kDim;

Attributes attention(std::int64_t steps_back = 0) {
  Attributes a = heads_of(kHeads, kKvHeads, kDim, kBatch);
  a.count = steps_back;
  return a;
}

Buffer share_of(Buffer whole, std::int64_t width, std::int64_t member, std::int64_t members) {
  Buffer share(kF64, {kRows / members, width});
  run(OpKind::kOwnRows, attention(), {&whole, &share}, {.index = member, .index_count = members});
  return share;
}

void expect_equal(const Buffer& actual, const Buffer& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::int64_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual.at(i), expected.at(i), 1e-12) << what << " element " << i;
  }
}

// Of every member: what it holds of the whole sequence, and its keys and values.
struct Member {
  Buffer qkv, kv, dout, out, lse, dqkv;
};

struct Whole {
  Buffer qkv = random_buffer(kF64, {kRows, kQkv}, "qkv");
  Buffer dout = random_buffer(kF64, {kRows, kOut}, "dout");
  Buffer out{kF64, {kRows, kOut}};
  Buffer lse{kF64, {kRows, kHeads}};
  Buffer dqkv{kF64, {kRows, kQkv}};

  Whole() {
    run(OpKind::kAttentionForward, attention(), {&qkv, &out, &lse});
    run(OpKind::kAttentionBackward, attention(), {&dout, &qkv, &out, &lse, &dqkv});
  }

  std::vector<Member> split(std::int64_t members) const {
    std::vector<Member> result;
    const std::int64_t rows = kRows / members;
    for (std::int64_t m = 0; m < members; ++m) {
      result.push_back({share_of(qkv, kQkv, m, members), Buffer(kF64, {rows, kKv}), share_of(dout, kOut, m, members),
                        Buffer(kF64, {rows, kOut}), Buffer(kF64, {rows, kHeads}), Buffer(kF64, {rows, kQkv})});
      run(OpKind::kKvExtract, attention(), {&result.back().qkv, &result.back().kv});
    }
    return result;
  }

  void expect(const Member& member, std::int64_t m, std::int64_t members) const {
    expect_equal(member.out, share_of(out, kOut, m, members), "out");
    expect_equal(member.lse, share_of(lse, kHeads, m, members), "lse");
    expect_equal(member.dqkv, share_of(dqkv, kQkv, m, members), "dqkv");
  }
};

// Of 8 positions and two members the first holds parts 0 and 3, the second 1 and 2 (Megatron-Core,
// get_batch_on_this_cp_rank).
TEST(OwnRows, AreTheFirstAndTheLastPartStillFree) {
  Buffer whole(kF64, {8, 1}, {0, 1, 2, 3, 4, 5, 6, 7});
  Buffer share(kF64, {4, 1});
  Attributes one;
  run(OpKind::kOwnRows, one, {&whole, &share}, {.index = 0, .index_count = 2});
  EXPECT_EQ(share.values(), (Values{0, 1, 6, 7}));
  run(OpKind::kOwnRows, one, {&whole, &share}, {.index = 1, .index_count = 2});
  EXPECT_EQ(share.values(), (Values{2, 3, 4, 5}));
}

// A share is at its own positions: turned alone, its rows are those of the whole.
TEST(Rotary, TurnsAShareAtItsPositions) {
  const Whole whole;
  Attributes a = attention();
  a.value = 50;
  Buffer turned = whole.qkv;
  run(OpKind::kRotaryForward, a, {&turned});
  for (std::int64_t m = 0; m < 2; ++m) {
    Buffer share = share_of(whole.qkv, kQkv, m, 2);
    run(OpKind::kRotaryForward, a, {&share}, {.index = m, .index_count = 2});
    expect_equal(share, share_of(turned, kQkv, m, 2), "share");
  }
}

// Four members, two a key-value head of two columns: the last has the second column of k and of v of the second group.
TEST(OwnGroup, PutsAHeadTogetherFromTheMembersThatShareIt) {
  Attributes a = heads_of(1, 1, 2, 1);
  a.count = 2;
  Buffer parts(kF64, {4, 1, 4}, {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33});
  Buffer qkv(kF64, {1, 6});
  run(OpKind::kOwnGroup, a, {&parts, &qkv}, {.index = 3, .index_count = 4});
  EXPECT_EQ(qkv.values(), (Values{30, 31, 22, 32, 23, 33}));
  Buffer dqkv(kF64, {1, 6}, {1, 2, 3, 4, 5, 6});
  run(OpKind::kOwnGroupBackward, a, {&dqkv, &parts}, {.index = 3, .index_count = 4});
  EXPECT_EQ(parts.values(), (Values{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 5, 1, 2, 4, 6}));
}

TEST(ContextAttention, BlockByBlockIsAttentionToTheWhole) {
  const Whole whole;
  for (const std::int64_t members : {2, 4}) {
    std::vector<Member> all = whole.split(members);
    const auto source = [&](std::int64_t m, std::int64_t step) -> Member& {
      return all[static_cast<std::size_t>(program::member_position(m - step, members))];
    };
    for (std::int64_t m = 0; m < members; ++m) {
      Member& own = source(m, 0);
      run(OpKind::kAttentionForward, attention(), {&own.qkv, &own.out, &own.lse});
      for (std::int64_t step = 1; step < members; ++step) {
        run(OpKind::kShareAttentionForward, attention(step), {&own.qkv, &source(m, step).kv, &own.out, &own.lse},
            {.accumulate = true, .index = m, .index_count = members});
      }
      run(OpKind::kAttentionBackward, attention(), {&own.dout, &own.qkv, &own.out, &own.lse, &own.dqkv});
    }
    for (std::int64_t m = 0; m < members; ++m) {
      Member& own = source(m, 0);
      for (std::int64_t step = 1; step < members; ++step) {
        Buffer dkv(kF64, {kRows / members, kKv});
        run(OpKind::kShareAttentionBackward, attention(step),
            {&own.dout, &own.qkv, &source(m, step).kv, &own.out, &own.lse, &own.dqkv, &dkv},
            {.accumulate = true, .index = m, .index_count = members});
        run(OpKind::kKvAccumulate, attention(), {&dkv, &source(m, step).dqkv});
      }
    }
    for (std::int64_t m = 0; m < members; ++m) whole.expect(source(m, 0), m, members);
  }
}

// Parts of a member's heads for each member, and what each member then receives: part `to` of member `from` becomes
// part `from` of member `to`.
std::vector<Buffer> exchange(const std::vector<Buffer>& sent) {
  const auto members = static_cast<std::int64_t>(sent.size());
  std::vector<Buffer> received = sent;
  const std::int64_t part = sent.front().size() / members;
  for (std::int64_t from = 0; from < members; ++from) {
    for (std::int64_t to = 0; to < members; ++to) {
      for (std::int64_t i = 0; i < part; ++i) {
        received[static_cast<std::size_t>(to)].set(from * part + i,
                                                   sent[static_cast<std::size_t>(from)].at(to * part + i));
      }
    }
  }
  return received;
}

// With rows exchanged for heads, a member's attention is that of the whole sequences to its heads, and what comes back
// is its share of the rows. Member m of 2 has query heads 2m and 2m + 1 and key-value head m.
TEST(ContextAttention, OfExchangedHeadsIsAttentionToTheWhole) {
  constexpr std::int64_t kMembers = 2;
  constexpr std::int64_t kShare = kRows / kMembers;
  const Whole whole;
  const Attributes exchanged = heads_of(kHeads / kMembers, kKvHeads / kMembers, kDim, kBatch);
  std::vector<Buffer> q, k, v;
  for (Member& own : whole.split(kMembers)) {
    q.emplace_back(kF64, Shape{kMembers, kShare, kOut / kMembers});
    k.emplace_back(kF64, Shape{kMembers, kShare, kKv / 2 / kMembers});
    v.emplace_back(kF64, Shape{kMembers, kShare, kKv / 2 / kMembers});
    run(OpKind::kHeadsSplit, exchanged, {&own.qkv, &q.back(), &k.back(), &v.back()});
  }
  q = exchange(q), k = exchange(k), v = exchange(v);
  std::vector<Buffer> out;
  for (std::size_t m = 0; m < kMembers; ++m) {
    Buffer qkv(kF64, {kRows, kQkv / kMembers});
    Buffer mixed(kF64, {kRows, kOut / kMembers});
    Buffer lse(kF64, {kRows, kHeads / kMembers});
    run(OpKind::kSharesJoin, exchanged, {&q[m], &k[m], &v[m], &qkv});
    run(OpKind::kAttentionForward, exchanged, {&qkv, &mixed, &lse});
    out.emplace_back(kF64, Shape{kMembers, kShare, kOut / kMembers});
    run(OpKind::kSharesSplit, exchanged, {&mixed, &out.back()});
  }
  out = exchange(out);
  for (std::int64_t m = 0; m < kMembers; ++m) {
    Buffer joined(kF64, {kShare, kOut});
    run(OpKind::kHeadsJoin, exchanged, {&out[static_cast<std::size_t>(m)], &joined});
    expect_equal(joined, share_of(whole.out, kOut, m, kMembers), "out");
  }
}

// A join undoes a split of three parts, to the bit.
TEST(ContextParts, JoinWhatWasSplit) {
  const Attributes a = attention();
  Buffer q(kF64, {2, 8, kOut / 2}), k(kF64, {2, 8, kKv / 4}), v(kF64, {2, 8, kKv / 4});
  Buffer heads = random_buffer(kF64, {8, kQkv}, "heads");
  Buffer joined_heads(kF64, {8, kQkv});
  run(OpKind::kHeadsSplit, a, {&heads, &q, &k, &v});
  run(OpKind::kHeadsJoin, a, {&q, &k, &v, &joined_heads});
  EXPECT_EQ(joined_heads.values(), heads.values());
  Buffer shares = random_buffer(kF64, {16, kQkv / 2}, "shares");
  Buffer joined_shares(kF64, {16, kQkv / 2});
  run(OpKind::kSharesSplit, a, {&shares, &q, &k, &v});
  run(OpKind::kSharesJoin, a, {&q, &k, &v, &joined_shares});
  EXPECT_EQ(joined_shares.values(), shares.values());
}

TEST(ContextAttention, ToGatheredKeysIsAttentionToTheWhole) {
  const Whole whole;
  for (const std::int64_t members : {2, 4}) {
    std::vector<Member> all = whole.split(members);
    const std::int64_t share = kRows / members * kKv;
    Buffer gathered(kF64, {kRows, kKv});
    for (std::int64_t i = 0; i < gathered.size(); ++i) {
      gathered.set(i, all[static_cast<std::size_t>(i / share)].kv.at(i % share));
    }
    std::vector<Buffer> gradients;
    for (std::int64_t m = 0; m < members; ++m) {
      Member& own = all[static_cast<std::size_t>(m)];
      const RunOptions at{.index = m, .index_count = members};
      run(OpKind::kShareAttentionForward, attention(), {&own.qkv, &gathered, &own.out, &own.lse}, at);
      gradients.emplace_back(kF64, Shape{kRows, kKv});
      run(OpKind::kShareAttentionBackward, attention(),
          {&own.dout, &own.qkv, &gathered, &own.out, &own.lse, &own.dqkv, &gradients.back()}, at);
    }
    for (std::int64_t m = 0; m < members; ++m) {
      Member& own = all[static_cast<std::size_t>(m)];
      for (const Buffer& all_dkv : gradients) {
        Buffer dkv(kF64, {kRows / members, kKv});
        for (std::int64_t i = 0; i < share; ++i) dkv.set(i, all_dkv.at(m * share + i));
        run(OpKind::kKvAccumulate, attention(), {&dkv, &own.dqkv});
      }
      whole.expect(own, m, members);
    }
  }
}

}  // namespace
}  // namespace stepcast::kernels
