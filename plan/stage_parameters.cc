// Lays out a stage's parameters: modules, units, split rules, flats.
#include "plan/stage_parameters.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"

namespace stepcast::plan {
namespace {

using program::AxisRule;
using program::Init;
using program::Parameter;
using program::ParameterId;
using program::RoleId;
using program::ShardBlock;

AxisRule whole(std::int64_t n) { return {0, n, std::nullopt, 0}; }
AxisRule split(std::int64_t begin, std::int64_t count, RoleId role) { return {begin, count, role, count}; }

class Layout {
 public:
  Layout(program::ProgramBuilder& b, const Roles& roles, const Shapes& x, const Scenario& s, std::int32_t pp_rank)
      : b_(b), roles_(roles), x_(x), s_(s), pp_rank_(pp_rank) {}

  StageParameters build() {
    for (std::int32_t chunk = 0; chunk < s_.plan.vp; ++chunk) add_chunk(static_cast<std::uint16_t>(chunk));
    order_completion();
    if (sharding_of(s_) == Sharding::kParameters) {
      make_unit_flats();
    } else {
      make_buckets();
    }
    finish_flats();
    return std::move(out_);
  }

 private:
  void add_chunk(std::uint16_t chunk) {
    const auto stage =
        static_cast<std::size_t>(chunk) * static_cast<std::size_t>(s_.plan.pp) + static_cast<std::size_t>(pp_rank_);
    CHECK(stage < s_.plan.layout.size(), stage, s_.plan.layout.size());
    const Plan::StageItems& items = s_.plan.layout[stage];
    if (items.embedding) add_embedding(chunk);
    for (std::int64_t i = 0; i < items.layers; ++i) add_layer(chunk, items.first_layer + i);
    if (items.loss) add_head(chunk);
  }

  std::uint32_t new_module(ModuleKind kind, std::uint16_t chunk, std::int64_t layer) {
    const auto index = static_cast<std::uint32_t>(out_.modules.size());
    const auto unit = static_cast<std::uint32_t>(out_.units.size() - 1);
    out_.modules.push_back({kind, chunk, layer, unit});
    out_.units.back().modules.push_back(index);
    out_.of_module.emplace_back();
    parameters_of_.emplace_back();
    return index;
  }

  std::uint32_t add(std::uint32_t module, Parameter p, program::Shape local, std::vector<ShardBlock> blocks,
                    bool replicated) {
    LocalParameter q;
    q.id = b_.parameter(std::move(p));
    q.module = module;
    q.shape = local;
    q.blocks = std::move(blocks);
    q.replicated = replicated;
    out_.parameters.push_back(std::move(q));
    const auto index = static_cast<std::uint32_t>(out_.parameters.size() - 1);
    parameters_of_[module].push_back(index);
    return index;
  }

  // A vector that every tp rank holds.
  std::uint32_t add_vector(std::uint32_t module, const std::string& name, std::int64_t n, Init init) {
    return add(module, {name, 1, n, init, 0}, {n}, {{whole(1), whole(n)}}, true);
  }

  void add_qk_norms(std::uint32_t module, const std::string& prefix) {
    if (s_.model.qk_norm == models::QkNorm::kNone) return;
    ModuleParameters& p = out_.of_module[module];
    p.q_norm = add_vector(module, prefix + "q_norm", x_.q_norm, Init::kOnes);
    p.k_norm = add_vector(module, prefix + "k_norm", x_.k_norm, Init::kOnes);
    for (const std::uint32_t norm : {*p.q_norm, *p.k_norm}) out_.parameters[norm].of_own_heads = true;
  }

  void add_norm(std::uint32_t module, const std::string& name) {
    ModuleParameters& p = out_.of_module[module];
    p.norm = add_vector(module, name, x_.hidden, Init::kOnes);
    if (s_.model.norm_bias) p.norm_bias = add_vector(module, name + "_bias", x_.hidden, Init::kZeros);
  }

