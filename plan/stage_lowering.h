// Lowers one pipeline rank: its pass list becomes calls, with the activations each pass makes, keeps and recomputes.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "plan/decoder_segments.h"
#include "plan/parameter_store.h"
#include "plan/quantisation.h"
#include "plan/schedule.h"

namespace stepcast::plan {

// What a decoder layer's forward pass leaves for its backward pass.
struct LayerActivations {
  program::ViewId x;  // input [Tl,h]
  program::ViewId attn_n, attn_rstd, qkv, attn, lse;
  program::ViewId exchanged_qkv, exchanged_attn;        // of context parallelism by all-to-all, in place of qkv
  program::ViewId qk_raw, qk_rstd;                      // of norms of queries and keys
  program::ViewId probabilities, dropped, scores_mask;  // of unfused attention, in place of lse
  program::ViewId attn_mask;                            // dropout
  program::ViewId mid;                                  // after attention [Tl,h]
  program::ViewId mlp_n, mlp_rstd, gate_up, act, mlp_mask;
  // What the weight gradients of the four projections read: attn_n, attn, mlp_n and act, or quantised copies.
  program::ViewId qkv_in, out_in, gate_up_in, down_in;
  // Norms behind the blocks read the blocks' outputs [Tl,h]; attn_n and mlp_n, the blocks' inputs, are x and mid then.
  program::ViewId attn_o, mlp_o;
};

struct HeadActivations {
  program::ViewId x, n, rstd, logits, max, sums;
  program::ViewId logits_fp32;  // of an unfused loss
};

struct TokenViews {
  program::ViewId tokens, targets;  // i32 [T]
};

class StageLowering {
 public:
  StageLowering(program::ProgramBuilder& b, const Roles& roles, const Shapes& x, const Scenario& s,
                const DecoderSegments& segments, std::int32_t pp_rank);
  program::RankProgram run();

 private:
  struct Visit {
    std::uint32_t unit = 0;
    std::size_t use = 0;
  };
  using Key = std::pair<std::uint16_t, std::uint32_t>;  // chunk, microbatch

  static ScheduleShape schedule_of(const Scenario& s);
  std::vector<UnitUse> plan_uses();
  void enter_unit(std::uint32_t unit);
  program::ViewId tensor(const char* name, program::DType t, program::Shape shape);
  program::ViewId hidden_tensor(const char* name);
  program::Tag tag(program::Pass pass) const;
  program::Tag layer_tag(program::Pass pass) const;

  void begin_step();
  void end_step();
  void step(const PipelineStep& st);
  void forward_pass(const PassItem& p);
  void backward_pass(const PassItem& p);
  program::ViewId load_and_embed(std::uint32_t module);
  const TokenViews& load_tokens();
  LayerActivations forward_layer(program::Pass pass, std::uint32_t attn_module, program::ViewId x, program::ViewId* y);
  void attention_forward(program::Pass pass, std::uint32_t module, LayerActivations& a);
  // The norm before a block, if it stands there; *n is what the block reads.
  void norm_before(program::Pass pass, std::uint32_t module, program::ViewId x, program::ViewId* n,
                   program::ViewId* rstd);
  // The norm behind a block with its output; returns the sum with `residual`.
  program::ViewId norm_behind(program::Pass pass, std::uint32_t module, program::ViewId o, program::ViewId residual,
                              const char* name, program::ViewId* rstd);
  void qkv_forward(program::Pass pass, std::uint32_t module, LayerActivations& a);
  // Projection into the residual stream; returns its sum with `residual`, or without where a norm stands between.
  // *kept is what its weight gradient reads.
  program::ViewId row_forward(program::Pass pass, const DecoderSegments::Projection& p, const ModuleParameters& m,
                              program::ViewId a, program::ViewId residual, const char* name, program::ViewId* mask,
                              program::ViewId* kept);
  program::ViewId mlp_forward(program::Pass pass, std::uint32_t module, LayerActivations& a);
  // Behind the norm; `mask` becomes that of its dropout.
  program::ViewId mlp_block(program::Pass pass, std::uint32_t module, LayerActivations& a, program::ViewId* mask);
  void norm_forward(program::Pass pass, std::uint32_t module, program::ViewId x, program::ViewId* n,
                    program::ViewId* rstd);
  void core_forward(program::Pass pass, LayerActivations& a);
  void act_forward(program::Pass pass, std::uint32_t module, LayerActivations& a);
  HeadActivations head_forward(std::uint32_t module, program::ViewId x);
  program::ViewId head_backward(std::uint32_t module, const HeadActivations& a);
  // The forward passes of the layers that are recomputed with the last of `kept`, whose attention is `module`.
  void recompute_layers(std::uint32_t module, std::vector<LayerActivations>& kept);
  program::ViewId layer_backward(std::uint32_t attn_module, LayerActivations a, program::ViewId dy);
  program::ViewId mlp_backward(std::uint32_t module, LayerActivations& a, program::ViewId dy);
  program::ViewId attention_backward(std::uint32_t module, LayerActivations& a, program::ViewId dy);
  // Input and weight gradient of a projection whose input was normalised; returns dn [Tl,h]. The last of `more` is
  // `projected`, where the gradient of what the matmul wrote is not dy.
  program::ViewId column_backward(const DecoderSegments::Projection& p, const ModuleParameters& m, program::Tag t,
                                  program::ViewId dy, program::ViewId n, std::vector<program::ViewId> more = {},
                                  std::optional<program::ViewId> projected = std::nullopt);
  // The gradient of the layer's or block's input from that of what the block reads.
  program::ViewId block_input_gradient(std::uint32_t module, program::ViewId dn, program::ViewId x,
                                       program::ViewId rstd, program::ViewId dy);
  const DecoderSegments::Projections& projections() const;  // of the layer at hand
  const DecoderSegments::Projection& qkv_segments() const;

