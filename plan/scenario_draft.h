// The state of one reading, shared by the parts of the scenario reader: what was given and where, what has been
// resolved so far, and what went wrong.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/bind.h"
#include "config/search.h"
#include "config/source.h"
#include "plan/scenario.pb.h"
#include "plan/scenario_reader.h"

namespace stepcast::plan {

struct ScenarioDraft {
  const config::ScenarioSource& source;
  schema::Scenario message;
  std::vector<config::BoundValue> bound;
  ProblemList problems;
  ReadScenario read;

  // Where a field was given; for one that was not, the scenario's file.
  Location locate(std::string_view field) const;
  bool given(std::string_view field) const;
  // Adds to read.values: with the place it was given at, or with `otherwise` when it was not.
  void record(std::string field, std::string value, std::string otherwise);
  void refuse(std::string_view field, std::string text, std::vector<std::string> help = {},
              ErrorKind kind = ErrorKind::kInput);
};

// What the model is trained as: config file, overrides or the inline struct (scenario_model.cc). Padding comes later.
void resolve_model(ScenarioDraft& draft);
// The cluster by name, path or base (scenario_cluster.cc).
void resolve_cluster(ScenarioDraft& draft);
// Precision, optimizer, batch, seeds (scenario_training.cc); needs nothing else.
void resolve_training(ScenarioDraft& draft);
// gpus, degrees, schedule, layout, recompute, padded vocabulary (scenario_plan.cc); needs model, cluster and training.
// Layouts and degrees that do not work out become violations.
void resolve_plan(ScenarioDraft& draft);

}  // namespace stepcast::plan
