// plan.overlap.tp_comm_cfg: Transformer Engine's settings of each matmul, over its defaults (user_buffers.h).
#include <string>

#include "plan/scenario_draft.h"

namespace stepcast::plan {
namespace {

using GivenBuffer = schema::Plan::UserBuffer;
using GivenBuffers = schema::Plan::UserBuffers;

struct MatmulField {
  OverlappedMatmul matmul;
  bool (GivenBuffers::*has)() const;
  const GivenBuffer& (GivenBuffers::*get)() const;
};

constexpr MatmulField kBufferFields[] = {
    {OverlappedMatmul::kQkvForward, &GivenBuffers::has_qkv_fprop, &GivenBuffers::qkv_fprop},
    {OverlappedMatmul::kQkvInputGrad, &GivenBuffers::has_qkv_dgrad, &GivenBuffers::qkv_dgrad},
    {OverlappedMatmul::kQkvWeightGrad, &GivenBuffers::has_qkv_wgrad, &GivenBuffers::qkv_wgrad},
    {OverlappedMatmul::kProjForward, &GivenBuffers::has_proj_fprop, &GivenBuffers::proj_fprop},
    {OverlappedMatmul::kProjInputGrad, &GivenBuffers::has_proj_dgrad, &GivenBuffers::proj_dgrad},
    {OverlappedMatmul::kFc1Forward, &GivenBuffers::has_fc1_fprop, &GivenBuffers::fc1_fprop},
    {OverlappedMatmul::kFc1InputGrad, &GivenBuffers::has_fc1_dgrad, &GivenBuffers::fc1_dgrad},
    {OverlappedMatmul::kFc1WeightGrad, &GivenBuffers::has_fc1_wgrad, &GivenBuffers::fc1_wgrad},
    {OverlappedMatmul::kFc2Forward, &GivenBuffers::has_fc2_fprop, &GivenBuffers::fc2_fprop},
    {OverlappedMatmul::kFc2InputGrad, &GivenBuffers::has_fc2_dgrad, &GivenBuffers::fc2_dgrad},
};
static_assert(std::size(kBufferFields) == kOverlappedMatmuls);

std::string text_of_flag(bool value) { return value ? "true" : "false"; }

// Transformer Engine lets a reduce-scatter behind a matmul travel by ring exchange or as a pipeline.
void resolve_method(ScenarioDraft& draft, const std::string& field, const std::string& given, UserBuffer& buffer) {
  if (given == to_string(buffer.method)) return;
  if (buffer.method != OverlapMethod::kPipeline || given != to_string(OverlapMethod::kRingExchange)) {
    std::vector<std::string> help{"method: " + std::string(to_string(buffer.method))};
    if (buffer.method == OverlapMethod::kPipeline) help.emplace_back("method: ring_exchange");
    draft.refuse(field, "the method " + given + " of this matmul", help, ErrorKind::kUnsupported);
    return;
  }
  buffer.method = OverlapMethod::kRingExchange;
  buffer.multiprocessors = 1;
  buffer.margin = false;
}

void resolve_buffer(ScenarioDraft& draft, const std::string& path, const GivenBuffer& given, UserBuffer& buffer) {
  if (given.has_method()) {
    resolve_method(draft, path + ".method", given.method(), buffer);
    draft.record(path + ".method", std::string(to_string(buffer.method)), "");
  }
  if (given.has_num_sm()) {
    buffer.multiprocessors = static_cast<std::int32_t>(given.num_sm());
    draft.record(path + ".num_sm", std::to_string(buffer.multiprocessors), "");
  }
  if (given.has_set_sm_margin()) {
    buffer.margin = given.set_sm_margin();
    draft.record(path + ".set_sm_margin", text_of_flag(buffer.margin), "");
  }
  if (!given.has_num_splits()) return;
  buffer.splits = static_cast<std::int32_t>(given.num_splits());
  draft.record(path + ".num_splits", std::to_string(buffer.splits), "");
  if (buffer.method == OverlapMethod::kPipeline) return;
  draft.read.warnings.push_back(path + ".num_splits has no effect with " + std::string(to_string(buffer.method)));
}

}  // namespace

void resolve_user_buffers(ScenarioDraft& draft) {
  const schema::Plan::Overlap& overlap = draft.message.plan().overlap();
  if (!overlap.has_tp_comm_cfg()) return;
  Plan& plan = draft.read.scenario.plan;
  const std::string field = "plan.overlap.tp_comm_cfg";
  if (!plan.overlap_tp_comm) {
    draft.read.warnings.push_back(field + " has no effect without plan.overlap.tp_comm");
    return;
  }
  const GivenBuffers& given = overlap.tp_comm_cfg();
  for (const MatmulField& f : kBufferFields) {
    if (!(given.*f.has)()) continue;
    resolve_buffer(draft, field + "." + std::string(to_string(f.matmul)), (given.*f.get)(),
                   plan.user_buffers.of(f.matmul));
  }
}

}  // namespace stepcast::plan
