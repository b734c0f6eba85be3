// The words of the scenario file for what a plan chooses.
#include "plan/frameworks.h"
#include "plan/rules.h"

namespace stepcast::plan {

std::string_view to_string(Framework framework) { return preset_of(framework).name; }

std::string_view to_string(ScheduleKind schedule) {
  switch (schedule) {
    case ScheduleKind::kGpipe:
      return "gpipe";
    case ScheduleKind::k1F1B:
      return "1f1b";
    case ScheduleKind::kInterleaved1F1B:
      break;
  }
  return "interleaved_1f1b";
}

std::string_view to_string(ContextComm comm) {
  switch (comm) {
    case ContextComm::kP2p:
      return "p2p";
    case ContextComm::kAllGather:
      return "allgather";
    case ContextComm::kAllToAll:
      break;
  }
  return "a2a";
}

std::string_view to_string(GradientSync sync) {
  return sync == GradientSync::kEveryMicrobatch ? "every_microbatch" : "last_microbatch";
}

std::string_view to_string(RecomputeKind recompute) {
  switch (recompute) {
    case RecomputeKind::kNone:
      return "none";
    case RecomputeKind::kFull:
      return "full";
    case RecomputeKind::kSelective:
      break;
  }
  return "selective";
}

std::string_view to_string(MatmulRecipe recipe) {
  switch (recipe) {
    case MatmulRecipe::kNone:
      return "none";
    case MatmulRecipe::kDelayed:
      return "delayed";
    case MatmulRecipe::kTensorwise:
      return "tensorwise";
    case MatmulRecipe::kBlockwise:
      return "blockwise";
    case MatmulRecipe::kMxfp8:
      return "mxfp8";
    case MatmulRecipe::kNvfp4:
      return "nvfp4";
  }
  return "?";
}

}  // namespace stepcast::plan
