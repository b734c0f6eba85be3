// Reading the text form. Each line is one item; a line that fails is reported and skipped, so that one reading finds
// many problems. What the text says is only stored: whether it makes a sound Program is program/check's.
#include <limits>

#include "program/text.h"
#include "program/text_tokens.h"

namespace stepcast::program {
namespace {

constexpr std::size_t kMostProblems = 20;

class Reader {
 public:
  // Reads one line into the Program.
  void line(TokenReader& t) {
    if (t.at_end()) return;
    const std::string item = t.word();
    if (!read_top_level(t, item) && !read_segment_item(t, item) && !read_rank_program_item(t, item)) {
      t.fail("unknown item " + quoted(item));
    }
    t.expect_end();
  }
  bool has_program_line() const { return has_program_line_; }
  Program take() { return std::move(program_); }

 private:
  enum class Inside : std::uint8_t { kNothing, kSegment, kRankProgram };

  bool read_top_level(TokenReader& t, const std::string& item) {
    if (item == "program") {
      read_program(t);
    } else if (item == "role") {
      program_.roles.push({t.string()});
    } else if (item == "symbol") {
      std::string name = t.string();
      t.expect("bound");
      program_.symbols.push({std::move(name), t.integer()});
    } else if (item == "parameter") {
      read_parameter(t);
    } else if (item == "segment") {
      Segment s;
      s.label = t.string();
      program_.segments.push(std::move(s));
      inside_ = Inside::kSegment;
      return true;
    } else if (item == "rank_program") {
      RankProgram r;
      r.name = t.string();
      program_.rank_programs.push(std::move(r));
      inside_ = Inside::kRankProgram;
      return true;
    } else if (item == "rank") {
      read_rank(t);
    } else if (item == "group") {
      read_group(t);
    } else {
      return false;
    }
    inside_ = Inside::kNothing;
    return true;
  }

  bool read_segment_item(TokenReader& t, const std::string& item) {
    if (item != "slot" && item != "temp" && item != "op") return false;
    if (inside_ != Inside::kSegment) t.fail(quoted(item) + " outside a segment");
    Segment& s = program_.segments[SegmentId(program_.segments.size() - 1)];
    if (item == "op") {
      s.ops.push_back(read_op(t));
      return true;
    }
    if ((item == "slot" ? s.slots.size() : s.temps.size()) > std::numeric_limits<std::uint16_t>::max()) {
      t.fail("more than 65536 of them in one segment");
    }
    std::string name = t.string();
    const TensorType type = read_type(t);
    if (item == "slot") {
      s.slots.push_back({std::move(name), type});
    } else {
      s.temps.push_back({std::move(name), type, t.one_of<MemoryClass>(kMemoryClassCount, "a memory class")});
    }
    return true;
  }

  bool read_rank_program_item(TokenReader& t, const std::string& item) {
    if (item != "buffer" && item != "view" && item != "call" && item != "graph" && item != "shard" && item != "loss") {
      return false;
    }
    if (inside_ != Inside::kRankProgram) t.fail(quoted(item) + " outside a rank_program");
    RankProgram& r = program_.rank_programs[RankProgramId(program_.rank_programs.size() - 1)];
    if (item == "buffer") r.buffers.push(read_buffer(t));
    if (item == "view") r.views.push(read_view(t));
    if (item == "call") r.calls.push_back(read_call(t));
    if (item == "graph") {
      const std::uint32_t begin = t.natural();
      r.graphs.push_back({begin, t.natural()});
    }
    if (item == "shard") r.shards.push_back(read_shard(t));
    if (item == "loss") {
      if (r.loss) t.fail("a second loss");
      r.loss = ViewId(t.number_after("v"));
    }
    return true;
  }

  void read_program(TokenReader& t) {
    if (has_program_line_) t.fail("a second program line");
    has_program_line_ = true;
    program_.name = t.string();
    t.expect("seed");
    program_.seed = t.long_natural();
  }

  void read_parameter(TokenReader& t) {
    Parameter p;
    p.name = t.string();
    t.expect("rows");
    p.rows = t.integer();
    t.expect("cols");
    p.cols = t.integer();
    p.init = t.one_of<Init>(kInitCount, "an initialisation");
    p.std = t.real();
    program_.parameters.push(std::move(p));
  }

  TensorType read_type(TokenReader& t) {
    TensorType type;
    type.dtype = t.one_of<DType>(kDTypeCount, "an element type");
    t.expect("[");
    while (!t.accept("]")) {
      if (type.shape.rank > 0) t.expect(",");
      if (type.shape.rank == type.shape.dims.size()) t.fail("more than 3 extents");
      Dim& dim = type.shape.dims[type.shape.rank++];
      if (t.peek().text.starts_with('y')) dim.symbol = SymbolId(t.number_after("y"));
      dim.bound = t.integer();
    }
    return type;
  }

