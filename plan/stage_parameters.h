// Which parameters one pipeline rank holds, how each is split over tp, and how they are laid out in flat buffers:
// gradient buckets under DP, ZeRO-1 and ZeRO-2, units under ZeRO-3.
//
// A flat buffer is the thing that is reduced, scattered, gathered and updated at once. Parameters replicated over tp
// (norms, biases behind the reduction of a row-parallel projection, learned positions) never share a flat with split
// ones when tp > 1: their gradients need another reduction and count 1/tp in the norm. Norms of queries and keys are
// replicated, but each tp rank has the gradients of its own heads: they are summed over tp even without sequence
// parallelism, where those of the others are equal on all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/shapes.h"
#include "program/builder.h"

namespace stepcast::plan {

enum class ModuleKind : std::uint8_t { kEmbedding, kAttention, kMlp, kHead };

// A part of a stage whose backward pass completes at once.
struct Module {
  ModuleKind kind = ModuleKind::kEmbedding;
  std::uint16_t chunk = 0;
  std::int64_t layer = 0;  // global; attention and MLP only
  std::uint32_t unit = 0;  // index into StageParameters::units
};

// What ZeRO-3 gathers at once: embedding, one decoder layer, or final norm with head.
struct Unit {
  std::uint16_t chunk = 0;
  std::optional<std::uint32_t> layer;  // global; none for embedding and head
  std::string prefix;                  // of its calls' labels: "embed_", "head_" or nothing
  std::vector<std::uint32_t> modules;  // forward order
  std::vector<std::uint32_t> flats;    // ZeRO-3 only
};

struct LocalParameter {
  program::ParameterId id;
  std::uint32_t module = 0;
  program::Shape shape;  // local
  std::vector<program::ShardBlock> blocks;
  bool replicated = false;    // over tp
  bool of_own_heads = false;  // replicated, with a gradient of the rank's own heads
  bool second_copy = false;   // of a table tied across stages
  std::uint32_t flat = 0;
  std::int64_t offset = 0;  // elements from the start of its flat
};

struct Flat {
  std::int64_t elements = 0;      // padded to a multiple of `parts`
  std::int64_t chunk = 0;         // elements / parts
  std::int64_t begin = 0;         // in elements from the start of all flats
  std::uint32_t last_module = 0;  // its gradients are complete once this module's backward is
  std::optional<std::uint32_t> unit;
  bool replicated = false;  // over tp
  bool of_own_heads = false;
  bool tied = false;        // gradients are summed with the other copy's
  double norm_scale = 1.0;  // 1 / holders of each element outside the group that sums the norm
};

// Positions of the named parameters in StageParameters::parameters, per module.
struct ModuleParameters {
  std::optional<std::uint32_t> norm, in,
      out;  // attention: norm wqkv wo; MLP: norm gate_up (or up) down; head: norm head;
            // embedding: in = table. With a table tied on one stage, head.in is it too.
  std::optional<std::uint32_t> norm_bias, in_bias, out_bias;  // where the shape has them
  std::optional<std::uint32_t> positions;                     // embedding
  std::optional<std::uint32_t> q_norm, k_norm;                // attention
};

struct StageParameters {
  std::vector<Module> modules;  // forward order: chunks ascending
  std::vector<ModuleParameters> of_module;
  std::vector<Unit> units;  // forward order
  std::vector<LocalParameter> parameters;
  std::vector<Flat> flats;                               // in order of completion
  std::vector<std::uint32_t> completion;                 // modules in the order their last backward completes
  std::vector<std::vector<std::uint32_t>> completed_by;  // flats whose last module it is, by module
  std::int64_t elements = 0;                             // of all flats
  std::int64_t shard_elements = 0;                       // sum of chunks
};

// What is spread over the shard group.
enum class Sharding : std::uint8_t { kNone, kOptimizer, kGradients, kParameters };  // ZeRO 0 to 3
Sharding sharding_of(const Scenario& s);

StageParameters lay_out_parameters(program::ProgramBuilder& b, const Roles& roles, const Shapes& x, const Scenario& s,
                                   std::int32_t pp_rank);

}  // namespace stepcast::plan
