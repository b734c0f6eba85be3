// A cluster in one line of the field's words.
#pragma once

#include <string>

#include "plan/scenario.h"

namespace stepcast::report {

// "2,048 x hgx-h100, 8 x H100-SXM-80GB at 450 GB/s scale-up, 8 x 400 Gb/s RoCE, fat tree, units of 2 nodes, pods of
// 384, core 7:1, e-ecmp"; devices that the scenario leaves idle and perturbed ones at the end.
std::string cluster_text(const plan::Scenario& scenario);

// "e-ecmp with 16 queue pairs", "adaptive".
std::string routing_text(const topology::FabricSpec& fabric);

// A tier of the network table, with the oversubscription of the links it stands for: "core 7:1".
std::string tier_text(const std::string& tier, const topology::FabricSpec& fabric);

}  // namespace stepcast::report
