// The segments of a dense Llama-type decoder: attention and MLP of one layer, embedding, head and loss, each as the
// smallest piece a strategy moves (norm, projection in, core, projection out), as forward (F), input gradient (I) and
// weight gradient (W). Recompute calls the F segment again.
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
  // norm_f: x[Tl,h] weight[h] y[Tl,h] rstd[Tl];  norm_i: dy x rstd weight dx dweight [, residual]
  struct Norm {
    program::SegmentId forward, backward;
  };
  Norm attn_norm, mlp_norm, head_norm;

  // Column-parallel projection: forward n[Tl,h] w[out,h] y[T,out];
  // input_grad dy[T,out] w dn[Tl,h] [, n, gathered[T,h] under sequence parallelism]; weight_grad dy, n or gathered, dw
  struct Projection {
    program::SegmentId forward, input_grad, weight_grad;
  };
  Projection qkv, gate_up, logits;

  // Core: forward qkv[T,qkv] out[T,q] lse[T,heads]; input_grad dout qkv out lse dqkv
  struct Core {
    program::SegmentId forward, input_grad;
  };
  Core attention;
  // Activation: forward gate_up[T,2f] act[T,f]; input_grad dact gate_up dgate_up
  Core swiglu;

  // Row-parallel projection with residual: forward a[T,in] w[h,in] x[Tl,h] y[Tl,h];
  // input_grad dy[Tl,h] w da[T,in] [, gathered dy[T,h]]; weight_grad dy or gathered [T,h], a, dw
  Projection attn_out, down;

  // Embedding: forward tokens table y[Tl,h]; weight_grad tokens dy[Tl,h] dtable
  program::SegmentId embedding_forward, embedding_weight_grad;

  // Loss: forward logits[T,V] targets max[T] sums[2,T] loss[1]; input_grad max sums targets logits (in place)
  program::SegmentId loss_forward, loss_input_grad;

  // p2p of [Tl,h]: one slot each.
  program::SegmentId send_activation, receive_activation, send_gradient, receive_gradient;
};

DecoderSegments build_decoder_segments(program::ProgramBuilder& b, const Roles& roles, const Shapes& x,
                                       const Scenario& s);

}  // namespace stepcast::plan
