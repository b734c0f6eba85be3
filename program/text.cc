// Writing a Program as text. Tables are written in id order; ids appear as a letter and a number: r role, y symbol,
// p parameter, s segment, b buffer, v view, k rank program, g group. Only attributes off their defaults are written. An
// operand `part(b n)` is the part, of n, of the member b places before the rank.
#include "program/text.h"

#include <charconv>

#include "program/text_tokens.h"

namespace stepcast::program {
namespace {

// Shortest text that reads back to the same double.
std::string number_text(double v) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), v);
  return error == std::errc() ? std::string(buffer, end) : std::string("nan");
}

template <class IdType>
std::string id_text(char letter, IdType id) {
  return letter + std::to_string(id.value);
}

class Writer {
 public:
  std::string write(const Program& p) {
    out_ = std::string(kTextHeader) + "\nprogram " + quoted(p.name) + " seed " + std::to_string(p.seed) + "\n";
    write_tables(p);
    for (std::size_t i = 0; i < p.segments.size(); ++i) write_segment(p.segments[SegmentId(i)], i);
    for (std::size_t i = 0; i < p.rank_programs.size(); ++i)
      write_rank_program(p, p.rank_programs[RankProgramId(i)], i);
    for (std::size_t i = 0; i < p.ranks.size(); ++i) write_rank(p.ranks[RankId(i)], i);
    for (std::size_t i = 0; i < p.groups.size(); ++i) write_group(p.groups[GroupId(i)], i);
    return std::move(out_);
  }

 private:
  void put(std::string_view s) { out_ += s; }
  void put(std::int64_t n) { out_ += std::to_string(n); }
  void end_line(char letter, std::size_t id) {
    put("  # ");
    out_ += letter;
    out_ += std::to_string(id) + "\n";
  }

  void write_tables(const Program& p) {
    std::size_t id = 0;
    for (const Role& role : p.roles) {
      put("role " + quoted(role.name));
      end_line('r', id++);
    }
    id = 0;
    for (const Symbol& symbol : p.symbols) {
      put("symbol " + quoted(symbol.name) + " bound " + std::to_string(symbol.bound));
      end_line('y', id++);
    }
    id = 0;
    for (const Parameter& parameter : p.parameters) {
      put("parameter " + quoted(parameter.name) + " rows " + std::to_string(parameter.rows) + " cols " +
          std::to_string(parameter.cols) + " " + std::string(to_string(parameter.init)) + " " +
          number_text(parameter.std));
      end_line('p', id++);
    }
  }

  void put_type(const TensorType& t) {
    put(to_string(t.dtype));
    put(" [");
    for (std::size_t axis = 0; axis < t.shape.rank; ++axis) {
      const Dim& dim = t.shape.dims[axis];
      if (axis > 0) put(", ");
      if (dim.symbol) put(id_text('y', *dim.symbol) + " ");
      put(dim.bound);
    }
    put("]");
  }

  void write_segment(const Segment& s, std::size_t id) {
    put("segment " + quoted(s.label));
    end_line('s', id);
    for (const Slot& slot : s.slots) {
      put("  slot " + quoted(slot.name) + " ");
      put_type(slot.type);
      put("\n");
    }
    for (const Temp& temp : s.temps) {
      put("  temp " + quoted(temp.name) + " ");
      put_type(temp.type);
      put(" ");
      put(to_string(temp.memory_class));
      put("\n");
    }
    for (const Op& op : s.ops) write_op(s, op);
  }