  // One column of the given ranges of rows, split over tp as the rows of the matrix it belongs to.
  std::uint32_t add_column_bias(std::uint32_t module, const std::string& name,
                                const std::vector<std::int64_t>& widths) {
    std::vector<ShardBlock> blocks;
    std::int64_t begin = 0;
    for (const std::int64_t width : widths) {
      blocks.push_back({split(begin, width / s_.plan.tp, roles_.tp), whole(1)});
      begin += width;
    }
    return add(module, {name, begin, 1, Init::kZeros, 0}, {begin / s_.plan.tp}, std::move(blocks), false);
  }

  // A matrix whose rows are the given ranges, each split over tp.
  std::uint32_t add_column(std::uint32_t module, const std::string& name, const std::vector<std::int64_t>& widths) {
    std::vector<ShardBlock> blocks;
    std::int64_t begin = 0;
    std::int64_t local = 0;
    for (const std::int64_t width : widths) {
      const std::int64_t part = width / s_.plan.tp;
      blocks.push_back({split(begin, part, roles_.tp), whole(x_.hidden)});
      begin += width;
      local += part;
    }
    return add(module, {name, begin, x_.hidden, Init::kNormal, s_.training.init_std}, {local, x_.hidden},
               std::move(blocks), false);
  }

  // A matrix whose columns are split over tp. Projections into the residual stream start smaller by sqrt(2 layers)
  // (GPT-2's initialisation, also Megatron's scaled_init_method).
  std::uint32_t add_row(std::uint32_t module, const std::string& name, std::int64_t width) {
    const std::int64_t part = width / s_.plan.tp;
    const double std = s_.training.init_std / std::sqrt(2.0 * static_cast<double>(s_.model.layers));
    return add(module, {name, x_.hidden, width, Init::kNormal, std}, {x_.hidden, part},
               {{whole(x_.hidden), split(0, part, roles_.tp)}}, false);
  }

  void add_embedding(std::uint16_t chunk) {
    out_.units.push_back({chunk, std::nullopt, "embed_", {}, {}});
    const std::uint32_t m = new_module(ModuleKind::kEmbedding, chunk, 0);
    out_.of_module[m].in = add_column(m, "embed", {s_.model.padded_vocab});
    table_ = out_.of_module[m].in;
    if (s_.model.positions != models::PositionKind::kLearned) return;
    const std::int64_t rows = s_.model.max_positions;
    out_.of_module[m].positions = add(m, {"positions", rows, x_.hidden, Init::kNormal, s_.training.init_std},
                                      {rows, x_.hidden}, {{whole(rows), whole(x_.hidden)}}, true);
  }

  struct Column {
    std::string name;
    std::vector<std::int64_t> widths;
    bool bias = false;
  };

  struct Row {
    std::string name;
    std::int64_t width = 0;
    bool bias = false;
  };

  // The projections into and out of a module, and their biases.
  void add_projections(std::uint32_t module, const Column& in, const Row& out) {
    ModuleParameters& p = out_.of_module[module];
    p.in = add_column(module, in.name, in.widths);
    if (in.bias) p.in_bias = add_column_bias(module, in.name + "_bias", in.widths);
    p.out = add_row(module, out.name, out.width);
    if (out.bias) p.out_bias = add_vector(module, out.name + "_bias", x_.hidden, Init::kZeros);
  }

  void add_layer(std::uint16_t chunk, std::int64_t layer) {
    out_.units.push_back({chunk, static_cast<std::uint32_t>(layer), "", {}, {}});
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    const std::uint32_t attn = new_module(ModuleKind::kAttention, chunk, layer);
    add_norm(attn, prefix + "attn_norm");
    const models::Architecture& m = s_.model;
    add_projections(attn, {prefix + "wqkv", {m.q_width(), m.kv_width(), m.kv_width()}, m.qkv_bias},
                    {prefix + "wo", m.q_width(), m.attention_output_bias});
    add_qk_norms(attn, prefix);
    const std::uint32_t mlp = new_module(ModuleKind::kMlp, chunk, layer);
    add_norm(mlp, prefix + "mlp_norm");
    const Column in = m.gated_mlp ? Column{prefix + "gate_up", {m.ffn, m.ffn}, m.mlp_bias}
                                  : Column{prefix + "up", {m.ffn}, m.mlp_bias};
    add_projections(mlp, in, {prefix + "down", m.ffn, m.mlp_bias});
  }