  Op read_op(TokenReader& t) {
    Op op;
    op.name = t.string();
    op.kind = t.one_of<OpKind>(kOpKindCount, "an op kind");
    op.stream = t.one_of<Stream>(kStreamCount, "a stream");
    t.expect("(");
    while (!t.accept(")")) {
      if (!op.operands.empty()) t.expect(",");
      Operand o;
      o.temp = t.peek().text.starts_with('t');
      const std::uint32_t index = o.temp ? t.number_after("t") : t.natural();
      if (index > std::numeric_limits<std::uint16_t>::max()) t.fail("an operand index above 65535");
      o.index = static_cast<std::uint16_t>(index);
      o.access = t.one_of<Access>(3, "an access");
      if (t.accept("part")) {
        t.expect("(");
        o.before = t.small_natural();
        o.parts = t.small_natural();
        t.expect(")");
      }
      op.operands.push_back(o);
    }
    while (!t.at_end()) read_attribute(t, op);
    return op;
  }

  void read_attribute(TokenReader& t, Op& op) {
    const std::string key = t.word();
    if (key == "send" || key == "receive") {
      op.parts.push_back(read_part(t, key == "send"));
      return;
    }
    if (key == "timing_index") {
      op.timing_index = true;
      return;
    }
    t.expect("=");
    if (key == "group") {
      op.group = RoleId(t.number_after("r"));
    } else if (key == "channel") {
      op.channel = t.one_of<Channel>(kChannelCount, "a channel");
    } else if (key == "index") {
      op.index_role = RoleId(t.number_after("r"));
    } else if (key == "sample") {
      op.sample_role = RoleId(t.number_after("r"));
    } else if (key == "symbol") {
      op.symbol = SymbolId(t.number_after("y"));
    } else if (key == "counts") {
      t.expect("[");
      do op.member_counts.push_back(t.integer());
      while (t.accept(","));
      t.expect("]");
    } else if (!read_enum_attribute(t, key, op.attributes) && !read_integer_attribute(t, key, op.attributes) &&
               !read_real_attribute(t, key, op.attributes)) {
      t.fail("unknown attribute " + quoted(key));
    }
  }

  static bool read_enum_attribute(TokenReader& t, const std::string& key, Attributes& a) {
    if (key == "form") {
      a.form = t.one_of<MatmulForm>(3, "a matmul form");
    } else if (key == "reduce") {
      a.reduce = t.one_of<Reduce>(2, "a reduction");
    } else if (key == "join") {
      a.join_stream = t.one_of<Stream>(kStreamCount, "a stream");
    } else {
      return false;
    }
    return true;
  }

  static bool read_integer_attribute(TokenReader& t, const std::string& key, Attributes& a) {
    std::int32_t* const small = key == "heads"             ? &a.heads
                                : key == "kv_heads"        ? &a.kv_heads
                                : key == "head_dim"        ? &a.head_dim
                                : key == "multiprocessors" ? &a.multiprocessors
                                                           : nullptr;
    if (small != nullptr) {
      const std::int64_t value = t.integer();
      if (value != static_cast<std::int32_t>(value)) t.fail("expected a number of 32 bits");
      *small = static_cast<std::int32_t>(value);
    } else if (key == "batch") {
      a.batch = t.integer();
    } else if (key == "count") {
      a.count = t.integer();
    } else if (key == "microbatches") {
      a.microbatches = t.integer();
    } else if (key == "vocab") {
      a.vocab = t.integer();
    } else {
      return false;
    }
    return true;
  }

  static bool read_real_attribute(TokenReader& t, const std::string& key, Attributes& a) {
    double* const value = key == "value"           ? &a.value
                          : key == "learning_rate" ? &a.learning_rate
                          : key == "beta1"         ? &a.beta1
                          : key == "beta2"         ? &a.beta2
                          : key == "eps"           ? &a.eps
                                                   : nullptr;
    if (value == nullptr) return false;
    *value = t.real();
    return true;
  }

  static P2pPart read_part(TokenReader& t, bool send) {
    P2pPart part;
    part.send = send;
    t.expect("(");
    part.operand = t.small_natural();
    part.role = RoleId(t.number_after("r"));
    const std::int64_t offset = t.integer();
    if (offset != static_cast<std::int32_t>(offset)) t.fail("an offset of more than 32 bits");
    part.offset = static_cast<std::int32_t>(offset);
    part.channel = t.one_of<Channel>(kChannelCount, "a channel");
    t.expect(")");
    return part;
  }

