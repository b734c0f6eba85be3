// The model of Megatron arguments. Megatron-LM builds a decoder from switches; the scenario has the same ones: norm,
// positions, activation, biases. What it has no key for is told.
#include <array>
#include <string_view>
#include <utility>

#include "config/text.h"
#include "import/megatron.h"

namespace stepcast::imports {
namespace {

constexpr std::int64_t kGpt2Vocabulary = 50257;

// Flags of the model's shape: with --model they change nothing.
constexpr std::array<std::string_view, 22> kShape = {"num-layers",
                                                     "hidden-size",
                                                     "ffn-hidden-size",
                                                     "num-attention-heads",
                                                     "group-query-attention",
                                                     "num-query-groups",
                                                     "kv-channels",
                                                     "vocab-size",
                                                     "padded-vocab-size",
                                                     "swiglu",
                                                     "normalization",
                                                     "norm-epsilon",
                                                     "rotary-base",
                                                     "rotary-percent",
                                                     "position-embedding-type",
                                                     "use-rotary-position-embeddings",
                                                     "disable-bias-linear",
                                                     "add-qkv-bias",
                                                     "qk-layernorm",
                                                     "untie-embeddings-and-output-weights",
                                                     "max-position-embeddings",
                                                     "squared-relu"};

struct TokenizerVocabulary {
  std::string_view type;
  std::int64_t size;
};
// Vocabularies that go with a tokenizer whatever its file: OpenAI's GPT-2 BPE, Llama 2's sentencepiece model.
constexpr std::array<TokenizerVocabulary, 2> kVocabularies = {
    {{"GPT2BPETokenizer", kGpt2Vocabulary}, {"Llama2Tokenizer", 32000}}};

std::int64_t required(MegatronRun& run, std::string_view name) {
  const auto value = run.args.positive(name);
  if (!value && run.args.origin(name).empty()) {
    run.draft.refuse("missing --" + std::string(name), {run.draft.request().file, 0, ""},
                     {"the arguments do not state the model's shape: give --model NAME"});
  }
  return value.value_or(0);
}

void take_vocabulary(MegatronRun& run) {
  if (const auto size = run.args.positive("vocab-size")) {
    run.draft.set("model.vocab_size", *size, run.args.origin("vocab-size"));
    return;
  }
  if (const auto size = run.args.positive("padded-vocab-size")) {
    run.draft.set("model.vocab_size", *size, run.args.origin("padded-vocab-size"));
    return;
  }
  const std::string tokenizer = run.args.word("tokenizer-type").value_or("");
  for (const TokenizerVocabulary& known : kVocabularies) {
    if (tokenizer != known.type) continue;
    run.draft.set("model.vocab_size", known.size, run.args.origin("tokenizer-type"));
    return;
  }
  run.draft.set("model.vocab_size", kGpt2Vocabulary, "assumed: GPT-2's");
  run.draft.assume(
      "model.vocab_size 50257, GPT-2's: the arguments leave it to the tokenizer's file (--set "
      "model.vocab_size=N)");
}

std::int64_t feed_forward(MegatronRun& run, bool gated) {
  if (const auto size = run.args.positive("ffn-hidden-size")) {
    run.draft.set("model.intermediate_size", *size, run.args.origin("ffn-hidden-size"));
    return *size;
  }
  // arguments.py: 4 h, or with --swiglu int(4 h * 2 / 3 / 64) * 64.
  const std::int64_t size = gated ? run.hidden * 8 / 3 / 64 * 64 : 4 * run.hidden;
  run.draft.set("model.intermediate_size", size,
                gated ? "Megatron default: int(8 h / 3 / 64) * 64" : "Megatron default: 4 h");
  return size;
}

void take_heads(MegatronRun& run) {
  run.heads = required(run, "num-attention-heads");
  run.draft.set("model.num_attention_heads", run.heads, run.args.origin("num-attention-heads"));
  const bool grouped = run.args.on("group-query-attention");
  const auto groups = run.args.positive("num-query-groups");
  run.groups = grouped ? groups.value_or(1) : run.heads;
  if (grouped) {
    run.draft.set("model.num_key_value_heads", run.groups,
                  run.origin_or("num-query-groups", "Megatron default: one group"));
  } else if (groups && *groups != run.heads) {
    run.draft.contradict(run.args.origin("num-query-groups") +
                         " has no effect without --group-query-attention: every head keeps its own keys and values");
  }
  if (const auto channels = run.args.positive("kv-channels")) {
    run.draft.set("model.head_dim", *channels, run.args.origin("kv-channels"));
  }
}

// What the scenario has no key for. None of it moves a matmul.
void tell_differences(MegatronRun& run) {
  std::vector<std::string> differences;
  const bool biases = !run.args.on("disable-bias-linear");
  if (run.args.on("add-qkv-bias") && !biases) differences.push_back("a bias of queries, keys and values");
  if (differences.empty()) return;
  run.draft.assume("the model is computed without " + config::join(differences, " and "));
}

void take_norm(MegatronRun& run) {
  run.draft.set("model.normalization", yaml_text(run.args.word("normalization").value_or("LayerNorm")),
                run.origin_or("normalization", "Megatron default"));
  if (const auto epsilon = run.args.number("norm-epsilon")) {
    run.draft.set("model.rms_norm_eps", config::number_text(*epsilon), run.args.origin("norm-epsilon"));
  }
}

void take_positions(MegatronRun& run) {
  std::string positions = run.args.word("position-embedding-type").value_or("learned_absolute");
  std::string origin = run.origin_or("position-embedding-type", "Megatron default");
  if (run.args.on("use-rotary-position-embeddings")) {
    positions = "rope";
    origin = run.args.origin("use-rotary-position-embeddings");
  }
  if (positions == "yarn" || positions == "mrope") {
    run.draft.assume(positions + " positions are computed as rope: " + origin);
    positions = "rope";
  }
  if (positions != "rope" && positions != "learned_absolute" && positions != "none") {
    run.draft.refuse(config::printable(positions) + " positions are not supported yet",
                     run.args.where("position-embedding-type"), {"rope, learned_absolute or none"},
                     ErrorKind::kUnsupported);
  }
  run.draft.set("model.position_embedding_type", yaml_text(positions), origin);
  if (const auto base = run.args.number("rotary-base")) {
    run.draft.set("model.rope_theta", config::number_text(*base), run.args.origin("rotary-base"));
  }
  const auto most = run.args.positive("max-position-embeddings");
  if (most) run.draft.set("model.max_position_embeddings", *most, run.args.origin("max-position-embeddings"));
  const double share = run.args.number("rotary-percent").value_or(1.0);
  if (positions != "rope" || share == 1.0) return;
  run.draft.refuse("--rotary-percent " + config::number_text(share) + ": rotation of a part of each head",
                   run.args.where("rotary-percent"), {"--model NAME takes a model that has its own config"},
                   ErrorKind::kUnsupported);
}

// arguments.py switches the fusion of bias and GELU off where there are no biases; the fused kernel computes the tanh
// form, F.gelu the erf form. Both are one pass over the same bytes.
void take_activation(MegatronRun& run) {
  const std::string tanh_origin = run.args.origin("openai-gelu");
  if (run.args.on("swiglu")) return run.draft.set("model.hidden_act", "silu", run.args.origin("swiglu"));
  if (run.args.on("gated-linear-unit")) {  // of configuration files, whose activation is a Python object
    run.draft.assume("SwiGLU: " + run.args.origin("gated-linear-unit") + " says that the MLP is gated, not by what");
    return run.draft.set("model.hidden_act", "silu", run.args.origin("gated-linear-unit"));
  }
  if (run.args.on("squared-relu")) return run.draft.set("model.hidden_act", "relu2", run.args.origin("squared-relu"));
  const bool unfused = run.args.on("no-bias-gelu-fusion");
  const bool biases = !run.args.on("disable-bias-linear");
  if (run.args.on("openai-gelu")) return run.draft.set("model.hidden_act", "gelu_new", tanh_origin);
  if (unfused || !biases) {
    run.draft.assume(
        "GELU in its tanh form: " + run.args.origin(unfused ? "no-bias-gelu-fusion" : "disable-bias-linear") +
        " makes it the erf form, which reads and writes the same");
  }
  run.draft.set("model.hidden_act", "gelu_new", "Megatron default: GELU fused with its bias, in the tanh form");
}

void take_rest(MegatronRun& run) {
  run.draft.set("model.tie_word_embeddings", yaml_bool(!run.args.on("untie-embeddings-and-output-weights")),
                run.origin_or("untie-embeddings-and-output-weights", "Megatron default"));
  take_norm(run);
  take_positions(run);
  take_activation(run);
  run.draft.set("model.add_bias_linear", yaml_bool(!run.args.on("disable-bias-linear")),
                run.origin_or("disable-bias-linear", "Megatron default"));
  tell_differences(run);
}

// A mixture of experts is named by its family, which the scenario's reader refuses.
void take_expert_widths(MegatronRun& run) {
  run.experts = run.degree("num-experts", 0);
  if (run.experts == 0) return;
  run.draft.set("model.model_type", run.args.on("multi-latent-attention") ? "deepseek_v3" : "mixtral",
                run.args.origin("num-experts"));
  run.draft.ignore("--num-experts", Reason::kNotSupported, "mixtures of experts", run.args.where("num-experts"));
}

}  // namespace

void translate_megatron_model(MegatronRun& run) {
  if (const auto pad = run.args.positive("make-vocab-size-divisible-by")) {
    run.draft.set("model.vocab_pad_to", *pad, run.args.origin("make-vocab-size-divisible-by"));
  }
  if (run.draft.take_requested_model()) {
    bool stated = false;
    for (const std::string_view flag : kShape) stated = run.args.find(flag) != nullptr || stated;
    if (stated)
      run.draft.contradict("--model " + run.draft.request().model + " holds; the shape in the arguments is not read");
    if (const auto model = run.draft.architecture()) {
      run.layers = model->layers;
      run.hidden = model->hidden;
      run.heads = model->heads;
      run.groups = model->kv_heads;
    }
    return;
  }
  run.layers = required(run, "num-layers");
  run.hidden = required(run, "hidden-size");
  const bool gated = run.args.on("swiglu") || run.args.on("gated-linear-unit");
  take_expert_widths(run);
  run.draft.set("model.num_hidden_layers", run.layers, run.args.origin("num-layers"));
  run.draft.set("model.hidden_size", run.hidden, run.args.origin("hidden-size"));
  feed_forward(run, gated);
  take_heads(run);
  take_vocabulary(run);
  take_rest(run);
}

}  // namespace stepcast::imports
