// Deadlocks among a few ranks: those that can be written by hand beside their sound counterparts, and random programs
// against an oracle that plays them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.h"
#include "program/check_graph.h"
#include "program/check_match.h"
#include "tests/program/problems.h"
#include "tests/program/sketch.h"

namespace stepcast::program {
namespace {

using testing::joined;
using testing::only_problem_has;
using testing::problems_of;
using testing::Sketch;

// Two ranks reduce over two groups of both; rank 1 the other way round if `crossed`.
std::vector<std::string> two_reductions(bool crossed, Stream first, Stream second) {
  ProgramBuilder b("p");
  std::vector<RankId> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    Sketch s(b, "r" + std::to_string(rank));
    const bool swap = crossed && rank == 1;
    for (const bool tp : {!swap, swap}) {
      s.all_reduce(tp ? "tp" : "dp", tp ? first : second, s.tensor(tp ? "x" : "y"), tp ? "tp" : "dp");
    }
    ranks.push_back(s.add_rank());
  }
  b.group(b.role("tp"), ranks);
  b.group(b.role("dp"), ranks);
  return problems_of(b.take());
}

TEST(Deadlock, OfCrossedCollectivesOnOneStream) {
  EXPECT_EQ(joined(two_reductions(false, Stream::kTp, Stream::kTp)), "");
  const std::vector<std::string> found = two_reductions(true, Stream::kTp, Stream::kTp);
  EXPECT_TRUE(
      only_problem_has(found, {"deadlock: rank 0 F.tp.op -> rank 0 F.dp.op -> rank 1 F.dp.op -> rank 1 F.tp.op -> "
                               "rank 0 F.tp.op"}))
      << joined(found);
}

// The order in which communicators are entered matters even on streams of their own.
TEST(Deadlock, OfCrossedCollectivesOnTwoStreams) {
  EXPECT_EQ(joined(two_reductions(false, Stream::kTp, Stream::kDp)), "");
  EXPECT_TRUE(only_problem_has(two_reductions(true, Stream::kTp, Stream::kDp), {"deadlock", "rank 1 F.dp.op"}));
}

// Both ranks send to the other and receive; rank 1 receives first if `ordered`.
std::vector<std::string> two_way(bool ordered, Stream send, Stream receive) {
  ProgramBuilder b("p");
  std::vector<RankId> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    Sketch s(b, "r" + std::to_string(rank));
    const ViewId out = s.tensor("out");
    const ViewId in = s.tensor("in");
    const bool receive_first = ordered && rank == 1;
    if (receive_first) s.receive("receive", receive, in, 1, Channel::kActivation);
    s.send("send", send, out, 1, Channel::kActivation);
    if (!receive_first) s.receive("receive", receive, in, 1, Channel::kActivation);
    ranks.push_back(s.add_rank());
  }
  b.group(b.role("pp"), ranks);
  return problems_of(b.take());
}

TEST(Deadlock, OfTwoSendsThatMeet) {
  EXPECT_EQ(joined(two_way(true, Stream::kSendNext, Stream::kSendNext)), "");
  EXPECT_EQ(joined(two_way(false, Stream::kSendNext, Stream::kRecvPrev)), "");
  EXPECT_TRUE(only_problem_has(two_way(false, Stream::kSendNext, Stream::kSendNext), {"deadlock"}));
}

// Every rank runs one program: sends right, receives from the left.
Program ring(int ranks, bool grouped, bool one_stream) {
  ProgramBuilder b("ring");
  Sketch s(b, "r");
  const ViewId out = s.tensor("out");
  const ViewId in = s.tensor("in");
  if (grouped) {
    s.exchange("shift", Stream::kSendNext, out, s.to(1, Channel::kActivation), in, s.to(-1, Channel::kActivation));
  } else {
    s.send("send", Stream::kSendNext, out, 1, Channel::kActivation);
    s.receive("receive", one_stream ? Stream::kSendNext : Stream::kRecvPrev, in, -1, Channel::kActivation);
  }
  std::vector<RankId> members = {s.add_rank()};
  for (int i = 1; i < ranks; ++i) members.push_back(b.rank(RankProgramId(0), i));
  b.group(b.role("pp"), members);
  return b.take();
}

