// The alias table. Sources: Megatron-LM arguments, torchtitan's parallelism section, Megatron-FSDP's sharding words.
#include "plan/scenario_aliases.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "config/bind.h"
#include "config/text.h"
#include "plan/scenario.pb.h"

namespace stepcast::plan {
namespace {

using config::Node;

struct Alias {
  std::string_view name;
  std::string_view field;
};

constexpr std::array kAliases = std::to_array<Alias>({
    {"tensor_model_parallel_size", "plan.tp"},
    {"tensor_parallel_degree", "plan.tp"},
    {"pipeline_model_parallel_size", "plan.pp"},
    {"pipeline_parallel_degree", "plan.pp"},
    {"context_parallel_size", "plan.cp"},
    {"context_parallel_degree", "plan.cp"},
    {"expert_model_parallel_size", "plan.ep"},
    {"expert_tensor_parallel_size", "plan.etp"},
    {"data_parallel_size", "plan.dp"},
    {"data_parallel_shard_degree", "plan.dp_shard"},
    {"data_parallel_replicate_degree", "plan.dp_replicate"},
    {"vpp", "plan.vp"},
    {"virtual_pipeline_model_parallel_size", "plan.vp"},
    {"num_virtual_stages_per_pipeline_rank", "plan.vp"},
    {"num_layers_per_virtual_pipeline_stage", "plan.layers_per_virtual_stage"},
    {"pipeline_model_parallel_layout", "plan.layout"},
    {"microbatch_group_size_per_vp_stage", "plan.microbatch_group"},
    {"microbatch_group_size_per_virtual_pipeline_stage", "plan.microbatch_group"},
    {"recompute_granularity", "plan.recompute.granularity"},
    {"recompute_method", "plan.recompute.method"},
    {"recompute_num_layers", "plan.recompute.num_layers"},
    {"recompute_modules", "plan.recompute.modules"},
    {"activation_checkpoint", "plan.recompute"},
    {"overlap_grad_reduce", "plan.overlap.grad_reduce"},
    {"overlap_param_gather", "plan.overlap.param_gather"},
    {"overlap_param_gather_with_optimizer_step", "plan.overlap.param_gather_with_optimizer"},
    {"tp_comm_overlap", "plan.overlap.tp_comm"},
    {"ddp_bucket_size", "plan.bucket"},
    {"seq_length", "training.sequence_length"},
    {"seq_len", "training.sequence_length"},
    {"num_layers", "model.num_hidden_layers"},
    {"ffn_hidden_size", "model.intermediate_size"},
    {"num_query_groups", "model.num_key_value_heads"},
    {"kv_channels", "model.head_dim"},
    {"make_vocab_size_divisible_by", "model.vocab_pad_to"},
    // These also change the value; see translated().
    {"use_distributed_optimizer", "plan.zero"},
    {"data_parallel_sharding_strategy", "plan.zero"},
    {"use_tp_pp_dp_mapping", "plan.rank_order"},
    {"sp", "plan.sequence_parallel"},
});

constexpr std::array<std::string_view, 4> kSections = {"", "plan", "training", "model"};

class Canonicaliser {
 public:
  Canonicaliser(Node& root, ProblemList& problems, std::vector<std::string>& notes)
      : root_(root), problems_(problems), notes_(notes) {}

  void run() {
    for (const std::string_view section : kSections) {
      Node* part = section.empty() ? &root_ : root_.find(section);
      if (part == nullptr || part->kind != Node::Kind::kMap) continue;
      const std::vector<std::string> keys = part->keys;
      for (const std::string& key : keys) consider(section, key);
    }
    expand_recompute();
    expand_zero();
  }

 private:
  void consider(std::string_view section, const std::string& key) {
    Node* part = section.empty() ? &root_ : root_.find(section);
    const std::string written = section.empty() ? key : std::string(section) + "." + key;
    if (key == "local_batch_size") {
      refuse(*part->find(key), written, "local_batch_size counts the sequences of a rank in a whole step",
             {"give plan.micro_batch_size (sequences of one microbatch) and training.global_batch_size"});
      part->erase(key);
      return;
    }
    const auto alias = std::find_if(kAliases.begin(), kAliases.end(), [&](const Alias& a) { return a.name == key; });
    if (alias == kAliases.end()) return;
    Node value = *part->find(key);
    part->erase(key);
    const auto translated_value = translated(key, written, value);
    if (!translated_value) return;
    if (has(alias->field)) {
      refuse(value, written, std::string(alias->field) + " is given twice: " + written + " is another name for it");
      return;
    }
    notes_.push_back(written + " (" + config::origin_text(value.where) + ") is read as " + std::string(alias->field) +
                     ": " + config::printable(config::flow_text(*translated_value)));
    place(alias->field, *translated_value);
  }

