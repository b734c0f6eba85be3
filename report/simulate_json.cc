// SimulationReport as JSON; the keys are the command line's contract.
#include <cmath>

#include "plan/rules.h"
#include "report/json.h"
#include "report/resolved_plan.h"
#include "report/simulate_output.h"

namespace stepcast::report {
namespace {

Json convention_json(const PerConvention& value) { return {{"full", value.full}, {"causal", value.causal}}; }

Json overlap_json(const plan::Plan& p) {
  Json json = {{"grad_reduce", p.overlap_grad_reduce},
               {"param_gather", p.overlap_param_gather},
               {"tp_input_grad", p.overlap_tp_input_grad},
               {"tp_comm", p.overlap_tp_comm}};
  if (!p.overlap_tp_comm) return json;
  for (std::size_t i = 0; i < plan::kOverlappedMatmuls; ++i) {
    const auto matmul = static_cast<plan::OverlappedMatmul>(i);
    const plan::UserBuffer& buffer = p.user_buffers.of(matmul);
    json["tp_comm_cfg"][std::string(to_string(matmul))] = {{"method", to_string(buffer.method)},
                                                           {"num_sm", buffer.multiprocessors},
                                                           {"set_sm_margin", buffer.margin},
                                                           {"num_splits", buffer.splits}};
  }
  return json;
}

Json plan_json(const plan::Scenario& s) {
  const plan::Plan& p = s.plan;
  Json layout = Json::array();
  for (const plan::Plan::StageItems& items : p.layout) {
    layout.push_back({{"embedding", items.embedding}, {"layers", items.layers}, {"loss", items.loss}});
  }
  Json json = {{"framework", to_string(s.framework)},
               {"tp", p.tp},
               {"cp", p.cp},
               {"pp", p.pp},
               {"vp", p.vp},
               {"dp", p.dp},
               {"sequence_parallel", p.sequence_parallel},
               {"zero", p.zero},
               {"micro_batch_size", p.micro_batch_size},
               {"schedule", to_string(p.schedule)},
               {"microbatch_group", p.microbatch_group},
               {"layout", layout},
               {"recompute", recompute_text(p.recompute)},
               {"overlap", overlap_json(p)},
               {"bucket_elements", p.bucket_elements},
               {"rank_order", p.rank_order}};
  if (p.cp > 1) json["cp_comm_type"] = to_string(p.cp_comm);
  if (p.hybrid()) json["dp_replicate"] = p.dp_replicate;
  if (s.training.recipe != plan::MatmulRecipe::kNone) {
    json["precision"] = {{"compute", precision_of(s)},
                         {"recipe", to_string(s.training.recipe)},
                         {"first_last_layers_bf16", s.training.first_last_layers_bf16}};
  }
  if (p.zero == 3) {
    json["fsdp"] = {{"prefetch", p.fsdp.prefetch},
                    {"reshard_after_forward", p.fsdp.reshard_after_forward},
                    {"gradient_sync", to_string(p.fsdp.gradient_sync)}};
  }
  return json;
}

Json exposed_json(const TimeShares& time) {
  Json json = Json::object();
  for (std::size_t k = 0; k < time.exposed_s.size(); ++k) {
    json[std::string(to_string(static_cast<sim::Exposed>(k)))] = time.exposed_s[k];
  }
  return json;
}

Json time_json(const TimeShares& time) {
  return {{"compute", time.compute_s}, {"optimizer", time.optimizer_s}, {"host", time.host_s},
          {"bubble", time.bubble_s},   {"exposed", exposed_json(time)}, {"slowed", time.slowed_s}};
}

Json stages_json(const SimulationReport& r) {
  Json stages = Json::array();
  for (const StageReport& stage : r.stages) {
    stages.push_back({{"stage", stage.stage},
                      {"layers", stage.layers},
                      {"ranks", stage.ranks},
                      {"compute_s", stage.time.compute_s},
                      {"compute_min_s", stage.compute_min_s},
                      {"compute_max_s", stage.compute_max_s},
                      {"optimizer_s", stage.time.optimizer_s},
                      {"host_s", stage.time.host_s},
                      {"bubble_s", stage.time.bubble_s},
                      {"exposed_s", exposed_json(stage.time)},
                      {"slowed_s", stage.time.slowed_s}});
  }
  return stages;
}

Json memory_json(const SimulationReport& r) {
  Json stages = Json::array();
  for (const StageReport& stage : r.stages) {
    Json row = {{"stage", stage.stage}};
    row.update(class_bytes_json(stage.at_peak));
    row["allocated_bytes"] = stage.allocated_bytes;
    stages.push_back(row);
  }
  return {{"allocated_bytes", r.memory.allocated_bytes},
          {"reserved_bytes", r.memory.reserved_bytes},
          {"device_bytes", r.memory.device_bytes},
          {"device_parts",
           {{"fragmentation_bytes", r.memory.reserved_bytes - r.memory.allocated_bytes},
            {"context_bytes", r.memory.context_bytes},
            {"workspace_bytes", r.memory.workspace_bytes},
            {"user_buffer_bytes", r.memory.user_buffer_bytes},
            {"communicator_bytes", r.memory.communicator_bytes}}},
          {"capacity_bytes", r.memory.capacity_bytes},
          {"verdict", to_string(r.memory.verdict)},
          {"peak_at", {{"stage", r.memory.peak_stage}, {"call", r.memory.peak_path}}},
          {"stages", stages}};
}

Json network_json(const SimulationReport& r) {
  Json tiers = Json::array();
  for (const TierReport& tier : r.network) {
    Json carries = Json::array();
    for (const auto& [group, bytes] : tier.carries) carries.push_back({{"group", group}, {"bytes", bytes}});
    tiers.push_back({{"tier", tier.tier},
                     {"bytes", tier.bytes},
                     {"mean_utilisation", tier.mean_utilisation},
                     {"peak_utilisation", tier.peak_utilisation},
                     {"links", tier.links},
                     {"carries", carries}});
  }
  return tiers;
}

// A whole number where it is one.
Json count_json(double count) {
  if (count == std::floor(count) && count < 0x1p53) return static_cast<std::int64_t>(count);
  return count;
}

Json collectives_json(const SimulationReport& r) {
  Json collectives = Json::array();
  for (const CollectiveReport& c : r.collectives) {
    collectives.push_back({{"group", c.group},
                           {"op", c.op},
                           {"bytes", c.bytes},
                           {"count", count_json(c.count)},
                           {"algorithm", c.algorithm},
                           {"protocol", c.protocol},
                           {"busbw_gb_per_s", c.busbw_gb_per_s},
                           {"exposed_s", c.exposed_s}});
  }
  return collectives;
}

Json if_free_json(const SimulationReport& r) {
  Json kinds = Json::object();
  for (const IfFree& free : r.if_free) kinds[std::string(to_string(free.kind))] = free.step_time_s;
  return kinds;
}

Json remedies_json(const SimulationReport& r) {
  Json remedies = Json::array();
  for (const Remedy& remedy : r.remedies) {
    remedies.push_back({{"setting", remedy.setting},
                        {"device_bytes", remedy.device_bytes},
                        {"step_time_s", remedy.step_time_s},
                        {"verdict", to_string(remedy.verdict)},
                        {"warnings", remedy.warnings}});
  }
  return remedies;
}

Json jitter_json(const JitterReport& j) {
  return {{"samples", j.jitter.samples},
          {"seed", j.jitter.seed},
          {"compute_sigma", j.jitter.compute_sigma},
          {"comm_sigma", j.jitter.comm_sigma},
          {"p50_s", j.p50_s},
          {"p90_s", j.p90_s},
          {"p99_s", j.p99_s},
          {"mean_s", j.mean_s},
          {"min_s", j.min_s},
          {"max_s", j.max_s}};
}

Json job_json(const JobReport& j) {
  const auto number = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  return {{"tokens", j.tokens},
          {"steps", j.steps},
          {"days", j.days},
          {"gpu_hours", j.gpu_hours},
          {"price_dollars_per_gpu_hour", number(j.price)},
          {"cost_dollars", number(j.cost_dollars)},
          {"pue", j.pue},
          {"energy_mwh_at_power_limit", number(j.energy_mwh)}};
}

Json sensitivity_json(const SimulationReport& r) {
  Json changes = Json::array();
  for (const Sensitivity& s : r.sensitivity) {
    changes.push_back({{"change", s.change},
                       {"what", s.what},
                       {"step_time_s", s.step_time_s},
                       {"relative_change", s.step_time_s / r.step_time_s - 1},
                       {"verdict", to_string(s.verdict)}});
  }
  return changes;
}

Json tensors_json(const std::vector<TensorFamily>& families) {
  Json tensors = Json::array();
  for (const TensorFamily& t : families) {
    tensors.push_back(
        {{"name", t.name}, {"class", program::to_string(t.memory_class)}, {"count", t.count}, {"bytes", t.bytes}});
  }
  return tensors;
}

Json evidence_json(const SimulationReport& r) {
  Json evidence = {{"basis", "uncalibrated"}, {"nearest_published", nullptr}};
  if (!r.nearest_published) return evidence;
  const PublishedRun& run = *r.nearest_published;
  evidence["nearest_published"] = {{"id", run.id},
                                   {"model", run.model},
                                   {"gpu", run.gpu},
                                   {"gpus", run.gpus},
                                   {"plan", {{"tp", run.tp}, {"cp", run.cp}, {"pp", run.pp}, {"dp", run.dp}}},
                                   {"precision", run.precision},
                                   {"global_batch_size", run.global_batch_size},
                                   {"sequence_length", run.sequence_length},
                                   {"step_time_s", run.step_time_s},
                                   {"source", run.source}};
  return evidence;
}

}  // namespace

std::string simulate_json(const SimulationReport& r) {
  Json json = {{"schema", "stepcast/simulate/1"},
               {"scenario", r.scenario.name},
               {"gpus", r.scenario.gpus},
               {"plan", plan_json(r.scenario)},
               {"parameters", r.parameters},
               {"active_parameters", r.parameters},
               {"step_time_s", r.step_time_s},
               {"band", {{"low_s", nullptr}, {"high_s", nullptr}, {"basis", "uncalibrated"}}},
               {"tokens_per_s", r.tokens_per_s},
               {"tokens_per_s_per_gpu", r.tokens_per_s_per_gpu},
               {"model_tflops_per_gpu", convention_json(r.model_tflops_per_gpu)},
               {"hardware_tflops_per_gpu", r.hardware_tflops_per_gpu},
               {"mfu", convention_json(r.mfu)},
               {"hfu", r.hfu},
               {"peak_tflops", r.peak_tflops},
               {"bubble_fraction", r.bubble_fraction},
               {"time_s", time_json(r.time)},
               {"stages", stages_json(r)},
               {"memory", memory_json(r)},
               {"network", network_json(r)},
               {"collectives", collectives_json(r)},
               {"microbatches", r.microbatches},
               {"top_tensors", tensors_json(r.memory.top_tensors)},
               {"other_gradients", tensors_json(r.memory.other_gradients)},
               {"if_free_s", if_free_json(r)},
               {"remedies", remedies_json(r)},
               {"evidence", evidence_json(r)},
               {"warnings", r.warnings},
               {"assumptions", r.assumptions},
               {"not_modelled", r.not_modelled},
               {"calibration",
                {{"name", r.calibration.name}, {"constants", r.calibration.constants}, {"stack", r.calibration.stack}}},
               {"ranks", r.ranks},
               {"rank_classes", r.rank_classes},
               {"link_classes", r.link_classes},
               {"events", r.events},
               {"fingerprint", hex(r.fingerprint)}};
  if (r.jitter) json["jitter"] = jitter_json(*r.jitter);
  if (!r.sensitivity.empty()) json["sensitivity"] = sensitivity_json(r);
  if (r.job) json["job"] = job_json(*r.job);
  return to_text(json);
}

}  // namespace stepcast::report