  // Quantised operands (quantised_lowering.cc). A weight as a projection's forward pass or its input gradient reads it.
  program::ViewId weight_read(const DecoderSegments::Projection& p, std::uint32_t parameter, program::Pass pass);
  program::ViewId make_quantised_weight(std::uint32_t parameter, program::Pass pass);
  void quantise_weight(std::uint32_t parameter, program::Pass pass, WeightCopies made,
                       std::vector<program::ViewId> weight_and_copies);
  // What a projection keeps of its input, which becomes an argument where it is not the input itself.
  program::ViewId keep_column_input(const DecoderSegments::Projection& p, program::ViewId n,
                                    std::vector<program::ViewId>& args);
  program::ViewId keep_row_input(const DecoderSegments::Projection& p, program::ViewId a,
                                 std::vector<program::ViewId>& args);
  // The same of an input that is recomputed behind the forward pass.
  program::ViewId keep_recomputed(const DecoderSegments::Projection& p, const char* name, bool column,
                                  program::ViewId input);
  // The norm before a block once more, and what the projection behind it keeps of it.
  void recompute_norm(const DecoderSegments::Projection& p, std::uint32_t module, program::ViewId x, program::ViewId* n,
                      program::ViewId* rstd, program::ViewId* kept);
  // What the weight gradient reads [T,width] of an operand, to be written.
  program::ViewId weight_gradient_operand(const char* name, std::int64_t width);
  // Delayed scales of a virtual stage move on at the end of its pass.
  void update_scales(program::Pass pass);

  bool norms_behind() const { return s_.model.norm_placement == models::NormPlacement::kAfter; }
  // Input and weight gradient of a projection into the residual stream; `a` is its input [T,width], `mask` that of its
  // dropout; returns da.
  program::ViewId row_backward(const DecoderSegments::Projection& p, const ModuleParameters& m, program::ViewId dy,
                               program::ViewId a, program::ViewId mask);
  program::ViewId norm_backward(const DecoderSegments::Norm& n, const ModuleParameters& m, program::Tag t,
                                std::vector<program::ViewId> args, std::optional<program::ViewId> residual);
  program::ViewId core_backward(const LayerActivations& a, program::ViewId dattn);
  bool drops() const { return s_.training.dropout > 0; }
  // Among context-parallel ranks, for rows, around attention.
  bool exchanges_heads() const { return s_.plan.cp > 1 && s_.plan.cp_comm == ContextComm::kAllToAll; }
  void done(std::uint32_t module);

  program::ProgramBuilder& b_;
  const Roles& roles_;
  const Shapes& x_;
  const Scenario& s_;
  const DecoderSegments& segments_;
  ScheduleShape schedule_;
  std::int32_t pp_rank_;
  program::RankProgramBuilder rank_;
  StageParameters layout_;
  std::vector<Visit> visits_;
  std::size_t visit_ = 0;
  ParameterStore store_;
  std::optional<Quantisation> quantisation_;
  struct QuantisedWeight {
    program::ViewId forward, backward;
  };
  std::map<std::uint32_t, QuantisedWeight> quantised_weights_;                 // by parameter, where they are kept
  std::map<std::pair<std::uint16_t, program::Pass>, program::ViewId> scales_;  // delayed, by chunk and pass

  PassItem pass_;           // the pass being lowered
  std::int64_t layer_ = 0;  // the layer being lowered
  std::map<Key, program::ViewId> input_, output_, output_gradient_, input_gradient_;
  std::map<Key, std::vector<LayerActivations>> layers_;
  std::map<Key, HeadActivations> heads_;
  std::map<Key, TokenViews> tokens_;
  std::map<Key, program::ViewId> embedding_masks_;
  std::optional<program::ViewId> loss_;
};

}  // namespace stepcast::plan
