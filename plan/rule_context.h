// What the groups of rules share: the scenario, the row of its framework, and the report they add to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/frameworks.h"
#include "plan/rules.h"

namespace stepcast::plan {

class RuleContext {
 public:
  RuleContext(const Scenario& judged, const FieldLocator& locate);

  const Scenario& scenario;
  const Plan& plan;
  const FrameworkPreset& preset;

  // Both put the framework's name before the message.
  void violate(std::string_view field, const std::string& message, std::vector<std::string> help = {},
               ErrorKind kind = ErrorKind::kInput);
  void warn(const std::string& message);
  Location locate(std::string_view field) const { return locate_(field); }

  // Whether a job of that size has devices.
  bool admits(std::int64_t gpus) const;
  // Rules about the share of a data-parallel rank wait until there is one.
  bool dp_fits() const;
  // Microbatches of a data-parallel rank and step, where the batch divides.
  std::optional<std::int64_t> whole_microbatches() const;
  bool has_cp_comm(ContextComm comm) const;
  // ZeRO-3 with an embedding that is the head, too, on several replicas.
  bool shards_tied_embeddings() const;

  RuleReport take() { return std::move(report_); }

 private:
  const FieldLocator& locate_;
  RuleReport report_;
};

std::string text_of(std::int64_t value);
// The divisors of n up to `limit`, at most `count` of them. Listed because "does not divide" helps only with what does.
std::vector<std::int64_t> divisors(std::int64_t n, std::int64_t limit, std::size_t count = 12);
std::string list_of(const std::vector<std::int64_t>& values);
// Ranks that together hold every parameter once for each share of a sequence.
std::int64_t model_ranks_of(const Plan& plan);

// The groups, in the order of a report.
void check_rank_rules(RuleContext& c);       // degrees and devices (rules_ranks.cc)
void check_size_rules(RuleContext& c);       // bounds of sizes (rules_sizes.cc)
void check_tensor_rules(RuleContext& c);     // the model over tp (rules_ranks.cc)
void check_sequence_rules(RuleContext& c);   // context and sequence parallelism (rules_sequence.cc)
void check_pipeline_rules(RuleContext& c);   // batch, schedule, virtual stages (rules_pipeline.cc)
void check_precision_rules(RuleContext& c);  // 8- and 4-bit matmuls (rules_precision.cc)
void check_framework_rules(RuleContext& c);  // what its framework refuses (rules_frameworks.cc)

}  // namespace stepcast::plan