TEST(Deadlock, OfARingOfSends) {
  for (const int ranks : {2, 3, 8}) {
    EXPECT_EQ(joined(problems_of(ring(ranks, true, true))), "") << ranks;
    EXPECT_EQ(joined(problems_of(ring(ranks, false, false))), "") << ranks;
    EXPECT_TRUE(only_problem_has(problems_of(ring(ranks, false, true)), {"deadlock", "rank 1 F.receive.op"})) << ranks;
  }
}

// A chain whose middle ranks run one program receives, then sends: no cycle, though the shared program alone, all its
// ranks taken as one, waits for itself.
TEST(Deadlock, IsNotSeenWhereOnlyTheProgramRepeats) {
  ProgramBuilder b("chain");
  std::vector<RankId> members;
  for (int i = 0; i < 6; ++i) {
    Sketch s(b, i == 0 ? "first" : i == 5 ? "last" : "middle");
    const ViewId x = s.tensor("x");
    if (i > 0) s.receive("receive", Stream::kRecvPrev, x, -1, Channel::kActivation);
    if (i < 5) s.send("send", Stream::kSendNext, x, 1, Channel::kActivation);
    members.push_back(s.add_rank());
  }
  b.group(b.role("pp"), members);
  const Program p = b.take();
  EXPECT_EQ(p.rank_programs.size(), 3U);
  EXPECT_EQ(joined(problems_of(p)), "");
}

// Each rank hands the other a value that it computes from what it received, waiting for it on the host.
std::vector<std::string> host_reads(bool send_first_on_rank_0) {
  ProgramBuilder b("p");
  std::vector<RankId> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    Sketch s(b, "r" + std::to_string(rank));
    const ViewId in = s.tensor("in");
    const ViewId out = s.tensor("out");
    const bool send_first = rank == 0 && send_first_on_rank_0;
    if (send_first) s.send("send", Stream::kSendNext, out, 1, Channel::kActivation);
    s.receive("receive", Stream::kRecvPrev, in, 1, Channel::kActivation);
    s.host_read("read", in);
    if (!send_first) s.send("send", Stream::kSendNext, out, 1, Channel::kActivation);
    ranks.push_back(s.add_rank());
  }
  b.group(b.role("pp"), ranks);
  return problems_of(b.take());
}

TEST(Deadlock, OfHostReadsThatWaitForEachOther) {
  EXPECT_EQ(joined(host_reads(true)), "");
  const std::vector<std::string> found = host_reads(false);
  // Streams and data alone would let both sends go ahead; the hosts never issue them.
  EXPECT_TRUE(only_problem_has(found, {"deadlock", "rank 0 F.read.op -> rank 0 F.send.op", "rank 1 F.read.op"}))
      << joined(found);
}

TEST(Deadlock, ExplainsEachWait) {
  ProgramBuilder b("p");
  Sketch s(b, "r");
  const ViewId out = s.tensor("out");
  s.send("send", Stream::kSendNext, out, 0, Channel::kActivation);
  s.receive("receive", Stream::kSendNext, s.tensor("in"), 0, Channel::kActivation);
  b.group(b.role("pp"), {s.add_rank()});
  try {
    const CheckedProgram checked(b.take());
    FAIL() << "a send to itself on one stream";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("is matched with rank 0 F."), std::string::npos) << text;
    EXPECT_NE(text.find("the one before it on stream send_next"), std::string::npos) << text;
  }
}

// An exchange's parts are matched on their own: rank 0's send is over once the exchange has received it, though the
// exchange itself still waits for rank 2, which waits for rank 0.
TEST(Deadlock, IsNotSeenInAnExchangeWhosePartsEndApart) {
  ProgramBuilder b("p");
  Sketch zero(b, "zero");
  zero.send("to1", Stream::kSendNext, zero.tensor("x"), 1, Channel::kActivation);
  zero.send("to2", Stream::kSendNext, zero.tensor("y"), 2, Channel::kActivation);
  Sketch one(b, "one");
  one.exchange("both", Stream::kSendNext, one.tensor("out"), one.to(1, Channel::kActivation), one.tensor("in"),
               one.to(-1, Channel::kActivation));
  Sketch two(b, "two");
  two.receive("from0", Stream::kRecvPrev, two.tensor("x"), -2, Channel::kActivation);
  two.receive("from1", Stream::kRecvPrev, two.tensor("y"), -1, Channel::kActivation);
  const std::vector<RankId> ranks = {zero.add_rank(), one.add_rank(), two.add_rank()};
  b.group(b.role("pp"), ranks);
  EXPECT_EQ(joined(problems_of(b.take())), "");
}

