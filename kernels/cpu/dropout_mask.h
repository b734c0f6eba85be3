// Which elements a dropout keeps: a function of (seed, layer, site, step) as a stream and of the global element as its
// index, whatever rank, microbatch or pass asks. A kept element is divided by the probability of being kept.
//
// The global element of a row of tokens is (sample, position, column); of a score (sample, head of the model, query,
// key). Samples are numbered as token_load numbers them. What is asked of each element is constexpr, so that device
// code can include it.
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

  constexpr bool active() const { return probability_ > 0; }
  constexpr double scale() const { return 1.0 / (1.0 - probability_); }
  // Sequence b of the microbatch, numbered over all ranks and microbatches of the step.
  constexpr std::uint64_t sample(std::int64_t b) const { return static_cast<std::uint64_t>(first_sample_ + b); }
  constexpr bool keeps(std::uint64_t element) const { return stream_.uniform_at(element) >= probability_; }

 private:
  double probability_;
  std::int64_t first_sample_;
  RandomStream stream_;
};

// Scores of one head of one sequence: element (i, j) is at first + i * sequence + j.
constexpr std::uint64_t first_score(std::uint64_t sample, std::int64_t heads, std::int64_t head,
                                    std::int64_t sequence) {
  const std::uint64_t matrix = sample * static_cast<std::uint64_t>(heads) + static_cast<std::uint64_t>(head);
  return matrix * static_cast<std::uint64_t>(sequence) * static_cast<std::uint64_t>(sequence);
}

// Global element of column 0 of a row of this rank's `rows` rows of tokens.
class TokenElements {
 public:
  TokenElements(const KernelContext& context, const DropoutMask& mask, std::int64_t rows, std::int64_t width)
      : mask_(mask),
        batch_(attributes(context).batch),
        first_row_(context.index * rows),
        sequence_(rows * context.index_count / batch_),
        width_(width) {}

  constexpr std::uint64_t of_row(std::int64_t row) const {
    const std::int64_t r = first_row_ + row;
    const std::uint64_t position = static_cast<std::uint64_t>(r / batch_);
    return (mask_.sample(r % batch_) * static_cast<std::uint64_t>(sequence_) + position) *
           static_cast<std::uint64_t>(width_);
  }

 private:
  DropoutMask mask_;
  std::int64_t batch_;
  std::int64_t first_row_;
  std::int64_t sequence_;
  std::int64_t width_;
};

// Global element of column 0 of a row of scores [batch * heads, s, s]: matrix n is the own head n % heads of sequence
// n / heads.
class ScoreElements {
 public:
  ScoreElements(const KernelContext& context, const DropoutMask& mask, std::int64_t sequence)
      : mask_(mask),
        heads_(attributes(context).heads),
        model_heads_(heads_ * context.index_count),
        first_head_(heads_ * context.index),
        sequence_(sequence) {
    CHECK(heads_ > 0, heads_);
  }

  constexpr std::uint64_t of_row(std::int64_t row) const {
    const std::int64_t matrix = row / sequence_;
    return first_score(mask_.sample(matrix / heads_), model_heads_, first_head_ + matrix % heads_, sequence_) +
           static_cast<std::uint64_t>(row % sequence_ * sequence_);
  }

 private:
  DropoutMask mask_;
  std::int64_t heads_;
  std::int64_t model_heads_;
  std::int64_t first_head_;
  std::int64_t sequence_;
};

}  // namespace stepcast::kernels::cpu
