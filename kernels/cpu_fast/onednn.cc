// oneDNN of version 2 (Debian 12, Ubuntu 22.04) and 3 (later ones). Scratch memory is the cache's own, so that
// primitives of several streams run at once.
#include "kernels/cpu_fast/onednn.h"

#include <cstddef>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

#include "base/check.h"

namespace stepcast::kernels::cpu_fast {
namespace {

using dnnl::memory;

memory::data_type type_of(Element element) {
  return element == Element::kF32 ? memory::data_type::f32 : memory::data_type::bf16;
}

memory::desc matrix(std::int64_t rows, std::int64_t columns, bool transposed, Element element) {
  const memory::dims strides = transposed ? memory::dims{1, rows} : memory::dims{columns, 1};
  return {{rows, columns}, type_of(element), strides};
}

// Version 2 describes an operation apart from its primitive, version 3 does not.
template <class Matmul, class... Operands>
typename Matmul::primitive_desc describe_as(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                                            const Operands&... operands) {
  const bool allow_empty = true;
  if constexpr (requires { typename Matmul::desc; }) {
    return {typename Matmul::desc(operands...), attributes, engine, allow_empty};
  } else {
    return {engine, operands..., attributes, allow_empty};
  }
}

// Empty where there is no implementation.
dnnl::matmul::primitive_desc describe(const MatmulShape& s, const dnnl::engine& engine) {
  const memory::desc a = matrix(s.rows, s.depth, s.a_transposed, s.source);
  const memory::desc b = matrix(s.depth, s.columns, s.b_transposed, s.source);
  const memory::desc c = matrix(s.rows, s.columns, false, s.result);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (s.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0F);
    attributes.set_post_ops(sum);
  }
  if (!s.bias) return describe_as<dnnl::matmul>(engine, attributes, a, b, c);
  return describe_as<dnnl::matmul>(engine, attributes, a, b, matrix(1, s.columns, false, s.source), c);
}

// A compiled matmul and its arguments, whose addresses change with every call.
struct Compiled {
  dnnl::matmul primitive;  // empty: not implemented
  std::unordered_map<int, memory> arguments;
  std::size_t scratch_bytes = 0;
};

Compiled compile(const MatmulShape& shape, const dnnl::engine& engine) {
  const dnnl::matmul::primitive_desc described = describe(shape, engine);
  if (!described) return {};
  Compiled result;
  result.primitive = dnnl::matmul(described);
  const auto add = [&](int argument, const memory::desc& what) {
    result.arguments.emplace(argument, memory(what, engine, DNNL_MEMORY_NONE));
  };
  add(DNNL_ARG_SRC, described.src_desc());
  add(DNNL_ARG_WEIGHTS, described.weights_desc());
  add(DNNL_ARG_DST, described.dst_desc());
  if (shape.bias) add(DNNL_ARG_BIAS, described.bias_desc());
  add(DNNL_ARG_SCRATCHPAD, described.scratchpad_desc());
  result.scratch_bytes = described.scratchpad_desc().get_size();
  return result;
}

// oneDNN takes what it reads as mutable memory too.
void* address(const void* data) { return const_cast<void*>(data); }

char letter(bool transposed) { return transposed ? 'T' : 'N'; }

}  // namespace

struct MatmulCache::State {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<MatmulShape, Compiled> compiled;
  std::vector<std::byte> scratch;
};

MatmulCache::MatmulCache() : state_(std::make_unique<State>()) {}
MatmulCache::~MatmulCache() = default;

bool MatmulCache::multiply(const MatmulShape& shape, const void* a, const void* b, const void* bias, void* c) {
  State& state = *state_;
  const auto found = state.compiled.find(shape);
  Compiled& compiled = found != state.compiled.end()
                           ? found->second
                           : state.compiled.emplace(shape, compile(shape, state.engine)).first->second;
  if (!compiled.primitive) return false;
  if (state.scratch.size() < compiled.scratch_bytes) state.scratch.resize(compiled.scratch_bytes);
  auto& arguments = compiled.arguments;
  arguments.at(DNNL_ARG_SRC).set_data_handle(address(a));
  arguments.at(DNNL_ARG_WEIGHTS).set_data_handle(address(b));
  arguments.at(DNNL_ARG_DST).set_data_handle(c);
  if (shape.bias) arguments.at(DNNL_ARG_BIAS).set_data_handle(address(bias));
  arguments.at(DNNL_ARG_SCRATCHPAD).set_data_handle(state.scratch.data());
  compiled.primitive.execute(state.stream, arguments);
  state.stream.wait();
  return true;
}

void multiply_blocks(const BlockProduct& p, Block<const float> a, Block<const float> b, Block<float> c) {
  const dnnl::status status = dnnl::sgemm(letter(p.a_transposed), letter(p.b_transposed), p.rows, p.columns, p.depth,
                                          p.alpha, a.data, a.stride, b.data, b.stride, p.beta, c.data, c.stride);
  CHECK(status == dnnl::status::success, static_cast<int>(status), p.rows, p.columns, p.depth);
}

std::string onednn_version() {
  const dnnl::version_t* version = dnnl::version();
  return std::to_string(version->major) + "." + std::to_string(version->minor) + "." + std::to_string(version->patch);
}

}  // namespace stepcast::kernels::cpu_fast
