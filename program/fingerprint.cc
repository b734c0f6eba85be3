// The fingerprint: a hash of all that decides what a Program does. Names of buffers, slots and temps and device numbers
// are left out, for they change neither work nor order.
#include "base/random.h"
#include "program/hasher.h"

namespace stepcast::program {

void Hasher::text(std::string_view s) {
  word(s.size());
  word(hash_text(s));
}

template <class T>
void Hasher::maybe(const std::optional<T>& v) {
  word(v.has_value() ? 1 : 0);
  if (!v) return;
  if constexpr (requires { v->value; }) {
    word(v->value);
  } else {
    number(*v);
  }
}

namespace {

void add(Hasher& h, const TensorType& t) {
  h.number(t.dtype);
  h.number(t.shape.rank);
  for (const Dim& dim : t.shape.dims) {
    h.number(dim.bound);
    h.maybe(dim.symbol);
  }
}

void add(Hasher& h, const Attributes& a) {
  h.number(a.form);
  h.number(a.reduce);
  h.number(a.join_stream);
  for (const std::int64_t v : {static_cast<std::int64_t>(a.heads), static_cast<std::int64_t>(a.kv_heads),
                               static_cast<std::int64_t>(a.head_dim), a.batch, a.count, a.microbatches, a.vocab}) {
    h.number(v);
  }
  if (a.multiprocessors >= 0) {
    h.text("multiprocessors");
    h.number(a.multiprocessors);
  }
  for (const double v : {a.value, a.learning_rate, a.beta1, a.beta2, a.eps}) h.real(v);
}

void add(Hasher& h, const Op& op) {
  h.text(op.name);
  h.number(op.kind);
  h.number(op.stream);
  h.number(op.operands.size());
  for (const Operand& o : op.operands) {
    h.number(o.temp);
    h.number(o.index);
    h.number(o.access);
    if (!o.names_part()) continue;
    h.text("part");
    h.number(o.parts);
    h.number(o.before);
  }
  add(h, op.attributes);
  h.maybe(op.group);
  h.number(op.channel);
  h.number(op.member_counts.size());
  for (const std::int64_t n : op.member_counts) h.number(n);
  h.number(op.parts.size());
  for (const P2pPart& part : op.parts) {
    h.number(part.operand);
    h.number(part.send);
    h.number(part.role.value);
    h.number(part.offset);
    h.number(part.channel);
  }
  h.maybe(op.index_role);
  h.number(op.timing_index);
  h.maybe(op.symbol);
  if (op.sample_role) h.text("sample");
  if (op.sample_role) h.number(op.sample_role->value);
}

void add(Hasher& h, const Call& c) {
  h.number(c.segment.value);
  h.number(c.args.size());
  for (const ViewId v : c.args) h.number(v.value);
  h.number(c.tag.pass);
  h.maybe(c.tag.chunk);
  h.maybe(c.tag.microbatch);
  h.maybe(c.tag.layer);
}

void add(Hasher& h, const AxisRule& a) {
  h.number(a.begin);
  h.number(a.count);
  h.maybe(a.role);
  h.number(a.step);
}

void add(Hasher& h, const ParameterShard& s) {
  h.number(s.parameter.value);
  h.number(s.kind);
  h.number(s.buffer.value);
  h.number(s.byte_offset);
  h.number(s.dtype);
  h.number(s.blocks.size());
  for (const ShardBlock& block : s.blocks) {
    add(h, block.rows);
    add(h, block.cols);
  }
  h.number(s.slice.has_value());
  if (!s.slice) return;
  h.number(s.slice->role.value);
  h.number(s.slice->chunk);
  h.number(s.slice->offset);
  h.number(s.slice->uncut);
}

void add_tables(Hasher& h, const Program& p) {
  for (const Role& role : p.roles) h.text(role.name);
  h.number(p.groups.size());
  for (const Group& group : p.groups) {
    h.number(group.role.value);
    h.number(group.members.size());
    for (const RankId rank : group.members) h.number(rank.value);
  }
  h.number(p.parameters.size());
  for (const Parameter& parameter : p.parameters) {
    h.text(parameter.name);
    h.number(parameter.rows);
    h.number(parameter.cols);
    h.number(parameter.init);
    h.real(parameter.std);
  }
  h.number(p.symbols.size());
  for (const Symbol& symbol : p.symbols) {
    h.text(symbol.name);
    h.number(symbol.bound);
  }
}

}  // namespace

void add(Hasher& h, const View& v) {
  h.number(v.buffer.value);
  h.number(v.byte_offset);
  add(h, v.type);
}

void add(Hasher& h, const Segment& s, bool names) {
  h.text(s.label);
  h.number(s.slots.size());
  for (const Slot& slot : s.slots) {
    if (names) h.text(slot.name);
    add(h, slot.type);
  }
  h.number(s.temps.size());
  for (const Temp& temp : s.temps) {
    if (names) h.text(temp.name);
    add(h, temp.type);
    h.number(temp.memory_class);
  }
  h.number(s.ops.size());
  for (const Op& op : s.ops) add(h, op);
}

void add(Hasher& h, const RankProgram& r, bool names) {
  h.text(r.name);
  h.number(r.buffers.size());
  for (const Buffer& buffer : r.buffers) {
    if (names) h.text(buffer.name);
    h.number(buffer.bytes);
    h.number(buffer.space);
    h.number(buffer.memory_class);
    h.number(buffer.persistent);
  }
  h.number(r.views.size());
  for (const View& view : r.views) add(h, view);
  h.number(r.calls.size());
  for (const Call& call : r.calls) add(h, call);
  h.number(r.graphs.size());
  for (const CallRange& range : r.graphs) {
    h.number(range.begin);
    h.number(range.end);
  }
  h.number(r.shards.size());
  for (const ParameterShard& shard : r.shards) add(h, shard);
  h.maybe(r.loss);
}

std::uint64_t fingerprint(const Program& p) {
  Hasher h;
  h.word(p.seed);
  h.number(p.roles.size());
  h.number(p.segments.size());
  for (const Segment& segment : p.segments) add(h, segment, false);
  h.number(p.rank_programs.size());
  for (const RankProgram& r : p.rank_programs) add(h, r, false);
  h.number(p.ranks.size());
  for (const Rank& rank : p.ranks) {
    h.number(rank.program.value);
    h.number(rank.memberships.size());
    for (const MaybeMembership& m : rank.memberships) {
      h.number(m.has_value());
      if (!m) continue;
      h.number(m->group.value);
      h.number(m->index);
    }
  }
  add_tables(h, p);
  return h.value();
}

}  // namespace stepcast::program
