// The work of a layer of Llama 3.1 8B (hidden 4096, 32 heads and 8 key-value heads of 128, MLP 14336, vocabulary
// 128256) on 4096 tokens of one sequence, and a shard of 2^26 parameters of the optimizer.
#include "tests/device/timings.h"

#include <iomanip>
#include <sstream>

#include "base/error.h"
#include "program/ops/rules.h"

namespace stepcast::device_check {
namespace {

using kernels::FastCase;
using kernels::FastOperand;
using program::Attributes;
using program::DType;
using program::OpKind;
using enum kernels::Use;
using enum kernels::Content;

constexpr int kRepeats = 10;

// Extents over `divisor`.
struct Layer {
  std::int64_t tokens, hidden, mlp, vocabulary, parameters;
  std::int32_t heads, kv_heads, head_dim = 128;
  std::int64_t qkv() const { return std::int64_t{heads + 2 * kv_heads} * head_dim; }
  std::int64_t context() const { return std::int64_t{heads} * head_dim; }
};

Layer layer_of(std::int64_t divisor) {
  Layer layer{4096 / divisor,
              4096 / divisor,
              14336 / divisor,
              128256 / divisor,
              (std::int64_t{1} << 26) / (divisor * divisor),
              static_cast<std::int32_t>(32 / divisor),
              static_cast<std::int32_t>(8 / divisor)};
  layer.heads = std::max(layer.heads, 1);
  layer.kv_heads = std::max(layer.kv_heads, 1);
  return layer;
}

FastCase matmul_case(const char* name, program::MatmulForm form, const std::vector<FastOperand>& operands) {
  FastCase c{name, OpKind::kMatmul, {}, operands};
  c.attributes.form = form;
  return c;
}

std::vector<FastCase> matmul_work(const Layer& l) {
  using enum program::MatmulForm;
  const FastOperand x{kRead, kStorage, {l.tokens, l.hidden}};
  const FastOperand y{kRead, kStorage, {l.tokens, l.mlp}};
  const FastOperand weight{kRead, kStorage, {l.mlp, l.hidden}};
  return {matmul_case("forward", kNT, {x, weight, {kWrite, kStorage, {l.tokens, l.mlp}}}),
          matmul_case("input gradient", kNN, {y, weight, {kWrite, kStorage, {l.tokens, l.hidden}}}),
          matmul_case("weight gradient", kTN, {y, x, {kWrite, kFloat, {l.mlp, l.hidden}}})};
}

std::vector<FastCase> attention_work(const Layer& l) {
  const Attributes heads = kernels::heads_of(l.heads, l.kv_heads, l.head_dim, 1);
  Attributes rotary = heads;
  rotary.value = 500000;
  const FastOperand qkv{kRead, kStorage, {l.tokens, l.qkv()}};
  const FastOperand out{kRead, kStorage, {l.tokens, l.context()}};
  const FastOperand lse{kRead, kPositive, {l.tokens, std::int64_t{l.heads}}};
  return {{"attention forward",
           OpKind::kAttentionForward,
           heads,
           {qkv, {kWrite, kStorage, {l.tokens, l.context()}}, {kWrite, kFloat, {l.tokens, std::int64_t{l.heads}}}}},
          {"attention backward",
           OpKind::kAttentionBackward,
           heads,
           {out, qkv, out, lse, {kWrite, kStorage, {l.tokens, l.qkv()}}}},
          {"rotary", OpKind::kRotaryForward, rotary, {{kInPlace, kStorage, {l.tokens, l.qkv()}}}}};
}

std::vector<FastCase> memory_work(const Layer& l) {
  const FastOperand x{kRead, kStorage, {l.tokens, l.hidden}};
  const FastOperand y{kWrite, kStorage, {l.tokens, l.hidden}};
  const FastOperand weight{kRead, kStorage, {l.hidden}};
  const FastOperand rstd{kRead, kPositive, {l.tokens}};
  const FastOperand pair{kRead, kStorage, {l.tokens, 2 * l.mlp}};
  const FastOperand wide{kRead, kStorage, {l.tokens, l.mlp}};
  const FastOperand logits{kRead, kStorage, {l.tokens, l.vocabulary}};
  const Attributes eps = kernels::with_value(1e-5);
  return {
      {"rms norm", OpKind::kRmsNormForward, eps, {x, weight, y, {kWrite, kFloat, {l.tokens}}}},
      {"rms norm input gradient", OpKind::kRmsNormBackwardInput, {}, {x, x, rstd, weight, y}},
      {"rms norm weight gradient", OpKind::kRmsNormBackwardWeight, {}, {x, x, rstd, {kInPlace, kFloat, {l.hidden}}}},
      {"swiglu", OpKind::kSwiGluForward, {}, {pair, {kWrite, kStorage, {l.tokens, l.mlp}}}},
      {"swiglu gradient", OpKind::kSwiGluBackward, {}, {wide, pair, {kWrite, kStorage, {l.tokens, 2 * l.mlp}}}},
      {"add", OpKind::kAdd, {}, {x, x, y}},
      {"cast", OpKind::kCast, {}, {x, {kWrite, kFloat, {l.tokens, l.hidden}}}},
      {"cross entropy max", OpKind::kCrossEntropyMax, {}, {logits, {kWrite, kFloat, {l.tokens}}}}};
}

std::vector<FastCase> optimizer_work(const Layer& l) {
  Attributes a;
  a.learning_rate = 1e-4;
  a.beta1 = 0.9;
  a.beta2 = 0.95;
  a.eps = 1e-8;
  const std::int64_t n = l.parameters;
  return {
      {"adam",
       OpKind::kAdam,
       a,
       {{kRead, kFloat, {n}},
        {kRead, kPositive, {1}},
        {kInPlace, kFloat, {n}},
        {kInPlace, kPositive, {n}},
        {kInPlace, kFloat, {n}},
        {kWrite, kStorage, {n}}}},
      {"sum of squares", OpKind::kSumSquares, kernels::with_value(1), {{kRead, kFloat, {n}}, {kInPlace, kFloat, {1}}}}};
}

// What the kernel moves and computes, as the simulator prices it.
program::Work work_of_case(const FastCase& c, DType storage) {
  program::Op op;
  op.kind = c.kind;
  op.attributes = c.attributes;
  std::vector<program::TensorType> types;
  for (const FastOperand& o : c.operands) {
    const auto access = o.use == kRead    ? program::Access::kRead
                        : o.use == kWrite ? program::Access::kWrite
                                          : program::Access::kAccumulate;
    op.operands.push_back({.access = access});
    const bool stored = o.content == kStorage || o.content == kPositiveStorage;
    types.push_back({o.content == kToken ? DType::kI32 : stored ? storage : DType::kF32, o.shape});
  }
  return work_of(op, types);
}

std::string row_of(const FastCase& c, DType storage, const program::Work& work, double seconds,
                   const Ceilings& ceilings, double& best_share) {
  const auto bytes = static_cast<double>(work.read.count + work.written.count);
  const double bandwidth = bytes / seconds;
  const double rate = work.flops.count / seconds;
  const double copy_share = bandwidth / ceilings.copy_bytes_per_s;
  const double matmul_share = rate / ceilings.matmul_flops_per_s;
  best_share = std::max(copy_share, matmul_share);
  std::ostringstream row;
  row << std::setprecision(4) << to_string(c.kind) << '\t' << c.name << '\t' << to_string(storage) << '\t' << bytes
      << '\t' << work.flops.count << '\t' << seconds << '\t' << bandwidth / 1e9 << '\t' << rate / 1e12 << '\t'
      << copy_share << '\t' << matmul_share << '\n';
  return row.str();
}

void time_case(Machine& machine, const FastCase& c, const Ceilings& ceilings, Outcome& outcome, std::string& table) {
  const DType storage = DType::kBf16;
  try {
    const double seconds = machine.seconds_of(c, storage, kRepeats);
    double share = 0;
    table += row_of(c, storage, work_of_case(c, storage), seconds, ceilings, share);
    if (seconds > 0 && share < 1.5) {
      ++outcome.passed;
    } else {
      outcome.failures.push_back(c.name + ": " + std::to_string(share) + " times a ceiling, in " +
                                 std::to_string(seconds) + " s");
    }
  } catch (const Error& error) {
    outcome.failures.push_back(c.name + ": " + error.problems().front().message);
  }
}

std::string ceilings_text(const Ceilings& ceilings) {
  std::ostringstream text;
  text << std::setprecision(4) << "copy " << ceilings.copy_bytes_per_s / 1e9 << " GB/s, bf16 matmul "
       << ceilings.matmul_flops_per_s / 1e12 << " TFLOP/s";
  return text.str();
}

}  // namespace

Outcome time_kernels(Machine& machine, const Budget& budget, std::string& table) {
  Outcome outcome{.section = "times"};
  const Ceilings ceilings = machine.measure_ceilings();
  outcome.notes.push_back("ceilings: " + ceilings_text(ceilings));
  table += "# " + machine.name() + "\n# ceilings: " + ceilings_text(ceilings) +
           "\n# op\twork\tstorage\tbytes\tflops\tseconds\tGB/s\tTFLOP/s\tof copy\tof matmul\n";
  const Layer layer = layer_of(machine.work_divisor());
  for (const auto& some : {matmul_work(layer), memory_work(layer), optimizer_work(layer), attention_work(layer)}) {
    for (const FastCase& c : some) {
      if (!machine.has_kernel(c.kind)) {
        outcome.skipped.push_back(c.name + ": no kernel");
      } else if (budget.is_over()) {
        outcome.skipped.push_back(c.name + ": out of time");
      } else {
        time_case(machine, c, ceilings, outcome, table);
      }
    }
  }
  return outcome;
}

}  // namespace stepcast::device_check
