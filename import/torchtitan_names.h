// What torchtitan calls things: models and their flavours, schedules, and options that are known but not translated.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "import/arguments.h"

namespace stepcast::imports {

struct TorchtitanFlavor {
  std::string_view model;
  std::string_view flavor;
  std::string_view preset;
};
inline constexpr std::array kTorchtitanFlavors = std::to_array<TorchtitanFlavor>({
    {"llama3", "8B", "llama-3.1-8b"},
    {"llama3", "70B", "llama-3.1-70b"},
    {"llama3", "405B", "llama-3.1-405b"},
    {"llama2", "7B", "llama-2-7b"},
    {"llama2", "13B", "llama-2-13b"},
    {"llama2", "70B", "llama-2-70b"},
});

struct TorchtitanSchedule {
  std::string_view torch;
  std::string_view schedule;
  std::int64_t stages;  // of a rank
};
inline constexpr std::array kTorchtitanSchedules =
    std::to_array<TorchtitanSchedule>({{"1F1B", "1f1b", 1},
                                       {"GPipe", "gpipe", 1},
                                       {"Interleaved1F1B", "interleaved_1f1b", 2},
                                       {"LoopedBFS", "looped_bfs", 2},
                                       {"InterleavedZeroBubble", "interleaved_zb", 2},
                                       {"ZBVZeroBubble", "zb_v", 2},
                                       {"DualPipeV", "dualpipe_v", 2}});

inline constexpr std::array kTorchtitanNames = std::to_array<KnownName>({
    {"training.enable-cpu-offload", Reason::kNotSupported, "parameters in host memory", true},
    {"training.dataset", Reason::kNoInfluence, ""},
    {"training.dataset-path", Reason::kNoInfluence, ""},
    {"training.max-norm", Reason::kNoInfluence, ""},
    {"training.steps", Reason::kNoInfluence, ""},
    {"training.gc-freq", Reason::kNoInfluence, ""},
    {"training.gc-debug", Reason::kNoInfluence, ""},
    {"training.seed", Reason::kNoInfluence, ""},
    {"training.deterministic", Reason::kNoInfluence, ""},
    {"training.debug-moe-force-load-balance", Reason::kNoInfluence, ""},
    {"training.warmup-steps", Reason::kNoInfluence, ""},
    {"training.enable-loss-parallel", Reason::kNoInfluence, ""},
    {"training.data-parallel-type", Reason::kNoInfluence, ""},
    {"training.moe-force-load-balance", Reason::kNoInfluence, ""},
    {"parallelism.pipeline-parallel-split-points", Reason::kNotSupported, "stages cut at stated layers", true},
    {"parallelism.pipeline-parallel-schedule-csv", Reason::kNotSupported, "a schedule from a file", true},
    {"parallelism.pipeline-parallel-first-stage-less-layers", Reason::kNotSupported, "shorter first stages"},
    {"parallelism.pipeline-parallel-last-stage-less-layers", Reason::kNotSupported, "shorter last stages"},
    {"parallelism.disable-loss-parallel", Reason::kNotSupported, "a loss that is not split over tp"},
    {"parallelism.context-parallel-rotate-method", Reason::kNoInfluence, ""},
    {"parallelism.enable-compiled-autograd", Reason::kNoInfluence, ""},
    {"parallelism.module-fqns-per-model-part", Reason::kNotSupported, "stages cut at stated modules", true},
    {"parallelism.spmd-backend", Reason::kNoInfluence, ""},
    {"activation-checkpoint.memory-budget", Reason::kNotSupported, "a memory budget"},
    {"activation-checkpoint.", Reason::kNoInfluence, ""},
    {"compile.", Reason::kNoInfluence, ""},
    {"float8.", Reason::kNotSupported, "details of float8"},
    {"quantize.", Reason::kNotSupported, "details of quantisation"},
    {"mx.", Reason::kNotSupported, "details of quantisation"},
    {"optimizer.early-step-in-backward", Reason::kNotSupported, "an optimizer step inside the backward pass", true},
    {"optimizer.", Reason::kNoInfluence, ""},
    {"job.", Reason::kNoInfluence, ""},
    {"model.hf-assets-path", Reason::kNoInfluence, ""},
    {"model.tokenizer-path", Reason::kNoInfluence, ""},
    {"model.norm-type", Reason::kNoInfluence, ""},
    {"model.use-flex-attn", Reason::kNoInfluence, ""},
    {"model.attn-mask-type", Reason::kNoInfluence, ""},
    {"model.print-after-conversion", Reason::kNoInfluence, ""},
    {"model.custom-import", Reason::kNoInfluence, ""},
    {"profiling.", Reason::kNoInfluence, ""},
    {"metrics.", Reason::kNoInfluence, ""},
    {"lr-scheduler.", Reason::kNoInfluence, ""},
    {"checkpoint.", Reason::kNoInfluence, ""},
    {"comm.", Reason::kNoInfluence, ""},
    {"validation.", Reason::kNoInfluence, ""},
    {"memory-estimation.", Reason::kNoInfluence, ""},
    {"experimental.", Reason::kNoInfluence, ""},
    {"fault-tolerance.", Reason::kNoInfluence, ""},
    {"debug.", Reason::kNoInfluence, ""},
});

}  // namespace stepcast::imports
