// Which elements a dropout keeps: a function of (seed, layer, site, step) as a stream and of the global element as its
// index, whatever rank, microbatch or pass asks. A kept element is divided by the probability of being kept.
//
// The global element of a row of tokens is (sample, position, column); of a score (sample, head of the model, query,
// key). Samples are numbered as token_load numbers them.
#pragma once

#include <string>

#include "base/random.h"
#include "kernels/cpu/access.h"

namespace stepcast::kernels::cpu {

class DropoutMask {
 public:
  DropoutMask(const KernelContext& context, program::DropoutSite site)
      : probability_(attributes(context).value),
        first_sample_((context.sample_index * attributes(context).microbatches + context.microbatch) *
                      attributes(context).batch),
        stream_(context.seed, "dropout." + std::to_string(context.layer) + "." +
                                  std::to_string(static_cast<int>(site)) + "." + std::to_string(context.step)) {
    CHECK(probability_ >= 0 && probability_ < 1, probability_);
    CHECK(!active() || (attributes(context).microbatches > 0 && attributes(context).batch > 0), context.microbatch);
  }

  bool active() const { return probability_ > 0; }
  double scale() const { return 1.0 / (1.0 - probability_); }
  // Sequence b of the microbatch, numbered over all ranks and microbatches of the step.
  std::uint64_t sample(std::int64_t b) const { return static_cast<std::uint64_t>(first_sample_ + b); }
  bool keeps(std::uint64_t element) const { return stream_.uniform_at(element) >= probability_; }

 private:
  double probability_;
  std::int64_t first_sample_;
  RandomStream stream_;
};

// Scores of one head of one sequence: element (i, j) is at first + i * sequence + j.
inline std::uint64_t first_score(std::uint64_t sample, std::int64_t heads, std::int64_t head, std::int64_t sequence) {
  const std::uint64_t matrix = sample * static_cast<std::uint64_t>(heads) + static_cast<std::uint64_t>(head);
  return matrix * static_cast<std::uint64_t>(sequence) * static_cast<std::uint64_t>(sequence);
}

}  // namespace stepcast::kernels::cpu