  void write_op(const Segment& s, const Op& op) {
    put("  op " + quoted(op.name) + " ");
    put(to_string(op.kind));
    put(" ");
    put(to_string(op.stream));
    put(" (");
    std::string names;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const Operand& o = op.operands[i];
      if (i > 0) put(", ");
      if (o.temp) put("t");
      put(std::int64_t{o.index});
      put(" ");
      put(to_string(o.access));
      if (o.names_part()) put(" part(" + std::to_string(o.before) + " " + std::to_string(o.parts) + ")");
      const bool exists = o.index < (o.temp ? s.temps.size() : s.slots.size());
      names += ' ' + (exists ? quoted(o.temp ? s.temps[o.index].name : s.slots[o.index].name) : std::string("?"));
    }
    put(")");
    write_attributes(op.attributes);
    write_communication(op);
    if (op.index_role) put(" index=" + id_text('r', *op.index_role));
    if (op.sample_role) put(" sample=" + id_text('r', *op.sample_role));
    if (op.timing_index) put(" timing_index");
    if (op.symbol) put(" symbol=" + id_text('y', *op.symbol));
    put(names.empty() ? "\n" : "  #" + names + "\n");
  }

  template <class T>
  void put_unless_default(const char* key, T value, T standard) {
    if (value == standard) return;
    put(std::string(" ") + key + "=");
    if constexpr (std::is_same_v<T, double>) {
      put(number_text(value));
    } else if constexpr (std::is_enum_v<T>) {
      put(to_string(value));
    } else {
      put(std::int64_t{value});
    }
  }

  void write_attributes(const Attributes& a) {
    const Attributes standard;
    put_unless_default("form", a.form, standard.form);
    put_unless_default("reduce", a.reduce, standard.reduce);
    put_unless_default("join", a.join_stream, standard.join_stream);
    put_unless_default("heads", a.heads, standard.heads);
    put_unless_default("kv_heads", a.kv_heads, standard.kv_heads);
    put_unless_default("head_dim", a.head_dim, standard.head_dim);
    put_unless_default("batch", a.batch, standard.batch);
    put_unless_default("count", a.count, standard.count);
    put_unless_default("multiprocessors", a.multiprocessors, standard.multiprocessors);
    put_unless_default("microbatches", a.microbatches, standard.microbatches);
    put_unless_default("vocab", a.vocab, standard.vocab);
    put_unless_default("value", a.value, standard.value);
    put_unless_default("learning_rate", a.learning_rate, standard.learning_rate);
    put_unless_default("beta1", a.beta1, standard.beta1);
    put_unless_default("beta2", a.beta2, standard.beta2);
    put_unless_default("eps", a.eps, standard.eps);
  }

  void write_communication(const Op& op) {
    if (op.group) put(" group=" + id_text('r', *op.group));
    put_unless_default("channel", op.channel, Channel::kMain);
    if (!op.member_counts.empty()) {
      put(" counts=[");
      for (std::size_t i = 0; i < op.member_counts.size(); ++i) {
        if (i > 0) put(", ");
        put(op.member_counts[i]);
      }
      put("]");
    }
    for (const P2pPart& part : op.parts) {
      put(part.send ? " send(" : " receive(");
      put(std::int64_t{part.operand});
      put(" " + id_text('r', part.role) + " ");
      put(std::int64_t{part.offset});
      put(" ");
      put(to_string(part.channel));
      put(")");
    }
  }

  void write_rank_program(const Program& p, const RankProgram& r, std::size_t id) {
    put("rank_program " + quoted(r.name));
    end_line('k', id);
    for (std::size_t i = 0; i < r.buffers.size(); ++i) {
      const Buffer& b = r.buffers[BufferId(i)];
      put("  buffer " + quoted(b.name) + " " + std::to_string(b.bytes) + " ");
      put(to_string(b.space));
      put(" ");
      put(to_string(b.memory_class));
      if (b.persistent) put(" persistent");
      end_line('b', i);
    }
    for (std::size_t i = 0; i < r.views.size(); ++i) {
      const View& v = r.views[ViewId(i)];
      put("  view " + id_text('b', v.buffer) + " at " + std::to_string(v.byte_offset) + " ");
      put_type(v.type);
      end_line('v', i);
    }
    for (const Call& call : r.calls) write_call(p, call);
    for (const CallRange& g : r.graphs) put("  graph " + std::to_string(g.begin) + " " + std::to_string(g.end) + "\n");
    for (const ParameterShard& shard : r.shards) write_shard(shard);
    if (r.loss) put("  loss " + id_text('v', *r.loss) + "\n");
  }

  void write_call(const Program& p, const Call& call) {
    put("  call ");
    put(to_string(call.tag.pass));
    if (call.tag.chunk) put(" c" + std::to_string(*call.tag.chunk));
    if (call.tag.microbatch) put(" m" + std::to_string(*call.tag.microbatch));
    if (call.tag.layer) put(" L" + std::to_string(*call.tag.layer));
    put(" " + id_text('s', call.segment) + " (");
    for (std::size_t i = 0; i < call.args.size(); ++i) put((i > 0 ? ", " : "") + id_text('v', call.args[i]));
    put(")");
    if (call.segment.value < p.segments.size()) put("  # " + quoted(p.segments[call.segment].label));
    put("\n");
  }

  void put_axis(const char* name, const AxisRule& a) {
    put(std::string(" ") + name + "(" + std::to_string(a.begin) + " " + std::to_string(a.count));
    if (a.role) put(" index " + id_text('r', *a.role));
    if (a.step != 0) put(" step " + std::to_string(a.step));
    put(")");
  }

  void write_shard(const ParameterShard& s) {
    put("  shard " + id_text('p', s.parameter) + " " + std::string(to_string(s.kind)) + " " + id_text('b', s.buffer) +
        " at " + std::to_string(s.byte_offset) + " ");
    put(to_string(s.dtype));
    for (const ShardBlock& block : s.blocks) {
      put_axis("rows", block.rows);
      put_axis("cols", block.cols);
    }
    if (s.slice) {
      put(" slice(" + id_text('r', s.slice->role) + " " + std::to_string(s.slice->chunk) + " " +
          std::to_string(s.slice->offset) + (s.slice->uncut ? " uncut)" : ")"));
    }
    put("\n");
  }

  void write_rank(const Rank& rank, std::size_t id) {
    put("rank " + id_text('k', rank.program) + " device " + std::to_string(rank.device) + " (");
    for (std::size_t i = 0; i < rank.memberships.size(); ++i) {
      if (i > 0) put(", ");
      const MaybeMembership& m = rank.memberships[i];
      put(m ? id_text('g', m->group) + " " + std::to_string(m->index) : std::string("-"));
    }
    put(")  # " + std::to_string(id) + "\n");
  }

  void write_group(const Group& group, std::size_t id) {
    put("group " + id_text('r', group.role) + " (");
    for (std::size_t i = 0; i < group.members.size(); ++i) {
      put((i > 0 ? " " : "") + std::to_string(group.members[i].value));
    }
    put(")");
    end_line('g', id);
  }

  std::string out_;
};

}  // namespace

std::string to_text(const Program& p) { return Writer().write(p); }

}  // namespace stepcast::program
