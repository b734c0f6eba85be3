// Changes of hardware keep the Program and price it anew; changes of the plan go through everything again.
#include "cli/sensitivity.h"

#include <string>
#include <utility>

#include "base/parallel.h"
#include "cli/interrupt.h"
#include "cli/variants.h"
#include "sim/cost/analytic.h"

namespace stepcast::cli {
namespace {

constexpr double kFaster = 1.1;

// The same Program on other hardware.
struct Hardware {
  std::string change;
  std::string what;
  topology::Cluster cluster;
  sim::Calibration calibration;
};

// One setting on top of the source.
struct Replan {
  std::string change;
  config::Setting setting;
};

class HardwareChanges {
 public:
  HardwareChanges(const plan::Scenario& scenario, const sim::Calibration& calibration)
      : cluster_(scenario.cluster),
        calibration_(calibration),
        quantises_(scenario.training.recipe != plan::MatmulRecipe::kNone) {}

  std::vector<Hardware> take() {
    add_kernels();
    add_links();
    return std::move(list_);
  }

 private:
  Hardware& add(std::string change, std::string what) {
    list_.push_back({std::move(change), std::move(what), cluster_, calibration_});
    return list_.back();
  }

  void add_kernels() {
    Hardware& gemm = add("gemm +10 %", quantises_ ? "calibration matmul.bf16, .fp32, .fp8 and .fp8_block x 1.1"
                                                  : "calibration matmul.bf16 and matmul.fp32 x 1.1");
    gemm.calibration.matmul_bf16 *= kFaster;
    gemm.calibration.matmul_fp32 *= kFaster;
    for (std::optional<sim::MatmulRate>* rate : {&gemm.calibration.matmul_fp8, &gemm.calibration.matmul_fp8_block}) {
      if (*rate) (*rate)->efficiency *= kFaster;
    }
    Hardware& attention = add("attention +10 %", "calibration attention.forward and .backward efficiency x 1.1");
    attention.calibration.attention_forward.efficiency *= kFaster;
    attention.calibration.attention_backward.efficiency *= kFaster;
    add("HBM +10 %", "cluster.gpu.hbm_bandwidth x 1.1").cluster.node.device.memory_bandwidth.value *= kFaster;
    add("launch 0", "calibration host.launch and host.graph_launch = 0");
    list_.back().calibration.launch = Duration();
    list_.back().calibration.graph_launch = Duration();
  }

  void add_links() {
    const topology::FabricSpec& fabric = cluster_.fabric;
    if (cluster_.node.scale_up.domain > 1) {
      add("scale_up +10 %", "cluster.scale_up.bandwidth x 1.1").cluster.node.scale_up.bandwidth.value *= kFaster;
    }
    if (cluster_.nodes == 1 || cluster_.node.nic.rate.value == 0) return;
    add("NIC 2x", "cluster.nic.rate x 2").cluster.node.nic.rate.value *= 2;
    if (fabric.leaf_oversubscription > 1) {
      add("leaf 1:1", "cluster.fabric.oversubscription of leaves 1").cluster.fabric.leaf_oversubscription = 1;
    }
    if (fabric.spine_oversubscription > 1) {
      add("spine 1:1", "cluster.fabric.oversubscription of spines 1").cluster.fabric.spine_oversubscription = 1;
    }
  }

  const topology::Cluster& cluster_;
  const sim::Calibration& calibration_;
  bool quantises_ = false;
  std::vector<Hardware> list_;
};

std::vector<Replan> replans_of(const plan::Plan& plan) {
  std::vector<Replan> list;
  const auto add = [&list](const std::string& name, const std::string& field, std::int64_t value) {
    const std::string text = std::to_string(value);
    list.push_back({name + " " + text, config::parse_setting(field + "=" + text)});
  };
  if (plan.pp > 1 && plan.vp % 2 == 0) add("vp", "plan.vp", plan.vp / 2);
  if (plan.pp > 1) add("vp", "plan.vp", std::int64_t{plan.vp} * 2);
  if (plan.micro_batch_size % 2 == 0) add("mbs", "plan.micro_batch_size", plan.micro_batch_size / 2);
  add("mbs", "plan.micro_batch_size", plan.micro_batch_size * 2);
  return list;
}

}  // namespace

std::vector<report::Sensitivity> sensitivities(const Prepared& prepared, const config::ScenarioSource& source,
                                               const sim::Calibration& calibration,
                                               const report::SimulationReport& answer, bool contention) {
  const sim::SimOptions options{.contention = contention, .record_events = false};
  const plan::Scenario& scenario = prepared.scenario();
  const std::vector<Hardware> hardware = HardwareChanges(scenario, calibration).take();
  const std::vector<Replan> replans = replans_of(scenario.plan);
  std::vector<std::optional<report::Sensitivity>> found(hardware.size() + replans.size());
  CalibrationCache calibrations;
  parallel_for(found.size(), true, [&](std::size_t i) {
    throw_if_interrupted();
    if (i < hardware.size()) {
      const Hardware& h = hardware[i];
      const sim::AnalyticCostModel costs(h.cluster, h.calibration, scenario.environment);
      const Duration step = sim::Simulation(*prepared.program, costs, true).step(options);
      found[i] = {h.change, h.what, step.seconds(), answer.memory.verdict};
      return;
    }
    const Replan& replan = replans[i - hardware.size()];
    config::ScenarioSource changed = source;
    changed.settings.push_back(replan.setting);
    const VariantAnswer replanned = answer_variant(changed, calibrations, options);
    if (!replanned.report) return;
    found[i] = {replan.change, replan.setting.field + "=" + replan.setting.value, replanned.report->step_time_s,
                replanned.report->memory.verdict};
  });
  std::vector<report::Sensitivity> list;
  for (std::optional<report::Sensitivity>& entry : found) {
    if (entry) list.push_back(*std::move(entry));
  }
  return list;
}

}  // namespace stepcast::cli