  void add_head(std::uint16_t chunk) {
    out_.units.push_back({chunk, std::nullopt, "head_", {}, {}});
    const std::uint32_t m = new_module(ModuleKind::kHead, chunk, 0);
    add_norm(m, "final_norm");
    if (!s_.model.tied_embeddings) {
      out_.of_module[m].in = add_column(m, "head", {s_.model.padded_vocab});
    } else if (table_) {
      out_.of_module[m].in = table_;
    } else {
      out_.of_module[m].in = add_column(m, "embed", {s_.model.padded_vocab});
      out_.parameters[*out_.of_module[m].in].second_copy = true;
    }
  }

  // The last microbatch's backward passes run chunk v-1 first and, in a chunk, the last module first.
  void order_completion() {
    for (std::size_t i = out_.modules.size(); i-- > 0;) out_.completion.push_back(static_cast<std::uint32_t>(i));
  }

  bool tied_across_stages(std::uint32_t parameter) const {
    return s_.model.tied_embeddings && s_.plan.pp > 1 &&
           (out_.parameters[parameter].second_copy || table_ == parameter);
  }

  // Appends a parameter to the flat `index`.
  void place(std::uint32_t parameter, std::uint32_t index) {
    Flat& flat = out_.flats[index];
    LocalParameter& p = out_.parameters[parameter];
    p.flat = index;
    p.offset = flat.elements;
    flat.elements += p.shape.elements();
    flat.last_module = p.module;
  }

  std::uint32_t new_flat() {
    out_.flats.emplace_back();
    return static_cast<std::uint32_t>(out_.flats.size() - 1);
  }

  // How the gradients of a parameter are summed over tp: those of one flat in the same way.
  enum class OverTp : std::uint8_t { kSplit, kReplicated, kOfOwnHeads };
  OverTp over_tp(const LocalParameter& p) const {
    if (!p.replicated || !x_.tensor_parallel) return OverTp::kSplit;
    return p.of_own_heads && !x_.sequence_parallel ? OverTp::kOfOwnHeads : OverTp::kReplicated;
  }

  void new_replicated_flat(const std::vector<std::uint32_t>& parameters, bool of_own_heads) {
    if (parameters.empty()) return;
    const std::uint32_t flat = new_flat();
    out_.flats[flat].replicated = true;
    out_.flats[flat].of_own_heads = of_own_heads;
    for (const std::uint32_t parameter : parameters) place(parameter, flat);
  }

  // Megatron-Core has one bucket per chunk where reductions are off the critical path: on stages behind the first, in
  // chunks behind the first (DistributedDataParallel.__init__, get_model's disable_bucketing).
  std::int64_t bucket_limit(std::uint16_t chunk) const {
    const bool whole = s_.framework == Framework::kMegatronCore && (pp_rank_ > 0 || chunk > 0);
    if (whole || s_.plan.bucket_elements == 0) return std::numeric_limits<std::int64_t>::max();
    const bool first = out_.flats.size() == 1 && s_.plan.first_bucket_elements > 0;
    return first ? s_.plan.first_bucket_elements : s_.plan.bucket_elements;
  }

