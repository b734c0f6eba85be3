// What all families share; what differs is in their row and function of families.h.
#include "models/hf_config.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "models/config_document.h"
#include "models/config_fields.h"
#include "models/families.h"

namespace stepcast::models {
namespace {

// What stands before .json in the last part of the path; the part before that for a file called config.json or
// params.json.
std::string model_name(std::string_view file) {
  const auto last_part = [](std::string_view path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
  };
  std::string_view name = last_part(file);
  std::string_view folder = file.substr(0, file.size() - name.size());
  if (!folder.empty()) folder = last_part(folder.substr(0, folder.size() - 1));
  name = name.substr(0, name.rfind(".json"));
  return std::string((name == "config" || name == "params") && !folder.empty() ? folder : name);
}

// Other model types mean other keys, so nothing else of the file is judged.
const Family& family_of(Fields& fields, const Document& document) {
  const std::optional<std::string> type = fields.text("model_type");
  fields.problems().throw_if_any();
  if (!type) {
    if (document.root.contains("dim") && document.root.contains("n_layers")) return meta_family();
    throw Error(ErrorKind::kInput, "missing key", fields.where("model_type"),
                {"supported: \"model_type\": \"llama\" and others; stepcast models lists what is built in"});
  }
  const Family* family = find_family(*type);
  if (family == nullptr) {
    throw Error(ErrorKind::kUnsupported, "model type " + printable(Json(*type)), fields.where("model_type"),
                {"supported: " + family_names()});
  }
  return *family;
}

Activation read_activation(Fields& fields, std::string_view otherwise) {
  constexpr std::pair<std::string_view, Activation> kWords[] = {
      {"silu", Activation::kSilu},          {"swish", Activation::kSilu},
      {"gelu", Activation::kGelu},          {"gelu_new", Activation::kGeluTanh},
      {"gelu_fast", Activation::kGeluTanh}, {"gelu_pytorch_tanh", Activation::kGeluTanh},
      {"relu", Activation::kRelu},          {"relu2", Activation::kSquaredRelu},
  };
  const std::string word = fields.text("hidden_act").value_or(std::string(otherwise));
  for (const auto& [name, activation] : kWords) {
    if (name == word) return activation;
  }
  fields.refuse("hidden_act", ErrorKind::kUnsupported, "activation " + printable(Json(word)),
                {"supported: silu, gelu, gelu_new, gelu_pytorch_tanh, relu, relu2"});
  return Activation::kSilu;
}

// The largest probability of any dropout; most files state 0 or nothing.
double read_dropout(Fields& fields) {
  double most = 0;
  for (const char* const key : {"attention_dropout", "hidden_dropout", "residual_dropout", "embedding_dropout",
                                "attn_pdrop", "resid_pdrop", "embd_pdrop"}) {
    const double probability = fields.number(key).value_or(0);
    if (!(probability >= 0 && probability < 1)) {
      fields.refuse(key, ErrorKind::kInput, "is not a number of at least 0 and below 1");
    }
    most = std::max(most, probability);
  }
  return most;
}

// Biases, activation, dropout; a window acts on the attention's work, so no family may miss it.
void read_variants(Fields& fields, const Family& family, Architecture& a) {
  a.qkv_bias = fields.boolean("attention_bias", family.attention_bias);
  a.attention_output_bias = a.qkv_bias;
  a.mlp_bias = fields.boolean("mlp_bias", false);
  if (!family.windows && fields.boolean("use_sliding_window", true) && fields.integer("sliding_window")) {
    fields.refuse("sliding_window", ErrorKind::kUnsupported, "sliding-window attention",
                  {"supported: null, or use_sliding_window: false"});
  }
  a.dropout = read_dropout(fields);
  a.activation = read_activation(fields, family.activation);
}

// transformers 5 moves rope_theta into an object rope_parameters; the top-level key wins where both stand.
double read_rope_theta(Fields& fields, double otherwise) {
  const std::optional<double> theta = fields.number("rope_theta");
  if (theta) return *theta;
  const Json* parameters = fields.find("rope_parameters");
  if (parameters == nullptr || !parameters->is_object()) return otherwise;
  const auto inner = parameters->find("rope_theta");
  if (inner == parameters->end() || inner->is_null()) return otherwise;
  if (inner->is_number()) return inner->get<double>();
  fields.refuse("rope_parameters", ErrorKind::kInput, "expected a number in rope_theta, found " + printable(*inner));
  return otherwise;
}

std::int64_t read_head_dim(Fields& fields, const Family& family, const Architecture& a) {
  const std::optional<std::int64_t> stated = fields.integer("head_dim");
  if (stated) return *stated;
  if (family.head_dim > 0) return family.head_dim;
  if (family.latent || a.heads < 1 || a.hidden < 1) return 0;  // set later, or reported as sizes out of range
  if (a.hidden % a.heads == 0) return a.hidden / a.heads;
  fields.refuse("num_attention_heads", ErrorKind::kInput,
                "hidden_size " + std::to_string(a.hidden) + " does not divide by " + std::to_string(a.heads) + " heads",
                {"state head_dim, or change one of the two"});
  return 0;
}

std::int64_t read_ffn(Fields& fields, const Family& family, const Architecture& a) {
  if (family.computes_ffn) return 0;
  if (family.ffn_multiple == 0) return fields.required("intermediate_size");
  const std::int64_t usual = a.hidden >= 1 && a.hidden <= kMaxSize ? family.ffn_multiple * a.hidden : 0;
  return fields.integer("intermediate_size").value_or(usual);
}

Architecture read_shape(Fields& fields, const Family& family) {
  Architecture a;
  a.family = family.model_type;
  read_variants(fields, family, a);
  a.layers = fields.required("num_hidden_layers");
  a.hidden = fields.required("hidden_size");
  a.ffn = read_ffn(fields, family, a);
  a.heads = fields.required("num_attention_heads");
  a.kv_heads = family.states_kv_heads ? fields.required("num_key_value_heads")
                                      : fields.integer("num_key_value_heads").value_or(a.heads);
  a.vocab = fields.required("vocab_size");
  a.padded_vocab = a.vocab;
  a.head_dim = read_head_dim(fields, family, a);
  a.max_positions = fields.integer("max_position_embeddings").value_or(family.max_positions);
  a.norm_eps = fields.number("rms_norm_eps").value_or(family.norm_eps);
  a.rope_theta = read_rope_theta(fields, family.rope_theta);
  a.rotary_fraction = family.rotary_fraction;
  if (family.rotary_fraction < 1) {
    a.rotary_fraction = fields.number("partial_rotary_factor").value_or(family.rotary_fraction);
  }
  a.tied_embeddings = fields.boolean("tie_word_embeddings", family.tied);
  family.read(fields, a);
  return a;
}

// Shape problems, but for fields that already have one (a missing size would be reported again as zero) and for values
// derived from such fields.
void judge_shape(const Architecture& a, Fields& fields) {
  for (const ShapeProblem& shape : problems_of(a)) {
    const std::vector<Problem>& known = fields.problems().problems();
    const Location where = fields.where(shape.field);
    const bool repeated =
        std::any_of(known.begin(), known.end(), [&](const Problem& p) { return p.where.field == where.field; });
    const bool derived = !shape.field.empty() && !fields.has(shape.field);
    if (repeated || (derived && !known.empty())) continue;
    std::vector<std::string> help;
    if (!shape.help.empty()) help.push_back(shape.help);
    fields.problems().add(ErrorKind::kInput, shape.message, where, std::move(help));
  }
}

}  // namespace

Architecture parse_hf_config(std::string_view text, const std::string& file_name, std::vector<std::string>* ignored) {
  const Document document = parse_document(text, file_name);
  ProblemList problems;
  Fields fields(document, file_name, problems);
  const Family& family = family_of(fields, document);
  fields.use_names(family.aliases);
  fields.report_repeated_keys();
  Architecture a = read_shape(fields, family);
  judge_shape(a, fields);
  problems.throw_if_any();
  a.name = model_name(file_name);
  if (ignored != nullptr) *ignored = fields.unused();
  return a;
}

}  // namespace stepcast::models
