// plan.overlap.tp_comm_cfg: Transformer Engine's settings of each matmul, over its defaults (user_buffers.h).
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "config/text.h"
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

// Whose reduction Transformer Engine moves behind the input gradient where that is not bulk.
bool reduces_beside_weight_grad(OverlappedMatmul matmul) {
  return matmul == OverlappedMatmul::kQkvInputGrad || matmul == OverlappedMatmul::kFc1InputGrad;
}

class BufferResolver {
 public:
  // `buffer`: the matmul's default.
  BufferResolver(ScenarioDraft& draft, std::string path, OverlappedMatmul matmul, const GivenBuffer& given,
                 UserBuffer& buffer)
      : draft_(draft), path_(std::move(path)), matmul_(matmul), given_(given), buffer_(buffer) {}

  // Key by key over the default, whatever the method becomes (ub_cfg.update).
  void run() {
    if (given_.has_method()) {
      resolve_method();
      record("method", std::string(to_string(buffer_.method)));
    }
    if (given_.has_num_sm()) {
      buffer_.multiprocessors = static_cast<std::int32_t>(given_.num_sm());
      record("num_sm", std::to_string(buffer_.multiprocessors));
    }
    if (given_.has_set_sm_margin()) {
      buffer_.margin = given_.set_sm_margin();
      record("set_sm_margin", bool_text(buffer_.margin));
    }
    if (given_.has_num_splits()) {
      buffer_.splits = static_cast<std::int32_t>(given_.num_splits());
      record("num_splits", std::to_string(buffer_.splits));
    }
    refuse_unpriced();
    warn_without_effect();
  }

  // Those of the keys given that Transformer Engine acts on, and no price does.
  std::vector<std::string> ignored() const {
    std::vector<std::string> keys;
    const std::int64_t default_cga = default_user_buffer(matmul_).method == OverlapMethod::kRingExchange ? 1 : 2;
    if (given_.has_cga_size() && given_.cga_size() != default_cga) keys.emplace_back("cga_size");
    if (given_.has_comm_priority()) keys.emplace_back("comm_priority");
    if (given_.has_gemm_priority()) keys.emplace_back("gemm_priority");
    return keys;
  }

 private:
  void record(const char* key, std::string value) { draft_.record(path_ + "." + key, std::move(value), ""); }

  // A reduce-scatter behind its matmul travels by ring exchange or as a pipeline.
  void resolve_method() {
    const std::string& given = given_.method();
    const std::string only(to_string(buffer_.method));
    if (given == only) return;
    const bool scatters = buffer_.method == OverlapMethod::kPipeline;
    if (scatters && given == to_string(OverlapMethod::kRingExchange)) {
      buffer_.method = OverlapMethod::kRingExchange;
      return;
    }
    std::vector<std::string> help{"method: " + only};
    if (scatters) help.emplace_back("method: ring_exchange");
    const std::string what = std::string(to_string(matmul_)) + " by " + given + ": Transformer Engine ";
    if (reduces_beside_weight_grad(matmul_)) {
      draft_.refuse(path_ + ".method", what + "then reduce-scatters the input gradient, which is not lowered yet", help,
                    ErrorKind::kUnsupported);
    } else {
      draft_.refuse(path_ + ".method", what + "has " + only + (scatters ? " and ring_exchange" : "") + " for it", help);
    }
  }

  // Quantised sums halve what a pipeline moves; elsewhere, and in bf16, Transformer Engine passes over fp8_buf.
  void refuse_unpriced() {
    const bool quantised = draft_.read.scenario.training.recipe != MatmulRecipe::kNone;
    if (given_.fp8_buf() && quantised && default_user_buffer(matmul_).method == OverlapMethod::kPipeline) {
      draft_.refuse(path_ + ".fp8_buf", path_ + ".fp8_buf: true", {"the only value so far is false"},
                    ErrorKind::kUnsupported);
    }
    const bool scatters = is_reduce_scatter(matmul_);
    if (given_.has_is_reduce_scatter() && given_.is_reduce_scatter() != scatters) {
      draft_.refuse(path_ + ".is_reduce_scatter",
                    std::string(to_string(matmul_)) + (scatters ? " scatters sums" : " gathers rows"),
                    {"is_reduce_scatter: " + bool_text(scatters), "leave it out"});
    }
  }

  // Copy engines need no multiprocessors, and the last block of a pipeline has its own number of them.
  void warn_without_effect() {
    const auto warn = [this](const char* key, const std::string& with) {
      draft_.read.warnings.push_back(path_ + "." + key + " has no effect with " + with);
    };
    const std::string method(to_string(buffer_.method));
    const bool pipeline = buffer_.method == OverlapMethod::kPipeline;
    if (given_.has_num_splits() && !pipeline) warn("num_splits", method);
    // Of a ring exchange's settings as NeMo writes them, num_sm 1 is the default.
    const bool changed = given_.has_num_sm() && given_.num_sm() != default_user_buffer(matmul_).multiprocessors;
    if (!changed || buffer_.margin) return;
    if (buffer_.method == OverlapMethod::kRingExchange) warn("num_sm", method + " without set_sm_margin");
    if (pipeline && buffer_.splits == 1) warn("num_sm", "num_splits 1 without set_sm_margin");
  }

  ScenarioDraft& draft_;
  std::string path_;
  OverlappedMatmul matmul_;
  const GivenBuffer& given_;
  UserBuffer& buffer_;
};

void warn_of_ignored(ScenarioDraft& draft, const std::string& field, const std::set<std::string>& keys) {
  if (keys.empty()) return;
  const std::vector<std::string> words(keys.begin(), keys.end());
  draft.read.warnings.push_back(field + ": nothing that is priced depends on " + config::join(words));
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
  std::set<std::string> ignored;
  for (const MatmulField& f : kBufferFields) {
    if (!(given.*f.has)()) continue;
    BufferResolver buffer(draft, field + "." + std::string(to_string(f.matmul)), f.matmul, (given.*f.get)(),
                          plan.user_buffers.of(f.matmul));
    buffer.run();
    for (std::string& key : buffer.ignored()) ignored.insert(std::move(key));
  }
  warn_of_ignored(draft, field, ignored);
}

}  // namespace stepcast::plan
