// A resolved plan in one line of the field's words. Its layout's text is plan/layout's.
#pragma once

#include <string>

#include "plan/scenario.h"

namespace stepcast::report {

// "TP2+SP PP2 VP1 DP2  1f1b  zero-1  MBS 1 x 64 microbatches  GBS 128 x 8,192 = 1.05 Mtok  recompute none".
std::string plan_text(const plan::Scenario& scenario);

// "none", "full", "selective[layernorm,mlp_act]".
std::string recompute_text(const plan::Recompute& recompute);

}  // namespace stepcast::report
