// The state of one reading, shared by the parts of the scenario reader: what was given and where, what has been
// resolved so far, and what went wrong.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/bind.h"
#include "config/document.h"
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
  bool cluster_is_whole = false;           // a preset or file lies under the scenario's own keys
  std::vector<Location> perturbations_at;  // of each item of `perturb`
  const config::Node* tree = nullptr;      // what `message` was bound from

  // Where a field was given, an item of a list or a map too; for one that was not, the scenario's file.
  Location locate(std::string_view field) const;
  bool given(std::string_view field) const;
  // Adds to read.values: with the place it was given at, or with `otherwise` when it was not.
  void record(std::string field, std::string value, std::string otherwise);
  void refuse(std::string_view field, std::string text, std::vector<std::string> help = {},
              ErrorKind kind = ErrorKind::kInput);
  // A rule the plan breaks: listed by `check`, and no error of reading.
  void violate(std::string_view field, std::string text, std::vector<std::string> help = {},
               ErrorKind kind = ErrorKind::kInput);
};

// As a value is written: true, false.
inline std::string bool_text(bool value) { return value ? "true" : "false"; }

// What the model is trained as: config file, overrides or the inline struct (scenario_model.cc). Padding comes later.
void resolve_model(ScenarioDraft& draft);
// Lays the cluster's keys over those of its base, before the tree is bound; then what they come to
// (scenario_cluster.cc).
void lay_cluster(ScenarioDraft& draft, config::Node& root);
void resolve_cluster(ScenarioDraft& draft);
// Precision, optimizer, batch, seeds (scenario_training.cc); needs nothing else.
void resolve_training(ScenarioDraft& draft);
// Its number formats (scenario_precision.cc).
void resolve_precision(ScenarioDraft& draft);
// gpus, degrees, schedule, sharding, padded vocabulary (scenario_plan.cc); needs model, cluster and training.
// Layouts and degrees that do not work out become violations.
void resolve_plan(ScenarioDraft& draft);
// dp_shard and dp_replicate, once zero, dp and cp are resolved (scenario_sharding.cc).
void resolve_shard_groups(ScenarioDraft& draft);
// tp_comm_cfg, once tp_comm is resolved (scenario_user_buffers.cc).
void resolve_user_buffers(ScenarioDraft& draft);
// Its parts: layout and vp, which need the degrees (scenario_layout.cc); recompute (scenario_recompute.cc).
void resolve_layout(ScenarioDraft& draft);
void resolve_recompute(ScenarioDraft& draft);
// The nodes of the job and the device of each rank (scenario_placement.cc); needs gpus and the cluster.
void resolve_placement(ScenarioDraft& draft);
// Whether what joins the nodes adds up: cables, and NICs that are down; needs the nodes of the job and the
// perturbations (scenario_cluster.cc).
void judge_network(ScenarioDraft& draft);
// Environment variables and jitter (scenario_stack.cc); needs nothing else.
void resolve_stack(ScenarioDraft& draft);
// What the whole job trains on and costs (scenario_job.cc); needs nothing else.
void resolve_job(ScenarioDraft& draft);
// What each perturbation names, judged by itself; then as overrides of the cluster's devices, which needs a scenario
// without violations (scenario_perturb.cc).
void judge_perturbations(ScenarioDraft& draft);
void apply_perturbations(ScenarioDraft& draft);

}  // namespace stepcast::plan
