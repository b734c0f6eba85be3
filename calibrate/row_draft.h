// A scenario in the making, shared by the files that each fill a part of it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "calibrate/published_stack.h"
#include "calibrate/row_scenario.h"

namespace stepcast::calibrate {

class RowDraft {
 public:
  RowDraft(const PublishedRow& published, const StackPreset& preset) : row(published), stack(preset) {}

  const PublishedRow& row;
  const StackPreset& stack;

  void set(std::string field, std::string value) {
    scenario_.settings.push_back({std::move(field), std::move(value), "row " + row.id});
  }
  void set(std::string field, std::int64_t value) { set(std::move(field), std::to_string(value)); }
  void set(std::string field, bool value) = delete;  // say "true" or "false"
  void set(std::string field, const char* value) { set(std::move(field), std::string(value)); }
  void assume(std::string text) { scenario_.assumptions.push_back(std::move(text)); }
  // The first reason counts.
  void skip(std::string reason) {
    if (scenario_.skipped.empty()) scenario_.skipped = std::move(reason);
  }
  RowScenario finish() {
    if (!scenario_.skipped.empty()) scenario_.settings.clear();
    return std::move(scenario_);
  }

  // The framework it is simulated as: the stack's own, or one that has what the row needs.
  std::string framework;
  // ZeRO stage, once sharding is read.
  int zero = 0;
  std::int64_t replicas() const { return row.dp * row.cp; }
  bool is_nvidia() const { return stack.stack == Stack::kNvidia; }

 private:
  RowScenario scenario_;
};

void take_model(RowDraft& draft);  // after take_sharding
void take_cluster(RowDraft& draft);
void take_sharding(RowDraft& draft);
void take_framework(RowDraft& draft);  // after take_sharding
void take_precision(RowDraft& draft);
void take_plan(RowDraft& draft);
void take_recompute(RowDraft& draft);

}  // namespace stepcast::calibrate
