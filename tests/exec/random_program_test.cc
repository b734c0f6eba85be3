// Random programs of one or two ranks over many streams: results equal those of a plain interpreter that gives every
// block memory of its own and runs op by op, and peaks equal those of program/lifetimes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/random.h"
#include "program/lifetimes.h"
#include "tests/exec/tiny_program.h"
#include "tests/random_cases.h"

namespace stepcast::exec {
namespace {

using program::DType;
using program::OpKind;
using program::Stream;

constexpr std::int64_t kRowLength = 16;  // of a row; every buffer is a row, operands are rows or halves of rows
constexpr int kPersistent = 3;
constexpr int kBuffers = 9;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed, "random program") {}
  std::size_t below(std::size_t n) { return random_.integer_at(next_++, n); }

 private:
  RandomStream random_;
  std::uint64_t next_ = 0;
};

// Appends calls to a rank program: zero fills, copies and sums of rows, through a temp at times. Only written elements
// are read.
class Generator {
 public:
  Generator(program::ProgramBuilder& builder, std::uint64_t seed) : builder_(builder), draw_(seed), rank_("random") {
    for (int i = 0; i < kBuffers; ++i) add_buffer(i);
  }

  program::RankProgram generate(int calls, program::RoleId world) {
    for (int i = 0; i < calls; ++i) add_call(i, world);
    return rank_.take();
  }

 private:
  struct Half {
    int buffer = 0;
    int half = 0;
  };

  void add_buffer(int i) {
    const bool persistent = i < kPersistent;
    const auto memory_class = static_cast<program::MemoryClass>(draw_.below(5));
    const auto buffer = rank_.buffer("b", kRowLength * 4, memory_class, persistent);
    views_.push_back(rank_.view(buffer, 0, DType::kF32, {kRowLength / 2}));
    views_.push_back(rank_.view(buffer, kRowLength / 2 * 4, DType::kF32, {kRowLength / 2}));
    written_.insert(written_.end(), 2, persistent);
    if (!persistent) return;
    const auto parameter =
        builder_.parameter({.name = "p" + std::to_string(i), .rows = 1, .cols = kRowLength, .std = 1});
    rank_.add_shard({parameter,
                     program::ShardKind::kWeight,
                     buffer,
                     0,
                     DType::kF32,
                     {{{0, 1, {}, 0}, {0, kRowLength, {}, 0}}},
                     {}});
  }

  std::size_t written_view() {
    for (;;) {
      const std::size_t v = draw_.below(views_.size());
      if (written_[v]) return v;
    }
  }

  // in1 + in2 -> temp on one stream, temp -> out on another; or zero -> out; or all_reduce(out).
  void add_call(int index, program::RoleId world) {
    program::SegmentBuilder segment("r");
    const program::Shape shape{kRowLength / 2};
    const auto stream = [&] { return static_cast<Stream>(draw_.below(5)); };
    std::vector<program::ViewId> args;
    const auto slot = [&](std::size_t view) {
      args.push_back(views_[view]);
      return segment.slot("s", DType::kF32, shape);
    };
    const std::size_t what = draw_.below(8);
    if (what == 0) {
      const auto buffer = slot(written_view());
      segment.op(OpKind::kAllReduce, Stream::kGather, "reduce", {acc(buffer)}).group = world;
    } else if (what <= 2) {
      const std::size_t to = draw_.below(views_.size());
      segment.op(OpKind::kZeroFill, stream(), "zero", {out(slot(to))});
      written_[to] = true;
    } else {
      const auto a = slot(written_view());
      const auto b = slot(written_view());
      const std::size_t to = draw_.below(views_.size());
      const auto result = slot(to);
      const auto temp = segment.temp("t", DType::kF32, shape, static_cast<program::MemoryClass>(draw_.below(5)));
      segment.op(OpKind::kAdd, stream(), "add", {in(a), in(b), out(temp)});
      segment.op(OpKind::kCopy, stream(), "copy", {in(temp), out(result)});
      written_[to] = true;
    }
    program::Tag tag;
    tag.microbatch = static_cast<std::uint32_t>(index);
    rank_.call(builder_.segment(segment.take()), args, tag);
  }

  program::ProgramBuilder& builder_;
  Draw draw_;
  program::RankProgramBuilder rank_;
  std::vector<program::ViewId> views_;  // two halves per buffer
  std::vector<bool> written_;
};

