// Rotary position embedding; formulas and their source: cpu/rotary.cc. The angles of a share's positions are computed
// once and kept in the stream's state: they cost more than the turning. Results are the reference's to the bit.
#include <cmath>

#include "kernels/cpu/reference.h"
#include "kernels/cpu_fast/fast_kernels.h"
#include "kernels/cpu_fast/float_rows.h"
#include "kernels/cpu_fast/parallel.h"

namespace stepcast::kernels::cpu_fast {
namespace {

using cpu::rows;

RotaryTable table_of(const RotaryKey& key) {
  const std::int64_t half = key.turned / 2;
  const Share share{key.index, key.members, key.positions};
  std::vector<double> frequency;
  for (std::int64_t i = 0; i < half; ++i) {
    frequency.push_back(std::pow(key.theta, -2.0 * static_cast<double>(i) / static_cast<double>(key.turned)));
  }
  RotaryTable table;
  table.cosine.resize(static_cast<std::size_t>(key.positions * half));
  table.sine.resize(table.cosine.size());
  parallel_for(key.positions, least_rows(16 * half), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      for (std::int64_t i = 0; i < half; ++i) {
        const double angle = static_cast<double>(share.position(p)) * frequency[static_cast<std::size_t>(i)];
        table.cosine[static_cast<std::size_t>(p * half + i)] = static_cast<float>(std::cos(angle));
        table.sine[static_cast<std::size_t>(p * half + i)] = static_cast<float>(std::sin(angle));
      }
    }
  });
  return table;
}

const RotaryTable& kept_table(FastState& state, const RotaryKey& key) {
  const auto found = state.rotary_tables().find(key);
  if (found != state.rotary_tables().end()) return found->second;
  return state.rotary_tables().emplace(key, table_of(key)).first->second;
}

// `direction` is +1 forward and -1 backward.
[[STEPCAST_VECTORISED]] void turn_head(const float* in, const float* cosine, const float* sine, float direction,
                                       std::int64_t half, float* out) {
#pragma GCC ivdep  // in place where heads are f32: a pair depends on itself alone
  for (std::int64_t i = 0; i < half; ++i) {
    const float x = in[i];
    const float y = in[i + half];
    const float s = direction * sine[i];
    out[i] = x * cosine[i] - y * s;
    out[i + half] = y * cosine[i] + x * s;
  }
}

template <class S>
void turn(const KernelContext& context, float direction) {
  const auto qkv = rows<S>(context, 0);
  const program::Attributes& a = cpu::attributes(context);
  CHECK(a.batch > 0 && a.head_dim > 0 && a.head_dim % 2 == 0 && a.value > 0, a.batch, a.head_dim, a.value);
  CHECK(qkv.width == std::int64_t{a.heads + 2 * a.kv_heads} * a.head_dim, qkv.width, a.heads, a.kv_heads, a.head_dim);
  const std::int64_t turned = a.count > 0 ? a.count : a.head_dim;
  CHECK(turned % 2 == 0 && turned <= a.head_dim, turned, a.head_dim);
  const std::int64_t half = turned / 2;
  const RotaryTable& table =
      kept_table(state_of(context), {a.value, turned, context.index, context.index_count, qkv.count / a.batch});
  parallel_for(qkv.count, least_rows(qkv.width), [&](std::int64_t begin, std::int64_t end) {
    FloatInput<S> ins(turned);
    FloatOutput<S> outs(turned);
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t first = t / a.batch * half;
      for (std::int64_t h = 0; h < a.heads + a.kv_heads; ++h) {
        S* head = qkv[t] + h * a.head_dim;
        turn_head(ins.of(head, turned), table.cosine.data() + first, table.sine.data() + first, direction, half,
                  outs.begin(head));
        outs.store(head, turned);
      }
    }
  });
}

}  // namespace

void rotary_forward(const KernelContext& context) {
  fast_or_reference(context, cpu::dtype(context, 0), cpu::rotary_forward, [&]<class S>() { turn<S>(context, 1.0F); });
}

void rotary_backward(const KernelContext& context) {
  fast_or_reference(context, cpu::dtype(context, 0), cpu::rotary_backward, [&]<class S>() { turn<S>(context, -1.0F); });
}

}  // namespace stepcast::kernels::cpu_fast
