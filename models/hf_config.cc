// The JSON side of parse_hf_config: a parser that remembers the line of every top-level key, and typed access to keys.
//
// The JSON library reports lines for syntax errors only, so the input iterator counts newlines while the parser reads.
#include "models/hf_config.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"

namespace stepcast::models {
namespace {

using Json = nlohmann::json;

// Reads characters and keeps the number of the line reached in a counter that outlives the parser's copies of it.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, int* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    if (*at_ == '\n') ++*line_;
    ++at_;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  int* line_;
};

struct Key {
  std::string name;
  int line = 0;
  int first_line = 0;  // of the first key of this name; `line` itself is later when the key is repeated
  bool repeated = false;
};

struct Document {
  Json root;
  std::vector<Key> keys;  // of the root object, in file order, repeated ones included
};

// Plain ASCII of bounded length, whatever the file holds.
std::string printable(const Json& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  constexpr std::size_t kLongest = 60;
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

std::string printable_key(const std::string& key) {
  const std::string quoted = printable(Json(key));
  return quoted.size() >= 2 && quoted.back() == '"' ? quoted.substr(1, quoted.size() - 2) : quoted;
}

[[noreturn]] void throw_syntax_error(std::string_view text, const std::string& file, const Json::parse_error& e) {
  const std::size_t at = std::min(e.byte == 0 ? 0 : e.byte - 1, text.size());
  const std::string_view before = text.substr(0, at);
  const Location where{file, static_cast<int>(1 + std::count(before.begin(), before.end(), '\n')), ""};
  const std::string_view rest = text.substr(at);
  for (const std::string_view token : {"NaN", "Infinity"}) {
    if (rest.substr(0, token.size()) == token) {
      throw Error(ErrorKind::kInput, std::string(token) + " is not JSON", where, {"write a finite number"});
    }
  }
  // The library's message ends in the bytes last read, which may be anything: only its fixed part is passed on.
  std::string message = e.what();
  const std::size_t start = message.find("syntax error ");
  if (start != std::string::npos) message = message.substr(start);
  throw Error(ErrorKind::kInput, "not valid JSON: " + message.substr(0, message.find("; last read")), where);
}

Document parse_document(std::string_view text, const std::string& file) {
  Document document;
  int line = 1;
  std::map<std::string, int> first_lines;
  const auto remember_keys = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key && depth == 1) {
      const auto [first, added] = first_lines.emplace(parsed.get<std::string>(), line);
      document.keys.push_back({first->first, line, first->second, !added});
    }
    return true;
  };
  const char* const begin = text.data();
  try {
    document.root =
        Json::parse(CountingIterator(begin, &line), CountingIterator(begin + text.size(), &line), remember_keys);
  } catch (const Json::parse_error& e) {
    throw_syntax_error(text, file, e);
  } catch (const Json::exception&) {
    // What remains is a number beyond the range of double.
    throw Error(ErrorKind::kInput, "a number is out of range", {file, line, ""});
  }
  if (!document.root.is_object()) {
    throw Error(ErrorKind::kInput, "expected an object of keys, found " + printable(document.root), {file, 1, ""});
  }
  return document;
}

// Typed access to the keys of the root object. A key that is absent or null gives nullopt; an ill-typed one also adds a
// problem. Whatever was asked for counts as used.
class Fields {
 public:
  Fields(const Document& document, const std::string& file, ProblemList& problems)
      : document_(document), file_(file), problems_(problems) {}

  Location where(const std::string& key) const {
    const auto found =
        std::find_if(document_.keys.begin(), document_.keys.end(), [&](const Key& k) { return k.name == key; });
    return {file_, found == document_.keys.end() ? 0 : found->line, key};
  }

  bool has(const std::string& key) const {
    const auto found = document_.root.find(key);
    return found != document_.root.end() && !found->is_null();
  }

  const Json* find(const std::string& key) {
    used_.push_back(key);
    return has(key) ? &document_.root.at(key) : nullptr;
  }