  // The value in the schema's terms; nothing after reporting a value that cannot be meant.
  std::optional<Node> translated(std::string_view alias, const std::string& written, const Node& value) {
    const bool is_true = value.text == "true" && value.kind == Node::Kind::kScalar;
    const bool is_false = value.text == "false" && value.kind == Node::Kind::kScalar;
    const auto word = [&](std::string text) { return config::make_scalar(std::move(text), value.where); };
    if (alias == "sp") {
      if (is_true || is_false) return value;
      refuse(value, written, "sp is a switch, not a degree: sequence parallelism always spans the tp ranks",
             {"write sequence_parallel: true", "to split the sequence over further ranks, use plan.cp"});
      return std::nullopt;
    }
    if (alias == "use_distributed_optimizer" || alias == "use_tp_pp_dp_mapping") {
      if (!is_true && !is_false) {
        refuse(value, written, "expected true or false");
        return std::nullopt;
      }
      if (alias == "use_distributed_optimizer") return word(is_true ? "1" : "0");
      return word(is_true ? "tp-cp-ep-pp-dp" : "tp-cp-ep-dp-pp");
    }
    if (alias == "activation_checkpoint" && value.kind == Node::Kind::kMap) return in_recompute_words(value);
    return value;  // the sharding words are expanded with plan.zero itself
  }

  // torchtitan's section: mode and selective_ac_option, the policy.
  static Node in_recompute_words(Node value) {
    const Node* option = value.find("selective_ac_option");
    if (option == nullptr || value.find("policy") != nullptr) return value;
    Node policy = *option;
    value.erase("selective_ac_option");
    value.set("policy", std::move(policy));
    return value;
  }

  void refuse(const Node& node, const std::string& field, std::string message, std::vector<std::string> help = {}) {
    problems_.add(ErrorKind::kInput, std::move(message), {node.where.file, node.where.line, field}, std::move(help));
  }

  const Node* find(std::string_view path) const {
    const Node* node = &root_;
    while (node != nullptr && !path.empty()) {
      const std::size_t dot = path.find('.');
      node = node->kind == Node::Kind::kMap ? node->find(path.substr(0, dot)) : nullptr;
      path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
    }
    return node;
  }

  bool has(std::string_view path) const { return find(path) != nullptr; }

  void place(std::string_view path, Node value) {
    while (!path.empty()) {
      const std::size_t dot = path.rfind('.');
      Node map = config::make_map(value.where);
      map.set(dot == std::string_view::npos ? path : path.substr(dot + 1), std::move(value));
      value = std::move(map);
      path = dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
    }
    config::merge(root_, value, *schema::Scenario::descriptor());
  }

  // "selective[layernorm,mlp_act]" becomes {granularity: selective, modules: [layernorm, mlp_act]}.
  void expand_recompute() {
    const Node* found = find("plan.recompute");
    if (found == nullptr || found->kind != Node::Kind::kScalar) return;
    const std::string text = found->text;
    const std::size_t open = text.find('[');
    if (open == std::string::npos || text.back() != ']') return;
    const Location where = found->where;
    Node modules;
    modules.kind = Node::Kind::kList;
    modules.where = where;
    std::string_view rest = std::string_view(text).substr(open + 1, text.size() - open - 2);
    while (!rest.empty()) {
      const std::size_t comma = rest.find(',');
      std::string_view word = rest.substr(0, comma);
      while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
      while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
      modules.children.push_back(config::make_scalar(std::string(word), where));
      rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    }
    Node expanded = config::make_map(where);
    expanded.set("granularity", config::make_scalar(text.substr(0, open), where));
    expanded.set("modules", std::move(modules));
    root_.find("plan")->set("recompute", std::move(expanded));
  }

  // Megatron-FSDP's words for the ZeRO stages.
  void expand_zero() {
    const Node* found = find("plan.zero");
    if (found == nullptr || found->kind != Node::Kind::kScalar) return;
    constexpr std::array<std::string_view, 4> kWords = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
    const auto word = std::find(kWords.begin(), kWords.end(), found->text);
    if (word == kWords.end()) return;
    Node stage = config::make_scalar(std::to_string(word - kWords.begin()), found->where);
    notes_.push_back("plan.zero: " + found->text + " is read as " + stage.text);
    root_.find("plan")->set("zero", std::move(stage));
  }

  Node& root_;
  ProblemList& problems_;
  std::vector<std::string>& notes_;
};

}  // namespace

std::string canonical_field(std::string_view field) {
  const std::size_t dot = field.rfind('.');
  const std::string_view section = dot == std::string_view::npos ? std::string_view() : field.substr(0, dot);
  const std::string_view name = dot == std::string_view::npos ? field : field.substr(dot + 1);
  if (std::find(kSections.begin(), kSections.end(), section) == kSections.end()) return std::string(field);
  const auto alias = std::find_if(kAliases.begin(), kAliases.end(), [&](const Alias& a) { return a.name == name; });
  return std::string(alias == kAliases.end() ? field : alias->field);
}

void canonicalise_names(config::Node& layer, ProblemList& problems, std::vector<std::string>& notes) {
  if (layer.kind != Node::Kind::kMap) return;
  Canonicaliser(layer, problems, notes).run();
}

}  // namespace stepcast::plan
