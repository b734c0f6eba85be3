// Rotary position embedding (Su et al. 2021, arXiv:2104.09864, eq. 15) in the rotate-half convention of the Llama
// checkpoints in Hugging Face format: elements i and i + head_dim/2 of a head form a pair, turned by
// position * theta^(-2i / head_dim). Where only the first n elements of a head are turned, n stands for head_dim in
// both (GPT-NeoX, transformers' partial_rotary_factor). Backward turns the gradient by the opposite angle.
//
// q and k heads of a qkv row [q heads | k heads | v heads] are turned in place; row t is at position t / batch of the
// own share of the sequence.
#include <vector>

#include "kernels/cpu/access.h"
#include "kernels/cpu/reference.h"
#include "kernels/rotary.h"
#include "kernels/share.h"

namespace stepcast::kernels::cpu {
namespace {

template <class S>
void turn_head(S* head, const std::vector<Turn<Accumulate<S>>>& turns) {
  const auto half = static_cast<std::int64_t>(turns.size());
  for (std::int64_t i = 0; i < half; ++i) {
    const auto turned =
        turned_pair<Accumulate<S>>({widen(head[i]), widen(head[i + half])}, turns[static_cast<std::size_t>(i)]);
    head[i] = narrow<S>(turned.x);
    head[i + half] = narrow<S>(turned.y);
  }
}

// `direction` is +1 forward and -1 backward.
template <class S>
void turn(const KernelContext& context, double direction) {
  using A = Accumulate<S>;
  const auto qkv = rows<S>(context, 0);
  const program::Attributes& a = attributes(context);
  CHECK(a.batch > 0 && a.head_dim > 0 && a.head_dim % 2 == 0 && a.value > 0, a.batch, a.head_dim, a.value);
  CHECK(qkv.width == std::int64_t{a.heads + 2 * a.kv_heads} * a.head_dim, qkv.width, a.heads, a.kv_heads, a.head_dim);
  const std::int64_t turned = a.count > 0 ? a.count : a.head_dim;
  CHECK(turned % 2 == 0 && turned <= a.head_dim, turned, a.head_dim);
  const std::int64_t half = turned / 2;
  const Share share{context.index, context.index_count, qkv.count / a.batch};
  std::vector<Turn<A>> turns(static_cast<std::size_t>(half));
  for (std::int64_t t = 0; t < qkv.count; ++t) {
    if (t % a.batch == 0) {
      for (std::int64_t i = 0; i < half; ++i) {
        turns[static_cast<std::size_t>(i)] =
            rotary_turn<A>(direction, share.position(t / a.batch), rotary_frequency(a.value, i, turned));
      }
    }
    for (std::int64_t h = 0; h < a.heads + a.kv_heads; ++h) turn_head(qkv[t] + h * a.head_dim, turns);
  }
}

}  // namespace

void rotary_forward(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { turn<S>(context, 1.0); });
}

void rotary_backward(const KernelContext& context) {
  for_storage(dtype(context, 0), [&]<class S>() { turn<S>(context, -1.0); });
}

}  // namespace stepcast::kernels::cpu