  std::optional<std::int64_t> integer(const std::string& key) {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number_integer()) return ill_typed(key, "a whole number", *value);
    constexpr auto kTop = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (value->is_number_unsigned() && value->get<std::uint64_t>() > kTop)
      return ill_typed(key, "at most 2^31", *value);
    return value->get<std::int64_t>();
  }

  // A required integer; 0 when it is absent or ill-typed, after saying so.
  std::int64_t required(const std::string& key) {
    const std::optional<std::int64_t> value = integer(key);
    if (!has(key)) {
      problems_.add(ErrorKind::kInput, "missing key", where(key), {"every Llama config.json states it"});
    }
    return value.value_or(0);
  }

  std::optional<double> number(const std::string& key) {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) return ill_typed(key, "a number", *value);
    return value->get<double>();
  }

  bool boolean(const std::string& key, bool otherwise) {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) ill_typed(key, "true or false", *value);
    return value->is_boolean() ? value->get<bool>() : otherwise;
  }

  std::optional<std::string> text(const std::string& key) {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) return ill_typed(key, "a string", *value);
    return value->get<std::string>();
  }

  void report_repeated_keys() const {
    for (const Key& key : document_.keys) {
      if (!key.repeated) continue;
      problems_.add(ErrorKind::kInput, "key given twice, first on line " + std::to_string(key.first_line),
                    {file_, key.line, printable_key(key.name)});
    }
  }

  std::vector<std::string> unused() const {
    std::vector<std::string> names;
    for (const Key& key : document_.keys) {
      const bool used = std::find(used_.begin(), used_.end(), key.name) != used_.end();
      if (!used) names.push_back(printable_key(key.name));
    }
    return names;
  }

 private:
  std::nullopt_t ill_typed(const std::string& key, const std::string& expected, const Json& value) const {
    problems_.add(ErrorKind::kInput, "expected " + expected + ", found " + printable(value), where(key));
    return std::nullopt;
  }

  const Document& document_;
  const std::string& file_;
  ProblemList& problems_;
  std::vector<std::string> used_;
};

// What stands before .json in the last part of the path; the part before that for a file called config.json.
std::string model_name(std::string_view file) {
  const auto last_part = [](std::string_view path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
  };
  std::string_view name = last_part(file);
  std::string_view folder = file.substr(0, file.size() - name.size());
  if (!folder.empty()) folder = last_part(folder.substr(0, folder.size() - 1));
  name = name.substr(0, name.rfind(".json"));
  return std::string(name == "config" && !folder.empty() ? folder : name);
}

// Other model types mean other layers, so nothing else of the file is judged.
void require_llama(Fields& fields, const ProblemList& problems) {
  const std::optional<std::string> type = fields.text("model_type");
  problems.throw_if_any();
  if (!type) {
    throw Error(ErrorKind::kInput, "missing key", fields.where("model_type"), {"supported: \"model_type\": \"llama\""});
  }
  if (*type != "llama") {
    throw Error(ErrorKind::kUnsupported, "model type " + printable(Json(*type)), fields.where("model_type"),
                {"supported: llama (the Llama 2 and 3 families)"});
  }
}

void refuse_variants(Fields& fields, ProblemList& problems) {
  for (const char* const key : {"attention_bias", "mlp_bias"}) {
    if (!fields.boolean(key, false)) continue;
    problems.add(ErrorKind::kUnsupported, "projections with biases", fields.where(key), {"supported: false"});
  }
  // A window changes the attention's work, dropout its memory. Both keys stand unused (null, 0) in most files.
  if (fields.integer("sliding_window") && fields.boolean("use_sliding_window", true)) {
    problems.add(ErrorKind::kUnsupported, "sliding-window attention", fields.where("sliding_window"),
                 {"supported: null, or use_sliding_window: false"});
  }
  if (fields.number("attention_dropout").value_or(0) > 0) {
    problems.add(ErrorKind::kUnsupported, "dropout", fields.where("attention_dropout"), {"supported: 0"});
  }
  const std::string activation = fields.text("hidden_act").value_or("silu");
  if (activation != "silu" && activation != "swish") {
    problems.add(ErrorKind::kUnsupported, "activation " + printable(Json(activation)), fields.where("hidden_act"),
                 {"supported: silu"});
  }
}

