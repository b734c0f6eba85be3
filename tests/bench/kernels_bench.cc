// The fast CPU kernels on one thread: a matmul by oneDNN's own primitive in a bare loop, by the kernel, and by the
// executor as a rank's op; attention and row kernels beside the reference kernels. Items are FLOPs, or elements.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/cpu_fast/fast.h"
#include "tests/exec/tiny_program.h"
#include "tests/kernels/tensors.h"

namespace stepcast::bench {
namespace {

using kernels::Buffer;
using program::DType;
using program::MatmulForm;
using program::OpKind;

constexpr DType kTypes[] = {DType::kF32, DType::kBf16};

// A square product in the form of forward passes.
struct Product {
  explicit Product(const benchmark::State& state)
      : size(state.range(0)), dtype(kTypes[state.range(1)]), flops(2 * size * size * size) {}

  std::int64_t size;
  DType dtype;
  std::int64_t flops;
};

// As kernels/cpu_fast/onednn.cc has it, for both versions of oneDNN.
template <class Matmul, class... Operands>
typename Matmul::primitive_desc describe(const dnnl::engine& engine, const Operands&... operands) {
  if constexpr (requires { typename Matmul::desc; }) {
    return {typename Matmul::desc(operands...), engine};
  } else {
    return {engine, operands...};
  }
}

void bare_matmul(benchmark::State& state) {
  kernels::fast_state(1)->begin_thread();
  const Product p(state);
  using dnnl::memory;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto type = p.dtype == DType::kF32 ? memory::data_type::f32 : memory::data_type::bf16;
  const memory::dims dims{p.size, p.size};
  const memory::desc plain(dims, type, memory::dims{p.size, 1});
  const memory::desc transposed(dims, type, memory::dims{1, p.size});
  const dnnl::matmul primitive(describe<dnnl::matmul>(engine, plain, transposed, plain));
  Buffer a = kernels::random_buffer(p.dtype, {p.size, p.size}, "a");
  Buffer b = kernels::random_buffer(p.dtype, {p.size, p.size}, "b");
  Buffer c(p.dtype, {p.size, p.size});
  const std::unordered_map<int, memory> arguments = {{DNNL_ARG_SRC, memory(plain, engine, a.tensor().data)},
                                                     {DNNL_ARG_WEIGHTS, memory(transposed, engine, b.tensor().data)},
                                                     {DNNL_ARG_DST, memory(plain, engine, c.tensor().data)}};
  for (auto _ : state) {
    primitive.execute(stream, arguments);
    stream.wait();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * p.flops);
}

// Runs `kernel` on `operands` until the benchmark has seen enough.
void repeat(benchmark::State& state, OpKind kind, kernels::Kernel kernel, const program::Attributes& attributes,
            std::vector<Buffer> operands, std::int64_t items) {
  const std::unique_ptr<kernels::StreamState> own = kernels::fast_state(1);
  own->begin_thread();
  std::vector<kernels::Tensor> tensors;
  for (Buffer& operand : operands) tensors.push_back(operand.tensor());
  const kernels::KernelContext context{
      .operands = tensors, .attributes = &attributes, .kind = kind, .state = own.get()};
  for (auto _ : state) kernel(context);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * items);
}

void kernel_matmul(benchmark::State& state) {
  const Product p(state);
  program::Attributes attributes;
  attributes.form = MatmulForm::kNT;
  std::vector<Buffer> operands;
  operands.push_back(kernels::random_buffer(p.dtype, {p.size, p.size}, "a"));
  operands.push_back(kernels::random_buffer(p.dtype, {p.size, p.size}, "b"));
  operands.emplace_back(p.dtype, program::Shape{p.size, p.size});
  repeat(state, OpKind::kMatmul, kernels::fast_kernel(OpKind::kMatmul), attributes, std::move(operands), p.flops);
}

// 200 products a step, each an op of its own: the processor time of all threads, so issue and streams are included and
// other processes are not.
void executed_matmul(benchmark::State& state) {
  using program::Access;
  using program::Stream;
  constexpr int kOps = 200;
  const Product p(state);
  exec::tiny::World world(1);
  std::vector<program::ViewId> tensors;
  for (const char* name : {"a", "b", "c"}) {
    tensors.push_back(world.at(0).tensor(name, p.dtype, {p.size, p.size}, program::MemoryClass::kActivations, true));
    world.call(0, OpKind::kZeroFill, Stream::kCompute, {{tensors.back(), Access::kWrite}}, name);
  }
  for (int i = 0; i < kOps; ++i) {
    world.call(0, OpKind::kMatmul, Stream::kCompute, {{tensors[0]}, {tensors[1]}, {tensors[2], Access::kWrite}});
  }
  const auto checked = world.take();
  exec::ExecOptions options;
  options.kernel_of = &kernels::fast_kernel;
  options.stream_state = &kernels::fast_state;
  options.cores.threads = 1;
  exec::Executor executor(checked, options);
  executor.run_step();
  for (auto _ : state) executor.run_step();
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kOps * p.flops);
}

