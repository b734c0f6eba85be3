// Megatron-LM arguments as a scenario. Source of names, defaults and rules: megatron/training/arguments.py,
// TransformerConfig and ModelParallelConfig at d98e8a64 (2026-08-22).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "import/arguments.h"
#include "import/draft.h"
#include "import/launch.h"

namespace stepcast::imports {

// What the parts of the translation share; 0 where the source does not say.
struct MegatronRun {
  ArgumentTable& args;
  Draft& draft;
  std::int64_t world = 0;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t groups = 0;  // key-value heads
  std::int64_t experts = 0;
  std::int64_t sequence = 0;
  std::int64_t tp = 1;
  std::int64_t cp = 1;
  std::int64_t pp = 1;
  std::int64_t vp = 1;
  std::int64_t ep = 1;
  std::int64_t etp = 1;
  std::int64_t micro_batch = 1;
  std::int64_t global_batch = 0;

  std::int64_t dp() const {
    const std::int64_t ranks = tp * cp * pp;
    return ranks > 0 && world % ranks == 0 ? world / ranks : 0;
  }
  // The value under `name`, with its default.
  std::int64_t degree(std::string_view name, std::int64_t otherwise) const {
    return args.integer(name).value_or(otherwise);
  }
  // The same for what counts from 1.
  std::int64_t count(std::string_view name, std::int64_t otherwise) const {
    return args.positive(name).value_or(otherwise);
  }
  std::string origin_or(std::string_view name, std::string otherwise) const {
    std::string origin = args.origin(name);
    return origin.empty() ? std::move(otherwise) : origin;
  }
};

// Puts the arguments into the draft: values, remarks, problems. `devices` are what the launcher starts; `upstream` says
// that Megatron-LM's own program reads the arguments, not a fork's.
void translate_megatron(ArgumentTable& args, Draft& draft, StatedDevices devices, bool upstream = false);

// The parts, in this order.
void translate_megatron_model(MegatronRun& run);
void translate_megatron_training(MegatronRun& run);
void translate_megatron_plan(MegatronRun& run);
void translate_megatron_offload(MegatronRun& run);
// The number of layers of each virtual stage: Megatron's default is an even split and nothing else. Uses and sets vp.
void translate_megatron_layout(MegatronRun& run);
// What Megatron-LM itself refuses, in its flags' names.
void judge_megatron(MegatronRun& run);

// Flags that Megatron-LM's parser would stop at, before anything is made of the others. True when there are any.
bool refuse_unknown_flags(const ArgumentTable& args, Draft& draft, bool upstream);
// What becomes of those no part asked for: refused (they change what is computed, stored or sent), or told.
void sort_out_rest(MegatronRun& run);

// Configuration fields under their flags' names: add_bias_linear: false is --disable-bias-linear.
std::vector<Argument> as_megatron_flags(std::vector<Argument> arguments);

}  // namespace stepcast::imports