// transformers 5 moves rope_theta into an object rope_parameters; the top-level key wins where both stand.
double read_rope_theta(Fields& fields, ProblemList& problems) {
  constexpr double kDefault = 10000.0;
  const std::optional<double> theta = fields.number("rope_theta");
  if (theta) return *theta;
  const Json* parameters = fields.find("rope_parameters");
  if (parameters == nullptr || !parameters->is_object()) return kDefault;
  const auto inner = parameters->find("rope_theta");
  if (inner == parameters->end() || inner->is_null()) return kDefault;
  if (inner->is_number()) return inner->get<double>();
  problems.add(ErrorKind::kInput, "expected a number in rope_theta, found " + printable(*inner),
               fields.where("rope_parameters"));
  return kDefault;
}

std::int64_t derived_head_dim(const Architecture& a, const Fields& fields, ProblemList& problems) {
  if (a.heads < 1 || a.hidden < 1) return 0;  // reported as sizes out of range
  if (a.hidden % a.heads != 0) {
    problems.add(
        ErrorKind::kInput,
        "hidden_size " + std::to_string(a.hidden) + " does not divide by " + std::to_string(a.heads) + " heads",
        fields.where("num_attention_heads"), {"state head_dim, or change one of the two"});
    return 0;
  }
  return a.hidden / a.heads;
}

Architecture read_shape(Fields& fields, ProblemList& problems) {
  Architecture a;
  a.layers = fields.required("num_hidden_layers");
  a.hidden = fields.required("hidden_size");
  a.ffn = fields.required("intermediate_size");
  a.heads = fields.required("num_attention_heads");
  a.kv_heads = fields.integer("num_key_value_heads").value_or(a.heads);
  a.vocab = fields.required("vocab_size");
  a.padded_vocab = a.vocab;
  const std::optional<std::int64_t> head_dim = fields.integer("head_dim");
  a.head_dim = head_dim ? *head_dim : derived_head_dim(a, fields, problems);
  // The remaining defaults are those of LlamaConfig.
  a.max_positions = fields.integer("max_position_embeddings").value_or(2048);
  a.norm_eps = fields.number("rms_norm_eps").value_or(1e-6);
  a.rope_theta = read_rope_theta(fields, problems);
  a.tied_embeddings = fields.boolean("tie_word_embeddings", false);
  return a;
}

// Shape problems, but for fields that already have one (a missing size would be reported again as zero) and for values
// derived from such fields.
void judge_shape(const Architecture& a, const Fields& fields, ProblemList& problems) {
  const std::vector<Problem> known = problems.problems();
  for (const ShapeProblem& shape : problems_of(a)) {
    const bool repeated =
        std::any_of(known.begin(), known.end(), [&](const Problem& p) { return p.where.field == shape.field; });
    const bool derived =
        (shape.field == "num_key_value_heads" || shape.field == "head_dim") && !fields.has(shape.field);
    if (repeated || (derived && !known.empty())) continue;
    std::vector<std::string> help;
    if (!shape.help.empty()) help.push_back(shape.help);
    problems.add(ErrorKind::kInput, shape.message, fields.where(shape.field), help);
  }
}

}  // namespace

Architecture parse_hf_config(std::string_view text, const std::string& file_name, std::vector<std::string>* ignored) {
  const Document document = parse_document(text, file_name);
  ProblemList problems;
  Fields fields(document, file_name, problems);
  require_llama(fields, problems);
  fields.report_repeated_keys();
  refuse_variants(fields, problems);
  Architecture a = read_shape(fields, problems);
  judge_shape(a, fields, problems);
  problems.throw_if_any();
  a.name = model_name(file_name);
  if (ignored != nullptr) *ignored = fields.unused();
  return a;
}

}  // namespace stepcast::models
