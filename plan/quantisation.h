// What a recipe of 8- or 4-bit matmuls does to their operands on one device: which copies are made, how their scales
// are found, what is kept for the backward pass.
//
// As Transformer Engine has it (NVIDIA/TransformerEngine, transformer_engine/pytorch: module/layernorm_linear.py,
// module/linear.py, quantization.py): the four projections of a decoder layer, no others, read quantised operands and
// write the compute type; gradients of weights are accumulated as they are without. An operand is read in two
// directions: forward along its rows, by the gradients along its columns.
//
//   delayed, tensorwise  one scale a tensor, so that both directions read the same numbers. The tensor cores of Ada
//                        and Hopper reduce along the last extent of both operands only, so that the second direction
//                        is a transpose, made as the tensor is quantised; Blackwell's take any layout
//                        (nvte_is_non_tn_fp8_gemm_supported in common/transformer_engine.cpp).
//   blockwise            an fp32 scale for 128 elements along what is reduced: a copy for each direction.
//   mxfp8                a scale of one byte for 32 elements (OCP Microscaling 1.0), a copy for each direction, read by
//                        Blackwell in any layout.
//   nvfp4                4 bits, a scale of one byte for 16 elements below one of the whole tensor; a copy for each
//                        direction, read along the last extent only.
//
// A delayed scale follows from earlier steps, so that the norm before a projection writes 8 bits at once. A tensorwise
// scale, and that of a whole nvfp4 tensor, needs the largest magnitude first: one more pass over the tensor, and where
// ranks hold parts of it that are gathered one number is reduced among them.
#pragma once

#include <cstdint>
#include <optional>

#include "plan/scenario.h"

namespace stepcast::plan {

struct Quantisation {
  program::DType type = program::DType::kF8;
  bool by_direction = false;  // scales lie along what is reduced: the directions are quantised apart
  bool transposed = false;    // the copy for the other direction is a transpose
  bool measures = false;      // the largest magnitude is found before a tensor is quantised
  bool delayed = false;       // scales follow from earlier steps

  bool two_copies() const { return by_direction || transposed; }
  // The copy of a tensor [rows, columns] that is reduced along its rows.
  program::Shape other_direction(std::int64_t rows, std::int64_t columns) const {
    return transposed ? program::Shape{columns, rows} : program::Shape{rows, columns};
  }
};

// Those of a weight: what is read forward, by the input gradient, or both.
enum class WeightCopies : std::uint8_t { kForward, kBackward, kBoth };

// Of a recipe on a device of that architecture ("sm90"; empty: as Blackwell); none without a recipe.
std::optional<Quantisation> quantisation_of(MatmulRecipe recipe, std::string_view architecture);
inline std::optional<Quantisation> quantisation_of(const Scenario& s) {
  return quantisation_of(s.training.recipe, s.cluster.node.device.architecture);
}

// Whether the projections of a layer are quantised: Megatron-Core's --first-last-layers-bf16 leaves the first and the
// last one of the model as they are.
bool quantises_layer(const Scenario& s, std::int64_t layer);

// Whether weights are quantised once a step and their copies kept. Weights that are gathered for each use are quantised
// for each use.
bool keeps_quantised_weights(const Scenario& s);

}  // namespace stepcast::plan