struct AttentionSize {
  std::int64_t sequence;
  std::int32_t heads = 8;
  std::int32_t kv_heads = 4;
  std::int32_t dim = 64;

  std::int64_t width() const { return std::int64_t{heads} * dim; }
  std::int64_t wide() const { return std::int64_t{heads + 2 * kv_heads} * dim; }
  // Of the two products under the causal mask.
  std::int64_t flops() const { return 2 * sequence * (sequence + 1) * width(); }
};

using KernelOf = kernels::Kernel (*)(OpKind);

void attention_forward(benchmark::State& state, KernelOf kernel_of) {
  const AttentionSize s{state.range(0)};
  const DType dtype = kTypes[state.range(1)];
  std::vector<Buffer> operands;
  operands.push_back(kernels::random_buffer(dtype, {s.sequence, s.wide()}, "qkv"));
  operands.emplace_back(dtype, program::Shape{s.sequence, s.width()});
  operands.emplace_back(DType::kF32, program::Shape{s.sequence, s.heads});
  const auto kind = OpKind::kAttentionForward;
  repeat(state, kind, kernel_of(kind), kernels::heads_of(s.heads, s.kv_heads, s.dim, 1), std::move(operands),
         s.flops());
}

// Gradients of made-up outputs: their values do not matter to the time.
void attention_backward(benchmark::State& state, KernelOf kernel_of) {
  const AttentionSize s{state.range(0)};
  const DType dtype = kTypes[state.range(1)];
  std::vector<Buffer> operands;
  operands.push_back(kernels::random_buffer(dtype, {s.sequence, s.width()}, "dout"));
  operands.push_back(kernels::random_buffer(dtype, {s.sequence, s.wide()}, "qkv"));
  operands.push_back(kernels::random_buffer(dtype, {s.sequence, s.width()}, "out"));
  operands.push_back(kernels::random_buffer(DType::kF32, {s.sequence, s.heads}, "lse"));
  operands.emplace_back(dtype, program::Shape{s.sequence, s.wide()});
  const auto kind = OpKind::kAttentionBackward;
  repeat(state, kind, kernel_of(kind), kernels::heads_of(s.heads, s.kv_heads, s.dim, 1), std::move(operands),
         5 * s.flops() / 2);
}

void swiglu(benchmark::State& state, KernelOf kernel_of) {
  const DType dtype = kTypes[state.range(1)];
  std::vector<Buffer> operands;
  operands.push_back(kernels::random_buffer(dtype, {state.range(0), 4096}, "gate_up"));
  operands.emplace_back(dtype, program::Shape{state.range(0), 2048});
  const auto kind = OpKind::kSwiGluForward;
  repeat(state, kind, kernel_of(kind), {}, std::move(operands), state.range(0) * 2048);
}

void rms_norm(benchmark::State& state, KernelOf kernel_of) {
  const DType dtype = kTypes[state.range(1)];
  std::vector<Buffer> operands;
  operands.push_back(kernels::random_buffer(dtype, {state.range(0), 2048}, "x"));
  operands.push_back(kernels::random_buffer(dtype, {2048}, "weight"));
  operands.emplace_back(dtype, program::Shape{state.range(0), 2048});
  operands.emplace_back(DType::kF32, program::Shape{state.range(0)});
  const auto kind = OpKind::kRmsNormForward;
  repeat(state, kind, kernel_of(kind), kernels::with_value(1e-5), std::move(operands), state.range(0) * 2048);
}

void matmul_sizes(benchmark::internal::Benchmark* b) {
  for (const std::int64_t dtype : {0, 1}) {
    for (const std::int64_t size : {64, 128, 256, 512, 1024}) b->Args({size, dtype});
  }
  b->ArgNames({"size", "bf16"})->Unit(benchmark::kMicrosecond);
}

void row_sizes(benchmark::internal::Benchmark* b) {
  b->Args({512, 0})->Args({512, 1})->ArgNames({"rows", "bf16"})->Unit(benchmark::kMicrosecond);
}

BENCHMARK(bare_matmul)->Apply(matmul_sizes);
BENCHMARK(kernel_matmul)->Apply(matmul_sizes);
BENCHMARK(executed_matmul)->Apply(matmul_sizes)->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(attention_forward, fast, kernels::fast_kernel)->Apply(row_sizes);
BENCHMARK_CAPTURE(attention_forward, reference, kernels::reference_kernel)->Apply(row_sizes);
BENCHMARK_CAPTURE(attention_backward, fast, kernels::fast_kernel)->Apply(row_sizes);
BENCHMARK_CAPTURE(attention_backward, reference, kernels::reference_kernel)->Apply(row_sizes);
BENCHMARK_CAPTURE(swiglu, fast, kernels::fast_kernel)->Apply(row_sizes);
BENCHMARK_CAPTURE(swiglu, reference, kernels::reference_kernel)->Apply(row_sizes);
BENCHMARK_CAPTURE(rms_norm, fast, kernels::fast_kernel)->Apply(row_sizes);
BENCHMARK_CAPTURE(rms_norm, reference, kernels::reference_kernel)->Apply(row_sizes);

}  // namespace
}  // namespace stepcast::bench
