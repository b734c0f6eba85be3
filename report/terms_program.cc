// The words of a Program that screens, traces and dumps print: kinds of ops, categories, roles, streams, passes.
#include "report/terms_parts.h"

namespace stepcast::report {
namespace {

constexpr Term kWords[] = {
    // Kinds of ops.
    {"matmul", "", "A matrix product: forward, of the input gradient or of the weight gradient.", "2 m n k FLOPs",
     "program/ops/op.h"},
    {"attention_forward", "attention, attention_backward, share_attention_forward, share_attention_backward",
     "Fused causal attention, which keeps the log of each row's sum alone; of a share: with context parallelism.",
     "4 x tokens x keys x width FLOPs, half under the mask; backward 2.5 times",
     "program/ops/op.h; Dao, FlashAttention-2 (2023)"},
    {"attention_scores_forward",
     "attention_scores_backward, attention_context_forward, attention_context_backward, "
     "softmax_forward, softmax_backward",
     "The parts of unfused attention: scores, softmax, and what it weighs.", "", "program/ops/op.h"},
    {"kv_extract", "kv_accumulate, own_rows, own_group, own_group_backward",
     "Takes the own share of rows, or columns of keys and values, out of a tensor, or adds them back.", "",
     "program/ops/op.h"},
    {"heads_split", "heads_join, shares_join, shares_split",
     "Orders what an all-to-all exchanges: heads for rows, and back.", "", "program/ops/op.h"},
    {"rmsnorm_forward",
     "rmsnorm_backward_input, rmsnorm_backward_weight, layernorm_forward, layernorm_backward_input, "
     "layernorm_backward_weight, qk_norm_forward, qk_norm_backward_input, qk_norm_backward_weight",
     "Norms of rows, of queries and keys, and their gradients.", "", "program/ops/op.h"},
    {"swiglu_forward", "swiglu_backward, gelu_forward, gelu_backward, squared_relu_forward, squared_relu_backward",
     "The MLP's activation function and its gradient.", "", "program/ops/op.h"},
    {"rotary_forward", "rotary_backward, position_forward, position_backward",
     "Positions: rotations of queries and keys, or rows added to the embedding.", "", "Su et al., RoFormer (2021)"},
    {"embedding_forward", "embedding_backward", "Rows of the embedding table for tokens, and their gradient.", "",
     "program/ops/op.h"},
    {"cross_entropy_max", "cross_entropy_sum, cross_entropy_loss, cross_entropy_backward",
     "The loss over a vocabulary that tp ranks share: maximum, sums, loss, and logits turned into their gradient.", "",
     "program/ops/op.h; Megatron-LM vocab-parallel cross-entropy"},
    {"add", "accumulate, sum_parts, bias_backward, bias_dropout_add, dropout_forward, dropout_backward",
     "Sums, biases and dropout: kernels bound by memory.", "bytes / (share of memory rate x rate)", "program/ops/op.h"},
    {"cast", "zero_fill", "Turns a tensor into another type, or fills it with zeros.", "", "program/ops/op.h"},
    {"quantise", "absmax, transpose, quantised_input",
     "Makes 8- or 4-bit copies of operands: the largest magnitude where the scale follows from it, and the copy along "
     "the other direction. quantised_input is the copy of a projection's input that its weight gradient reads.",
     "", "plan/quantisation.h"},
    {"sum_squares", "clip_factor, unscale", "The gradient norm, the factor that clips by it, and fp16's loss scale.",
     "", "program/ops/op.h"},
    {"token_load", "host_read", "Tokens brought to the device; a value that the host waits for.", "",
     "program/ops/op.h"},
    {"all_reduce", "all_gather, reduce_scatter, all_to_all, alltoall, broadcast, collective",
     "Collectives: every member of a group gives and gets.", "", "program/ops/op.h; NVIDIA/nccl-tests"},
    {"send", "receive, exchange, p2p, sendrecv", "Messages between two ranks; an exchange is several at once.", "",
     "program/ops/op.h"},
    {"join", "sync", "A stream waits for all that was put on another.", "", "program/ops/op.h"},
    {"memory_bound", "", "Kernels whose time is their bytes over a share of the memory rate.", "",
     "sim/cost/analytic.h"},
    // How a transfer runs, beyond NCCL's algorithms.
    {"user_buffers", "copy_engines",
     "Transfers of tp_comm: kernels on buffers that all members map, and copies into a peer's by a copy engine, which "
     "holds no multiprocessor.",
     "", "sim/cost/user_buffers.h"},
    {"nvls_tree", "collnet_direct, collnet_chain, pat", "Further algorithms of NCCL, between nodes.", "",
     "sim/cost/nccl_tuning.h"},
    {"none", "", "Nothing applies: a group of one, or a transfer without an algorithm.", "", "sim/cost/cost.h"},
    // Roles of groups.
    {"dp_cp", "dp_replicate group",
     "The ranks that train the same parameters, each on its own tokens: all of dp and cp. Their gradients are summed "
     "over this group, and ZeRO shards over it.",
     "dp x cp ranks", "plan/lowering.cc"},
    {"model group", "world, embedding, pp.next, role",
     "Groups of ranks by role: model (tp x pp), world (all ranks), embedding (the first and the last stage with tied "
     "embeddings).",
     "", "plan/lowering.cc"},
    // Streams and passes.
    {"stream", "h2d, d2h, send_next, send_prev, recv_next, recv_prev",
     "A queue of ops in order: compute, one per kind of communication and neighbour, copies from and to the host.", "",
     "program/types.h"},
    {"pass of a call", "F, I, W, R, opt",
     "What a call belongs to: forward (F), input gradient (I), weight gradient (W), recompute (R), comm, opt.", "",
     "program/types.h"},
};

}  // namespace

std::span<const Term> program_terms() { return kWords; }

}  // namespace stepcast::report