program::Program random_program(std::uint64_t seed, int ranks) {
  program::ProgramBuilder builder("random " + std::to_string(seed));
  builder.set_seed(seed);
  const auto world = builder.role("world");
  const auto id = builder.rank_program(Generator(builder, seed).generate(60, world));
  std::vector<program::RankId> members;
  for (int i = 0; i < ranks; ++i) members.push_back(builder.rank(id, i));
  builder.group(world, members);
  return builder.take();
}

// Runs one step of the (only) rank program on `buffers`, in issue order. All ranks start equal and do the same, so an
// all-reduce multiplies by the number of ranks; the sums here are of small multiples and exact for two ranks.
void interpret(const program::Program& p, std::vector<std::vector<float>>& buffers) {
  const program::RankProgram& r = p.rank_programs[program::RankProgramId(0)];
  for (const program::Call& call : r.calls) {
    const program::Segment& segment = p.segments[call.segment];
    std::vector<float> temp(kRowLength / 2);
    const auto at = [&](const program::Op& op, std::size_t i) {
      if (op.operands[i].temp) return temp.data();
      const program::View& view = r.views[call.args[op.operands[i].index]];
      return buffers[view.buffer.value].data() + view.byte_offset / 4;
    };
    for (const program::Op& op : segment.ops) {
      for (std::int64_t i = 0; i < kRowLength / 2; ++i) {
        float* result = at(op, op.operands.size() - 1) + i;
        if (op.kind == OpKind::kZeroFill) *result = 0;
        if (op.kind == OpKind::kCopy) *result = at(op, 0)[i];
        if (op.kind == OpKind::kAdd) *result = at(op, 0)[i] + at(op, 1)[i];
        if (op.kind == OpKind::kAllReduce && p.ranks.size() == 2) *result += *result;
      }
    }
  }
}

// Bytes of every value, so that infinities and signed zeros compare too.
bool same_bytes(const std::vector<float>& a, const float* b) {
  return std::memcmp(a.data(), b, a.size() * sizeof(float)) == 0;
}

TEST(RandomProgram, ComputesWhatAPlainInterpreterComputes) {
  for (std::uint64_t seed = 0; seed < stepcast::testing::random_cases(60); ++seed) {
    const program::CheckedProgram checked(random_program(seed, seed % 2 == 0 ? 1 : 2));
    Executor executor(checked, {.poison = true});
    std::vector<std::vector<float>> buffers(kBuffers, std::vector<float>(kRowLength, 0.0F));
    for (int i = 0; i < kPersistent; ++i) {
      buffers[static_cast<std::size_t>(i)] =
          tiny::gathered(checked, executor, "p" + std::to_string(i), program::ShardKind::kWeight);
    }
    for (int step = 0; step < 3; ++step) {
      executor.run_step();
      interpret(checked.program(), buffers);
      for (int i = 0; i < kPersistent; ++i) {
        const auto got = tiny::gathered(checked, executor, "p" + std::to_string(i), program::ShardKind::kWeight);
        ASSERT_TRUE(same_bytes(got, buffers[static_cast<std::size_t>(i)].data())) << "seed " << seed << " p" << i;
      }
    }
  }
}

TEST(RandomProgram, PeaksEqualDerivedLifetimes) {
  for (std::uint64_t seed = 1000; seed < 1000 + stepcast::testing::random_cases(60); ++seed) {
    const program::CheckedProgram checked(random_program(seed, 1));
    const auto& r = checked.program().rank_programs[program::RankProgramId(0)];
    const auto& res = checked.resolution(program::RankProgramId(0));
    const program::Lifetimes lifetimes = program::derive_lifetimes(checked.program(), r, res);
    const auto over_time = program::allocated_over_time(lifetimes, res.op_count());
    Executor executor(checked, {});
    for (int step = 0; step < 2; ++step) {
      executor.run_step();
      const trace::Track& track = executor.last_trace().tracks[0];
      EXPECT_EQ(track.class_peak, lifetimes.class_peak) << "seed " << seed;
      EXPECT_EQ(track.peak, lifetimes.peak) << "seed " << seed;
      ASSERT_EQ(track.memory.size(), over_time.size());
      for (std::size_t i = 0; i < over_time.size(); ++i) {
        EXPECT_EQ(track.memory[i].class_bytes, over_time[i]) << "seed " << seed << " op " << i;
      }
    }
  }
}

}  // namespace
}  // namespace stepcast::exec
