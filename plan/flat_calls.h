// Segments over flat element ranges: fills, reductions, scatters, gathers, norm and Adam.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan/shapes.h"
#include "program/builder.h"

namespace stepcast::plan {

program::SegmentId zero_segment(program::ProgramBuilder& b, const std::string& label, program::DType t, std::int64_t n);
// Slots: from [n], to [n] of another type.
program::SegmentId cast_segment(program::ProgramBuilder& b, const std::string& label, program::DType from,
                                program::DType to, std::int64_t n);

struct CollectiveSpec {
  std::string label;
  std::string name;
  program::RoleId group;
  program::Stream stream = program::Stream::kDp;
  program::Channel channel = program::Channel::kMain;
};
// The index-th of `parts` equal parts of a flat, by the rank's index in `role`.
struct OwnPart {
  program::RoleId role;
  std::int64_t parts = 1;
};
// Slot: the flat [n]. In place. With `own`: of the own part alone, which must be the same for all members.
program::SegmentId all_reduce_segment(program::ProgramBuilder& b, const CollectiveSpec& c, program::DType t,
                                      std::int64_t n, std::optional<OwnPart> own = std::nullopt,
                                      program::Reduce reduce = program::Reduce::kSum);
program::SegmentId reduce_scatter_in_place_segment(program::ProgramBuilder& b, const CollectiveSpec& c,
                                                   program::DType t, std::int64_t n);
program::SegmentId all_gather_in_place_segment(program::ProgramBuilder& b, const CollectiveSpec& c, program::DType t,
                                               std::int64_t n);
// Slots: shard [chunk] of type `held`, whole [chunk * parts] of type `t`; cast on the way where these differ.
program::SegmentId all_gather_segment(program::ProgramBuilder& b, const CollectiveSpec& c, program::DType held,
                                      program::DType t, std::int64_t chunk, std::int64_t parts);
// Slots: whole [chunk * parts], shard [chunk]: the own part of the sum, with `copies` summed over that group too, is
// added to the shard of type `sum`, through a staging temp.
program::SegmentId reduce_scatter_accumulate_segment(program::ProgramBuilder& b, const CollectiveSpec& c,
                                                     const std::optional<CollectiveSpec>& copies, program::DType t,
                                                     program::DType sum, std::int64_t chunk, std::int64_t parts);

// No slots: `stream` waits for all that is enqueued on `joined`.
program::SegmentId join_segment(program::ProgramBuilder& b, const std::string& label, program::Stream stream,
                                program::Stream joined);

// Slots: gradients [n], sumsq [1]. With `own`: over the own part of the flat.
program::SegmentId sum_squares_segment(program::ProgramBuilder& b, program::DType t, std::int64_t n, double scale,
                                       std::optional<OwnPart> own);
// Gradients over the loss scale: in place (f32), or into a copy of `copied` f32 elements where that is above 0.
struct UnscaleSpec {
  program::DType gradient = program::DType::kF32;
  std::int64_t elements = 0;
  std::int64_t copied = 0;
  std::optional<OwnPart> own;  // of the gradients
};
// Slots: gradients [elements] [, copy [copied]], found [1].
program::SegmentId unscale_segment(program::ProgramBuilder& b, const UnscaleSpec& u);
// Slot: one number, which the host reads.
program::SegmentId host_read_segment(program::ProgramBuilder& b, const std::string& label, program::DType t);
// Slots: sumsq [1], factor [1].
program::SegmentId clip_segment(program::ProgramBuilder& b, double max_norm);

struct AdamSpec {
  program::DType gradient = program::DType::kF32;
  std::int64_t elements = 0;  // of moments
  program::DType moments = program::DType::kF32;
  std::int64_t gradient_elements = 0;  // elements, or parts * elements when the own part is used
  std::int64_t weight_elements = 0;
  bool master = true;  // separate f32 master beside weights of type `weight`
  program::DType weight = program::DType::kBf16;
  std::optional<program::RoleId> part_of;
  AdamSettings settings;
};
// Slots: grad, factor [1], m, v, then master and weight (master true) or weight alone.
program::SegmentId adam_segment(program::ProgramBuilder& b, const AdamSpec& a);

}  // namespace stepcast::plan