  static Buffer read_buffer(TokenReader& t) {
    Buffer b;
    b.name = t.string();
    b.bytes = t.integer();
    b.space = t.one_of<Space>(2, "a space");
    b.memory_class = t.one_of<MemoryClass>(kMemoryClassCount, "a memory class");
    b.persistent = t.accept("persistent");
    return b;
  }

  View read_view(TokenReader& t) {
    View v;
    v.buffer = BufferId(t.number_after("b"));
    t.expect("at");
    v.byte_offset = t.integer();
    v.type = read_type(t);
    return v;
  }

  static Call read_call(TokenReader& t) {
    Call call;
    call.tag.pass = t.one_of<Pass>(kPassCount, "a pass");
    if (t.peek().text.starts_with('c')) {
      const std::uint32_t chunk = t.number_after("c");
      if (chunk > std::numeric_limits<std::uint16_t>::max()) t.fail("a chunk above 65535");
      call.tag.chunk = static_cast<std::uint16_t>(chunk);
    }
    if (t.peek().text.starts_with('m')) call.tag.microbatch = t.number_after("m");
    if (t.peek().text.starts_with('L')) call.tag.layer = t.number_after("L");
    call.segment = SegmentId(t.number_after("s"));
    t.expect("(");
    while (!t.accept(")")) {
      if (!call.args.empty()) t.expect(",");
      call.args.emplace_back(t.number_after("v"));
    }
    return call;
  }

  static AxisRule read_axis(TokenReader& t) {
    AxisRule a;
    t.expect("(");
    a.begin = t.integer();
    a.count = t.integer();
    if (t.accept("index")) a.role = RoleId(t.number_after("r"));
    if (t.accept("step")) a.step = t.integer();
    t.expect(")");
    return a;
  }

  static ParameterShard read_shard(TokenReader& t) {
    ParameterShard s;
    s.parameter = ParameterId(t.number_after("p"));
    s.kind = t.one_of<ShardKind>(kShardKindCount, "a shard kind");
    s.buffer = BufferId(t.number_after("b"));
    t.expect("at");
    s.byte_offset = t.integer();
    s.dtype = t.one_of<DType>(kDTypeCount, "an element type");
    while (t.accept("rows")) {
      ShardBlock block;
      block.rows = read_axis(t);
      t.expect("cols");
      block.cols = read_axis(t);
      s.blocks.push_back(block);
    }
    if (t.accept("slice")) {
      FlatSlice slice;
      t.expect("(");
      slice.role = RoleId(t.number_after("r"));
      slice.chunk = t.integer();
      slice.offset = t.integer();
      slice.uncut = t.accept("uncut");
      t.expect(")");
      s.slice = slice;
    }
    return s;
  }

  void read_rank(TokenReader& t) {
    Rank rank;
    rank.program = RankProgramId(t.number_after("k"));
    t.expect("device");
    const std::int64_t device = t.integer();
    if (device != static_cast<std::int32_t>(device)) t.fail("a device of more than 32 bits");
    rank.device = static_cast<std::int32_t>(device);
    t.expect("(");
    while (!t.accept(")")) {
      if (!rank.memberships.empty()) t.expect(",");
      if (t.accept("-")) {
        rank.memberships.push_back(std::nullopt);
        continue;
      }
      const GroupId group(t.number_after("g"));
      if (group.value == MaybeMembership::kNoGroup) t.fail("a group number out of range");
      rank.memberships.push_back(Membership{group, t.natural()});
    }
    program_.ranks.push(std::move(rank));
  }

  void read_group(TokenReader& t) {
    Group group;
    group.role = RoleId(t.number_after("r"));
    t.expect("(");
    while (!t.accept(")")) group.members.emplace_back(t.natural());
    program_.groups.push(std::move(group));
  }

  Program program_;
  Inside inside_ = Inside::kNothing;
  bool has_program_line_ = false;
};

void read_lines(std::string_view text, const std::string& file, Reader& reader, ProblemList& problems) {
  int number = 0;
  while (!text.empty() && problems.problems().size() < kMostProblems) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const Location where{file, ++number, ""};
    if (number == 1) {
      if (line == kTextHeader) continue;
      problems.add(ErrorKind::kInput, "expected the first line to be '" + std::string(kTextHeader) + "'", where);
      return;
    }
    try {
      TokenReader tokens(line, where);
      reader.line(tokens);
    } catch (const Error& error) {
      for (const Problem& problem : error.problems()) problems.add(problem);
    }
  }
}

}  // namespace

Program parse_text(std::string_view text, const std::string& file_name) {
  Reader reader;
  ProblemList problems;
  read_lines(text, file_name, reader, problems);
  if (problems.empty() && !reader.has_program_line()) {
    problems.add(ErrorKind::kInput, "expected a program line", Location{file_name, 1, ""});
  }
  problems.throw_if_any();
  return reader.take();
}

}  // namespace stepcast::program
