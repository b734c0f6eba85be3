// Rules of 8- and 4-bit matmuls: what the device's tensor cores read, what its framework has, what sizes they take.
//
// Sources: Transformer Engine (check_fp8_support, check_mxfp8_support, check_fp8_block_scaling_support and
// check_nvfp4_support in transformer_engine/pytorch/quantization.py; assert_dim_for_fp8_exec in utils.py);
// Megatron-LM's TransformerConfig.__post_init__.
#include <algorithm>
#include <array>

#include "config/text.h"
#include "plan/rule_context.h"

namespace stepcast::plan {
namespace {

constexpr std::string_view kCompute = "training.precision.compute";
constexpr std::string_view kRecipe = "training.precision.fp8_recipe";

std::string device_text(const RuleContext& c) {
  const topology::DeviceSpec& device = c.scenario.cluster.node.device;
  const std::string name = config::printable(device.name);
  return device.architecture.empty() ? name : name + " (" + config::printable(device.architecture) + ")";
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The devices whose tensor cores read what a recipe makes; where none is stated, any that has the rate.
bool device_reads(const RuleContext& c, MatmulRecipe recipe) {
  const std::string_view architecture = c.scenario.cluster.node.device.architecture;
  if (architecture.empty()) return true;
  switch (recipe) {
    case MatmulRecipe::kBlockwise:
      return is_one_of(architecture, {"sm90", "sm100", "sm103"});
    case MatmulRecipe::kMxfp8:
      return is_one_of(architecture, {"sm100", "sm103", "sm120", "cdna4"});
    case MatmulRecipe::kNvfp4:
      return is_one_of(architecture, {"sm100", "sm103", "sm120"});
    default:
      return true;
  }
}

void check_device(RuleContext& c) {
  const topology::DeviceSpec& device = c.scenario.cluster.node.device;
  const MatmulRecipe recipe = c.scenario.training.recipe;
  const bool fp4 = recipe == MatmulRecipe::kNvfp4;
  if (device.kind == topology::DeviceKind::kCpu) {
    c.violate(kCompute, std::string(to_string(recipe)) + " matmuls have no CPU kernels yet",
              {"compute: bf16", "a cluster such as hgx-h100"}, ErrorKind::kUnsupported);
    return;
  }
  if (device_reads(c, recipe) && (fp4 ? device.peak_fp4 : device.peak_fp8).value > 0) return;
  if (device.peak_fp8.value <= 0) {
    const bool blackwell = fp4 || recipe == MatmulRecipe::kMxfp8;
    c.violate(kCompute, device_text(c) + " has no fp8 tensor cores",
              {"compute: bf16", blackwell ? "a cluster such as hgx-b200" : "a cluster such as hgx-h100"});
    return;
  }
  const std::string what(to_string(recipe));
  c.violate(fp4 ? kCompute : kRecipe, device_text(c) + " has no tensor cores that read " + what,
            {fp4 ? "compute: fp8" : "fp8_recipe: tensorwise or delayed", "a cluster such as hgx-b200"});
}

void check_framework(RuleContext& c) {
  const std::string recipe(to_string(c.scenario.training.recipe));
  const std::string known = " " + std::string(c.preset.matmul_recipes) + " ";
  if (known.find(" " + recipe + " ") != std::string::npos) return;
  c.violate(kCompute, "its fp8 and fp4 matmuls (" + recipe + ") are not simulated",
            {"compute: bf16", "framework: megatron-core or plain"}, ErrorKind::kUnsupported);
}

// The extents of the operands: blocks of scales are whole, and cuBLAS takes 8-bit rows of 16 bytes.
void check_operand_extents(RuleContext& c) {
  if (c.plan.tp < 1 || c.plan.cp < 1) return;
  const std::int64_t multiple = c.scenario.training.recipe == MatmulRecipe::kMxfp8 ? 32 : 16;
  const models::Architecture& m = c.scenario.model;
  const std::int64_t tokens = c.scenario.training.sequence_length / c.plan.cp * c.plan.micro_batch_size;
  struct Extent {
    const char* field;
    const char* what;
    std::int64_t size;
  };
  const std::array<Extent, 4> extents = {
      Extent{"training.sequence_length", "the tokens of a rank, sequence_length / cp * micro_batch_size", tokens},
      Extent{"plan.tp", "the columns of q, k and v on a rank", (m.q_width() + 2 * m.kv_width()) / c.plan.tp},
      Extent{"plan.tp", "the columns of the MLP on a rank", m.ffn / c.plan.tp},
      Extent{"model.hidden_size", "hidden_size", m.hidden}};
  for (const Extent& e : extents) {
    if (e.size % multiple == 0) continue;
    c.violate(e.field,
              std::string(to_string(c.scenario.training.recipe)) + " matmuls take multiples of " + text_of(multiple) +
                  ": " + e.what + " are " + text_of(e.size),
              {"compute: bf16"});
  }
}

// A scale that follows from earlier steps moves on between the first and the second pass over the same input.
void check_recomputed_inputs(RuleContext& c) {
  const Recompute& r = c.plan.recompute;
  if (c.scenario.training.recipe != MatmulRecipe::kDelayed || r.kind != RecomputeKind::kSelective) return;
  if (c.preset.framework != Framework::kMegatronCore || !(r.layernorm || r.mlp_act)) return;
  c.violate("plan.recompute", "delayed scaling does not go with recompute of layernorm or mlp_act",
            {"fp8_recipe: tensorwise", "recompute: full, or selective[core_attn]"});
}

}  // namespace

void check_precision_rules(RuleContext& c) {
  if (c.scenario.training.compute == program::DType::kF16 && c.preset.framework == Framework::kTorchtitan) {
    c.violate(kCompute, "its mixed precision is bf16 or fp32", {"compute: bf16"});
  }
  if (c.scenario.training.recipe == MatmulRecipe::kNone) return;
  check_framework(c);
  check_device(c);
  check_operand_extents(c);
  check_recomputed_inputs(c);
}

}  // namespace stepcast::plan
