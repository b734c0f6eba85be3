#include "tests/bench/large_scenario.h"

#include <string>

#include "base/check.h"
#include "plan/scenario_reader.h"

namespace stepcast::bench {

plan::Scenario large_scenario(std::int64_t gpus) {
  config::ScenarioSource source;
  source.file = std::string(STEPCAST_SOURCE_DIR) + "/scenarios/runs/llama-3.1-405b-h100x16384.yaml";
  plan::Scenario s = plan::read_scenario(source).scenario;
  const std::int64_t dp = s.plan.dp * gpus / s.gpus;
  CHECK(dp * s.gpus == s.plan.dp * gpus, gpus, s.gpus);
  s.training.global_batch_size = s.training.global_batch_size / s.plan.dp * dp;
  s.cluster.nodes = static_cast<std::int32_t>(gpus / s.cluster.node.devices);
  s.plan.dp = static_cast<std::int32_t>(dp);
  s.gpus = gpus;
  return s;
}

}  // namespace stepcast::bench
