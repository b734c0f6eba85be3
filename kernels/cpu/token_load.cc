// Synthetic training data (kernels/tokens.h).
//
// Sample g = (index * microbatches + count) * batch + b for sequence b of this microbatch on data-parallel rank
// `index`. Its token at position p is RandomStream(seed, "tokens").integer_at(g * 2^20 + p, vocab), for p in [0,
// sequence]; the target of position p is the token at p + 1.
#include "kernels/cpu/access.h"
#include "kernels/cpu/reference.h"
#include "kernels/tokens.h"

namespace stepcast::kernels::cpu {
void token_load(const KernelContext& context) {
  const auto tokens = rows<std::int32_t>(context, 0);
  const auto targets = rows<std::int32_t>(context, 1);
  const program::Attributes& a = attributes(context);
  CHECK(a.batch > 0 && a.vocab > 0 && a.count >= 0 && a.count < a.microbatches, a.batch, a.vocab, a.count,
        a.microbatches);
  CHECK(tokens.size() == targets.size() && tokens.size() % a.batch == 0, tokens.size(), targets.size(), a.batch);
  const std::int64_t sequence = tokens.size() / a.batch;
  CHECK(sequence < kMaxSequence, sequence);

  const RandomStream stream(context.seed, "tokens");
  const std::int64_t first_sample = (context.index * a.microbatches + a.count) * a.batch;
  for (std::int64_t b = 0; b < a.batch; ++b) {
    for (std::int64_t p = 0; p < sequence; ++p) {
      tokens.data[p * a.batch + b] = token_at(stream, first_sample + b, p, a.vocab);
      targets.data[p * a.batch + b] = token_at(stream, first_sample + b, p + 1, a.vocab);
    }
  }
}

}  // namespace stepcast::kernels::cpu
