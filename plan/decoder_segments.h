// The segments of a dense decoder of the Llama or the GPT kind: attention and MLP of one layer, embedding, head and
// loss, each as the smallest piece a strategy moves (norm, projection in, core, projection out), as forward (F), input
// gradient (I) and weight gradient (W). Recompute calls the F segment again.
//
// Tensor parallelism (arXiv 1909.08053): projections in are split by rows, projections out by columns, and the partial
// outputs are all-reduced; with sequence parallelism (arXiv 2205.05198) norms and residuals hold T/tp tokens, inputs
// are gathered and outputs reduce-scattered. The gather of a projection's input for its weight gradient is issued with
// the input gradient, so that it runs beside that matmul; the reduction of the input gradient runs beside the weight
// gradient.
#pragma once

#include "plan/shapes.h"
#include "program/builder.h"

namespace stepcast::plan {

// Slots in order, per segment (types in brackets follow Shapes; [Tl,h] is local_tokens x hidden):
struct DecoderSegments {
  // In brackets: what a shape or a recipe adds, in this order. Masks of dropout are u8.
  // norm_f: x[Tl,h] weight[h] y[Tl,h] stats [, bias];  norm_i: dy x stats weight dx dweight [, residual] [, dbias]
  // Behind a block (OLMo 2): y is the sum of the normalised x and the residual, which comes last; norm_i has none.
  struct Norm {
    program::SegmentId forward, backward;
  };
  Norm attn_norm, mlp_norm, head_norm;
  // Where the norms stand behind the blocks, a block's input is the residual stream, and its gradient is added to that
  // of the stream: a[Tl,h] b sum.
  program::SegmentId attn_gradient_sum, mlp_gradient_sum;

  // Column-parallel projection: forward n[Tl,h] w[out,h] y[T,out] [, bias] [, norms of queries and keys: q_weight,
  // k_weight, raw[T,q+k], rstd];
  // input_grad dy[T,out] w dn[Tl,h] [, n, gathered[T,h] under sequence parallelism] [, raw, rstd, q_weight, k_weight,
  // dq_weight, dk_weight] [, dpart[T,qkv_rows]: dy of the rank's rows, where tp ranks share a key-value head];
  // weight_grad dy or dpart, n or gathered, dw [, dy or dpart, dbias]
  //
  // Row-parallel projection with residual (without x where a norm stands between):
  // forward a[T,in] w[h,in] x[Tl,h] y[Tl,h] [, bias] [, mask[Tl,h]];
  // input_grad dy[Tl,h] w da[T,in] [, gathered dy[T,h]] [, mask, d[Tl,h]: dy before the dropout];
  // weight_grad d, dy or gathered [T,h], a, dw [, d or dy, dbias]
  //
  // Quantised: w is the copy for that direction. forward: behind y what is kept of n, where it is not n itself (of a
  // row-parallel projection what is kept of a, behind w); input_grad: behind gathered the copy of dy, or dpart, that
  // weight_grad reads (of a row-parallel one in the place of gathered); weight_grad: that copy, what is kept or
  // gathered.
  struct Projection {
    program::SegmentId forward, input_grad, weight_grad;
    bool quantised = false;
  };
  Projection logits;
  // Of the layers; qkv_without_positions of those that have none in a model that has rotary ones.
  struct Projections {
    Projection qkv, qkv_without_positions, gate_up, attn_out, down;
  };
  Projections plain, quantised;
  // Norms before a block that quantise what they write: as norm_f, with y in 8 bits.
  program::SegmentId attn_norm_quantised, mlp_norm_quantised;

  // Core, fused: forward qkv[T,qkv] out[T,q] lse[T,heads]; input_grad dout qkv out lse dqkv
  // Unfused: forward qkv out probabilities[batch*heads,s,s] [, dropped, mask]; input_grad dout qkv probabilities dqkv
  // [, dropped, mask]
  // Context-parallel by all-to-all: see head_segments.cc.
  struct Core {
    program::SegmentId forward, input_grad;
  };
  Core attention;
  // Activation: forward gate_up[T,2f] (or up[T,f]) act[T,f] [, bias]; input_grad dact gate_up dgate_up [, bias]
  Core activation;

  // Embedding: forward tokens table y[Tl,h] [, positions] [, mask]; weight_grad tokens dy[Tl,h] dtable [, mask]
  // [, dpositions]
  program::SegmentId embedding_forward, embedding_weight_grad;

  // Loss: forward logits[T,V] targets max[T] sums[2,T] loss[1]; input_grad max sums targets logits (in place)
  // Unfused and not in fp32 already: forward also logits_fp32[T,V], which is that of input_grad; it adds dlogits[T,V]
  program::SegmentId loss_forward, loss_input_grad;

  // p2p of [Tl,h]: one slot each.
  program::SegmentId send_activation, receive_activation, send_gradient, receive_gradient;
};

// Whether the bias of the projection into the MLP is added by the activation, as it is where there is no gate.
inline bool bias_in_activation(const models::Architecture& model) { return model.mlp_bias && !model.gated_mlp; }

// Whether the loss works on a copy of the logits in fp32.
inline bool casts_logits(const Shapes& x, const Scenario& s) {
  return s.training.head_loss == HeadLoss::kUnfused && x.compute != program::DType::kF32;
}

DecoderSegments build_decoder_segments(program::ProgramBuilder& b, const Roles& roles, const Shapes& x,
                                       const Scenario& s);

}  // namespace stepcast::plan