// Plays a matched program: starts what may start, ends what may end, until nothing moves. True when all ops end.
class Player {
 public:
  Player(const Program& p, const std::vector<Resolution>& res, const Matching& m) : p_(p), res_(res) {
    for (std::size_t r = 0; r < p.ranks.size(); ++r) {
      started_.emplace_back(resolution(r).op_count(), false);
      ended_.emplace_back(resolution(r).op_count(), false);
    }
    for (std::size_t c = 0; c < m.classes.size(); ++c) add_partners(m, c);
  }
  bool runs_to_the_end() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < started_.size(); ++r) {
        for (std::uint32_t op = 0; op < started_[r].size(); ++op) moved = step(r, op) || moved;
      }
    }
    for (const std::vector<bool>& ended : ended_) {
      if (std::find(ended.begin(), ended.end(), false) != ended.end()) return false;
    }
    return true;
  }

 private:
  const Resolution& resolution(std::size_t rank) const { return res_[p_.ranks[RankId(rank)].program.value]; }
  const Op& op_of(std::size_t rank, std::uint32_t op) const {
    return op_at(p_, p_.rank_programs[p_.ranks[RankId(rank)].program], resolution(rank), op);
  }
  void add_partners(const Matching& m, std::size_t c) {
    for (const GroupId g : m.classes[c].groups) {
      const std::vector<RankId>& members = p_.groups[g].members;
      for (const MessageMatch& match : m.messages[c]) {
        for (const MessagePair& pair : match.pairs)
          add_messages(match.ops, members[pair.sender], members[pair.receiver]);
      }
      for (std::size_t key = 0; key < m.lists[0].collectives.size(); ++key) {
        if (key / 4 != m.classes[c].role.value) continue;
        for (std::size_t a = 0; a < members.size(); ++a) {
          for (std::size_t b = 0; b < members.size(); ++b) {
            const auto& own = m.lists[m.classes[c].members[a].value].collectives[key];
            const auto& other = m.lists[m.classes[c].members[b].value].collectives[key];
            for (std::size_t n = 0; n < own.size(); ++n)
              partners_[{members[a].value, own[n]}].emplace_back(members[b].value, other[n]);
          }
        }
      }
    }
  }
  void add_messages(const std::vector<MessageOps>& messages, RankId sender, RankId receiver) {
    for (const MessageOps& message : messages) {
      partners_[{sender.value, message.send}].emplace_back(receiver.value, message.receive);
      partners_[{receiver.value, message.receive}].emplace_back(sender.value, message.send);
    }
  }
  bool may_start(std::size_t rank, std::uint32_t op) const {
    const Op& own = op_of(rank, op);
    for (std::uint32_t before = 0; before < op; ++before) {
      const Op& other = op_of(rank, before);
      const bool waits = other.stream == own.stream || other.kind == OpKind::kHostRead ||
                         (is_collective(other.kind) && is_collective(own.kind));
      if (waits && !ended_[rank][before]) return false;
    }
    const auto edges = resolution(rank).predecessors(op);
    return std::all_of(edges.begin(), edges.end(), [&](std::uint32_t e) { return ended_[rank][e]; });
  }
  bool step(std::size_t rank, std::uint32_t op) {
    if (ended_[rank][op]) return false;
    bool moved = false;
    if (!started_[rank][op] && may_start(rank, op)) moved = started_[rank][op] = true;
    if (!started_[rank][op]) return moved;
    const auto it = partners_.find({rank, op});
    if (it != partners_.end()) {
      for (const auto& [other, other_op] : it->second) {
        if (!started_[other][other_op]) return moved;
      }
    }
    ended_[rank][op] = true;
    return true;
  }

  const Program& p_;
  const std::vector<Resolution>& res_;
  std::vector<std::vector<bool>> started_;
  std::vector<std::vector<bool>> ended_;
  std::map<std::pair<std::size_t, std::uint32_t>, std::vector<std::pair<std::size_t, std::uint32_t>>> partners_;
};