  // Buckets fill in order of completion and close once they reach their limit or the chunk ends. Replicated
  // parameters collect in one bucket of their own when tp > 1; a table tied across stages is a bucket of its own, since
  // it is summed with its copy.
  void make_buckets() {
    bool is_open = false;
    std::uint16_t chunk = 0;
    std::vector<std::uint32_t> replicated;
    std::vector<std::uint32_t> of_own_heads;
    std::vector<std::uint32_t> tied;
    for (const std::uint32_t module : out_.completion) {
      for (const std::uint32_t parameter : parameters_of_[module]) {
        const LocalParameter& p = out_.parameters[parameter];
        if (const OverTp kind = over_tp(p); kind != OverTp::kSplit) {
          (kind == OverTp::kReplicated ? replicated : of_own_heads).push_back(parameter);
          continue;
        }
        if (tied_across_stages(parameter)) {
          tied.push_back(parameter);
          continue;
        }
        is_open = is_open && out_.modules[module].chunk == chunk;
        chunk = out_.modules[module].chunk;
        const std::uint32_t open = is_open ? static_cast<std::uint32_t>(out_.flats.size() - 1) : new_flat();
        place(parameter, open);
        is_open = out_.flats[open].elements < bucket_limit(chunk);
      }
    }
    new_replicated_flat(replicated, false);
    new_replicated_flat(of_own_heads, true);
    for (const std::uint32_t parameter : tied) {
      const std::uint32_t flat = new_flat();
      out_.flats[flat].tied = true;
      place(parameter, flat);
    }
  }

  void make_unit_flats() {
    for (std::size_t u = out_.units.size(); u-- > 0;) {
      for (const OverTp kind : {OverTp::kSplit, OverTp::kReplicated, OverTp::kOfOwnHeads}) {
        std::optional<std::uint32_t> flat;
        for (const std::uint32_t module : out_.units[u].modules) {
          for (const std::uint32_t parameter : parameters_of_[module]) {
            if (over_tp(out_.parameters[parameter]) != kind) continue;
            if (!flat) flat = new_flat();
            place(parameter, *flat);
          }
        }
        if (!flat) continue;
        out_.flats[*flat].replicated = kind != OverTp::kSplit;
        out_.flats[*flat].of_own_heads = kind == OverTp::kOfOwnHeads;
        out_.flats[*flat].unit = static_cast<std::uint32_t>(u);
        out_.flats[*flat].last_module = out_.units[u].modules.front();
        out_.units[u].flats.push_back(*flat);
      }
    }
  }

  void finish_flats() {
    out_.completed_by.resize(out_.modules.size());
    for (std::uint32_t f = 0; f < out_.flats.size(); ++f) out_.completed_by[out_.flats[f].last_module].push_back(f);
    const std::int64_t parts = sharding_of(s_) == Sharding::kNone ? 1 : s_.plan.shards();
    for (Flat& flat : out_.flats) {
      flat.chunk = (flat.elements + parts - 1) / parts;
      flat.elements = flat.chunk * parts;
      flat.begin = out_.elements;
      if (flat.replicated) flat.norm_scale = 1.0 / s_.plan.tp;
      if (flat.tied) flat.norm_scale = 0.5;
      out_.elements += flat.elements;
      out_.shard_elements += flat.chunk;
    }
  }

  program::ProgramBuilder& b_;
  const Roles& roles_;
  const Shapes& x_;
  const Scenario& s_;
  std::int32_t pp_rank_;
  std::optional<std::uint32_t> table_;
  std::vector<std::vector<std::uint32_t>> parameters_of_;  // by module
  StageParameters out_;
};

}  // namespace

Sharding sharding_of(const Scenario& s) {
  if (s.plan.shards() == 1 || s.plan.zero == 0) return Sharding::kNone;
  return s.plan.zero == 1 ? Sharding::kOptimizer : s.plan.zero == 2 ? Sharding::kGradients : Sharding::kParameters;
}

StageParameters lay_out_parameters(program::ProgramBuilder& b, const Roles& roles, const Shapes& x, const Scenario& s,
                                   std::int32_t pp_rank) {
  return Layout(b, roles, x, s, pp_rank).build();
}

}  // namespace stepcast::plan
