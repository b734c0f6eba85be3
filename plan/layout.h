// Which decoder layers each virtual pipeline stage holds. The embedding is on the first stage, the final norm, head and
// loss on the last.
//
// Three ways to say it: auto; Megatron-Core's layout string, such as "Et*3|(tt|)*29,L" (E embedding, t decoder layer, L
// loss, m multi-token prediction, "|" ends a stage, commas are cosmetic, x*n and (xyz)*n repeat); a list of layer
// counts. Source of the grammar: Megatron-LM, --pipeline-model-parallel-layout.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/scenario.h"

namespace stepcast::plan {

// Decoder layers of each virtual stage in model order; or what is wrong, and what would work.
struct LayoutResult {
  std::vector<std::int64_t> layers;
  std::string problem;  // empty: good
  std::vector<std::string> help;
  ErrorKind kind = ErrorKind::kInput;

  bool ok() const { return problem.empty(); }
};

// Even when `layers` divides by `stages`; else with embedding and loss counted as a layer each, so that the first and
// the last stage hold one layer fewer; else a problem that lists choices. layers >= 1, pp >= 1, vp >= 1, pp * vp <
// 2^31. pipeline_ranks is gpus / tp: a pp among the choices divides it; 0 where it is not known.
LayoutResult auto_layout(std::int64_t layers, std::int64_t pp, std::int64_t vp, std::int64_t pipeline_ranks = 0);

// From a layout string: any number of stages.
LayoutResult parse_layout(std::string_view text);

// From a list of layer counts, as text.
LayoutResult list_layout(const std::vector<std::string>& counts);

// The stages that these counts make.
std::vector<Plan::StageItems> stage_items(const std::vector<std::int64_t>& layers);

// "E+7 | 14 x14 | 7+L", for people.
std::string layout_text(const std::vector<Plan::StageItems>& layout);

}  // namespace stepcast::plan