// Three ranks that talk in a common order, of which each then swaps a few neighbours.
Program random_talk(std::uint64_t round) {
  const RandomStream draw(3, "deadlock-test");
  std::uint64_t next = round * 1000;
  const auto below = [&](std::uint64_t bound) { return static_cast<std::size_t>(draw.integer_at(next++, bound)); };
  struct Act {
    std::size_t kind;  // 0 message, 1 collective, 2 shift of all ranks, 3 host read
    std::size_t from;
    std::size_t to;
  };
  std::vector<Act> acts(3 + below(6));
  for (Act& a : acts) {
    const std::size_t from = below(3);
    a = {below(4), from, (from + 1 + below(2)) % 3};
  }
  const std::size_t streams = 1 + below(4);  // few streams, more deadlocks
  ProgramBuilder b("p");
  std::vector<RankId> ranks;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    Sketch s(b, "r" + std::to_string(rank));
    std::vector<Act> own = acts;
    for (std::size_t swaps = below(3); swaps > 0; --swaps) {
      const std::size_t i = below(own.size() - 1);
      std::swap(own[i], own[i + 1]);
    }
    const auto stream = [&](std::size_t use) { return static_cast<Stream>(1 + use % streams); };
    const ViewId buffers[] = {s.tensor("x"), s.tensor("y"), s.tensor("z")};
    for (std::size_t i = 0; i < own.size(); ++i) {
      const Act& a = own[i];
      const std::string name = "op" + std::to_string(i);
      const auto offset = static_cast<std::int32_t>(a.to) - static_cast<std::int32_t>(a.from);
      const std::size_t forward = static_cast<std::size_t>(offset + 3) % 3;  // 1 or 2
      if (a.kind == 0 && a.from == rank)
        s.send(name, stream(forward), buffers[0], static_cast<std::int32_t>(forward), Channel::kActivation);
      if (a.kind == 0 && a.to == rank)
        s.receive(name, stream(2 + forward), buffers[1], -static_cast<std::int32_t>(forward), Channel::kActivation);
      if (a.kind == 1) s.all_reduce(name, stream(a.from % 2), buffers[2], a.from % 2 == 0 ? "even" : "odd");
      if (a.kind == 2) {
        s.exchange(name, stream(3), buffers[0], s.to(1, Channel::kGradient), buffers[1], s.to(-1, Channel::kGradient));
      }
      if (a.kind == 3 && a.from == rank) s.host_read(name, buffers[a.to % 2]);
    }
    ranks.push_back(s.add_rank());
  }
  for (const char* role : {"pp", "even", "odd"}) b.group(b.role(role), ranks);
  return b.take();
}

TEST(Deadlock, IsFoundExactlyWhereARandomProgramGetsStuck) {
  int stuck = 0;
  int sound = 0;
  for (std::uint64_t round = 0; round < 2000; ++round) {
    const Program p = random_talk(round);
    std::vector<Resolution> res;
    for (const RankProgram& r : p.rank_programs) res.push_back(resolve(p, r));
    ProblemList problems;
    const Matching m = match(p, res, classify_groups(p), problems);
    ASSERT_TRUE(problems.empty()) << "round " << round << ": " << to_text(problems.problems());
    const bool runs = Player(p, res, m).runs_to_the_end();
    ASSERT_EQ(find_deadlock(MatchedGraph::of_ranks(p, res, m)).empty(), runs) << "round " << round;
    ASSERT_EQ(problems_of(p).empty(), runs) << "round " << round << "\n" << joined(problems_of(p));
    ++(runs ? sound : stuck);
  }
  // Both outcomes are exercised.
  EXPECT_GT(stuck, 200);
  EXPECT_GT(sound, 200);
}

}  // namespace
}  // namespace stepcast::program
