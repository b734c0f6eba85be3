// The ops that turn operands of a projection's matmuls into 8 or 4 bits, added to a segment under construction
// (internal to the files that build segments). What is made and why: plan/quantisation.h.
//
// Under sequence parallelism the ranks of a tp group gather what they quantised, not what they quantise: a norm's
// output [Tl,h] on its way into a projection, and the gradient of one on its way out. Scales that differ by direction
// make two gathers of a gradient.
#pragma once

#include <optional>
#include <string>

#include "plan/quantisation.h"
#include "plan/segment_context.h"

namespace stepcast::plan {

// What a projection keeps of its input for the weight gradient.
struct KeptInput {
  program::DType type;
  program::Shape shape;
};
// Of a column-parallel projection, [Tl,h]; none where the input, as a norm wrote it, is itself kept.
std::optional<KeptInput> kept_column_input(const Shapes& x, const Quantisation& q, bool quantised_by_norm);
// Of a row-parallel one, [T,width].
KeptInput kept_row_input(const Shapes& x, const Quantisation& q, std::int64_t width);

// Whether the norms before the blocks write what the projections read.
bool norm_quantises(const Scenario& s);

// `name` is the projection's, which tells its ops from those of the other one of a module.
//
// What the matmul reads of `n`; adds a slot `kept` where one is made.
program::Ref quantise_column_input(program::SegmentBuilder& b, const SegmentContext& c, const std::string& name,
                                   program::Ref n);
program::Ref quantise_row_input(program::SegmentBuilder& b, const SegmentContext& c, const std::string& name,
                                program::Ref a, std::int64_t width);
// Gathers the kept input of a column-parallel projection into `gathered`, as its weight gradient reads it; by user
// buffers where `overlap` says how.
void gather_kept_input(program::SegmentBuilder& b, const SegmentContext& c, program::Ref kept, program::Ref gathered,
                       const std::optional<UserBuffer>& overlap);
// What the input gradient reads of an output's gradient [T,width]; `other` becomes what the weight gradient reads, the
// same where there is one copy.
program::Ref quantise_gradient(program::SegmentBuilder& b, const SegmentContext& c, const std::string& name,
                               program::Ref dy, program::Ref other, std::int64_t width);
// Likewise of the gradient [Tl,h] behind a row-parallel projection, gathered under sequence parallelism.
program::Ref quantise_row_gradient(program::SegmentBuilder& b, const SegmentContext& c, const std::string& name,
                                   program::Ref dy, program::Ref other);
// The same in steps, for who gathers the rows himself: the own rows, quantised, and where all are to be gathered; then
// what the weight gradient reads, once they are.
struct RowGradient {
  program::Ref own;
  program::Ref rows;
  std::optional<program::Ref> own_other;
};
RowGradient quantise_own_rows(program::SegmentBuilder& b, const SegmentContext& c, const std::string& name,
                              program::Ref dy, program::Ref other);
void complete_row_gradient(program::SegmentBuilder& b, const SegmentContext& c, const std::string& name,
                           const RowGradient& g, program::Ref other);

// The type and the shape in which a weight [rows, columns] is read forward and by the input gradient, and an operand
// [T,width] by the weight gradient; of the compute type without quantisation.
program::Ref weight_slot(program::SegmentBuilder& b, const SegmentContext& c, std::int64_t rows, std::int64_t columns,
                         bool forward);
program::Ref weight_gradient_slot(program::SegmentBuilder& b, const SegmentContext& c, const std::string& name,
                                  std::int64_t width);
// The forms of the two matmuls of a backward pass.
program::MatmulForm input_gradient_form(const SegmentContext& c);
program::MatmulForm weight_gradient_form(const SegmentContext& c);

// Segments of their own. A weight: slots w [rows, columns], then the copy read forward, that read by the input
// gradient, or both, as `copies` says.
program::SegmentId weight_quantisation(program::ProgramBuilder& b, const Shapes& x, const Quantisation& q,
                                       const std::string& label, const std::string& name, const program::Shape& weight,
                                       WeightCopies copies);
// A recomputed input of a column- or row-parallel projection: slots as it is, and as it is kept.
program::SegmentId input_quantisation(const SegmentContext& c, const std::string& label, const std::string& name,
                                      const KeptInput& kept, const program::TensorType& input);

}  // namespace stepcast::plan
