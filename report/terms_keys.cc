// The keys of a scenario that screens print (check --show-config, warnings, remedies), where no other term has them.
// Paths begin at the section that makes them unique.
#include "report/terms_parts.h"

namespace stepcast::report {
namespace {

constexpr Term kKeys[] = {
    // The scenario itself.
    {"schema", "", "The version of the file's format.", "", "plan/scenario.proto"},
    {"name", "cluster.name, gpu.name, optimizer.name", "What a scenario, cluster, device or optimizer is called.", "",
     "plan/scenario.proto, topology/cluster.proto"},
    {"extends", "", "Another scenario whose keys this one starts from; its own keys replace them.", "",
     "plan/scenario.proto"},
    {"framework", "megatron-core, torchtitan, nanotron, deepspeed, plain",
     "Whose defaults, limits and ways of lowering the plan follows.", "", "plan/frameworks.cc"},
    {"gpus", "", "Devices of the job, one rank each.", "gpus = tp x cp x pp x dp", "plan/scenario.proto"},
    {"nodes", "placement.exclude, placement.seed, scattered, contiguous",
     "Nodes of the job; in placement, which nodes of the cluster those are: contiguous, scattered by seed, or a file.",
     "nodes = ceil(gpus / gpus_per_node)", "plan/README.md"},
    // Model.
    {"config",
     "model_type, hidden_act, normalization, position_embedding_type, add_bias_linear, rms_norm_eps, "
     "rope_theta, tie_word_embeddings, max_position_embeddings",
     "The model's Hugging Face config.json or built-in name, and single values of it that a scenario may replace.", "",
     "models/README.md; Hugging Face transformers, configuration files"},
    {"num_hidden_layers", "layers", "Decoder layers of the model.", "", "models/architecture.h"},
    {"hidden_size", "hidden", "Width of the residual stream.", "", "models/architecture.h"},
    {"intermediate_size", "ffn", "Width of the MLP between its matmuls.", "", "models/architecture.h"},
    {"num_attention_heads", "heads, head_dim", "Heads of queries; each is head_dim wide.", "", "models/architecture.h"},
    {"num_key_value_heads", "kv_heads, GQA, grouped-query attention",
     "Heads of keys and values, each read by an equal group of query heads.", "", "Ainslie et al., GQA (2023)"},
    {"vocab_size", "vocab_pad_to, padded_vocab",
     "Words of the vocabulary; padded so that tp ranks hold equal parts: to a multiple of vocab_pad_to x tp.", "",
     "plan/scenario_plan.cc; Megatron-LM --make-vocab-size-divisible-by"},
    // Training.
    {"sequence_length", "seq", "Tokens of a sequence.", "", "plan/scenario.proto"},
    {"global_batch_tokens", "", "The global batch as tokens, in place of sequences.",
     "global_batch_size = global_batch_tokens / sequence_length", "plan/scenario.proto"},
    {"precision",
     "precision.compute, precision.params, precision.grads, precision.grad_reduce, "
     "first_last_layers_bf16, bf16, fp16, fp32",
     "Number formats: of matmuls and activations, of parameters, and of gradients as they are summed and reduced.", "",
     "plan/scenario_precision.cc"},
    {"adamw", "optimizer.master, optimizer.moments, optimizer.clip, optimizer.lr, optimizer.betas, optimizer.eps, Adam",
     "The optimizer: an fp32 master copy of the weights and two moments; gradients are clipped by their global norm.",
     "", "Kingma and Ba, Adam (2015); Loshchilov and Hutter (2019)"},
    {"lm_head_loss", "fused_vocab_parallel, fused, unfused",
     "Whether the loss turns logits into their gradient in place, or keeps them in fp32.", "", "plan/scenario.proto"},
    {"dropout", "", "Probability of attention's and the residual branches' elements to be zeroed in training.", "",
     "program/ops/op.h; Srivastava et al. (2014)"},
    {"seed", "training.seed, init_std", "Where initial values and tokens come from; init_std spreads the former.", "",
     "program/README.md"},
    // Plan.
    {"context parallelism", "cp, plan.cp, zigzag, context parallel",
     "Each sequence is split over cp devices; attention brings keys and values of the others' parts together. A member "
     "holds the n-th part from the front and from the back, so that all have equal work under the causal mask.",
     "", "plan/context_segments.h; Liu et al., Ring Attention (2023); Megatron-Core"},
    {"cp_comm_type", "p2p ring, a2a, Ulysses",
     "How context-parallel ranks see each other's keys: p2p passes them on round a ring beside the attention to those "
     "at hand, allgather brings all together before it, a2a exchanges rows for heads (Ulysses).",
     "", "plan/context_segments.h; Jacobs et al., DeepSpeed Ulysses (2023)"},
    {"dp_shard", "HSDP, dp_replicate, hybrid sharding",
     "ZeRO may shard over part of the data-parallel ranks: dp_replicate groups of dp_shard ranks hold all shards each.",
     "dp_shard x dp_replicate = dp x cp", "plan/scenario_sharding.cc"},
    {"fsdp", "fsdp.version, fsdp.unit, fsdp.prefetch, reshard_after_forward",
     "ZeRO-3 layer by layer: parameters of a unit are gathered before use, prefetch units ahead, and given back after "
     "the forward pass with reshard_after_forward.",
     "", "plan/parameter_store.h; Zhao et al., PyTorch FSDP (2023)"},
    {"microbatch_group", "", "Microbatches that an interleaved schedule passes through one chunk before the next.", "",
     "plan/schedule.h; Megatron-LM --microbatch-group-size-per-virtual-pipeline-stage"},
    {"layers_per_virtual_stage", "", "Layers of a chunk of a pipeline rank, in place of vp.",
     "vp = layers / (pp x layers_per_virtual_stage)", "plan/scenario_layout.cc"},
    {"recompute.granularity",
     "recompute.method, recompute.num_layers, recompute.modules, recompute.mode, "
     "recompute.policy",
     "What is recomputed: full layers, or selected modules.", "", "plan/scenario_recompute.cc"},
    {"overlap.grad_reduce", "grad_reduce overlap, overlap_grad_reduce",
     "Gradients are reduced bucket by bucket beside the backward pass.", "", "Megatron-LM --overlap-grad-reduce"},
    {"overlap.param_gather", "param_gather, overlap_param_gather",
     "Weights that ZeRO-1 and -2 updated are gathered beside the next forward pass.", "",
     "Megatron-LM --overlap-param-gather"},
    {"tp_comm", "plan.overlap.tp_comm, tp_comm_overlap, tp-comm-overlap, ub",
     "Tensor-parallel gathers and reductions beside the matmuls that need or make what they move, by Transformer "
     "Engine's user buffers: ring exchange by copy engines, pipelines of reduce-scatters, bulk. Each matmul has a "
     "buffer that the device holds all along (device).",
     "buffer = tokens x hidden x element; scattered by ring exchange x (2 tp - 1) / tp",
     "plan/user_buffers.h; Transformer Engine, initialize_ub; Megatron-LM --tp-comm-overlap"},
    {"tp_comm_cfg",
     "qkv_fprop, qkv_dgrad, qkv_wgrad, proj_fprop, proj_dgrad, fc1_fprop, fc1_dgrad, fc1_wgrad, "
     "fc2_fprop, fc2_dgrad, num_sm, set_sm_margin, num_splits, ring_exchange, bulk, method, cga_size, comm_priority, "
     "gemm_priority, fp8_buf, is_reduce_scatter",
     "Of each matmul that tp_comm overlaps: the method, the multiprocessors of the kernel that communicates (num_sm), "
     "whether the matmul leaves them free (set_sm_margin), and the blocks of a pipeline (num_splits). cga_size and "
     "priorities change nothing that is priced; other keys are known at their defaults alone.",
     "matmul time x SMs / (SMs - num_sm) with set_sm_margin", "plan/user_buffers.h; Megatron-LM --tp-comm-overlap-cfg"},
    {"tp_input_grad", "",
     "Reductions of input gradients over tp run beside weight gradients; false: the weight gradient waits.", "",
     "plan/README.md; Megatron-LM, asynchronous tensor-model-parallel all-reduce"},
    {"rank_order", "", "In which order ranks are numbered: the first role has neighbours side by side.", "",
     "plan/layout.h; Megatron-LM RankGenerator"},
    {"offload", "offload.kind, offload.activations, offload.optimizer, offload.params",
     "Tensors kept in the host's memory or on disk; known, not supported yet.", "", "plan/scenario.proto"},
    // Stack, job, report.
    {"stack.attention", "flash2, flash3, cudnn, sdpa_flash",
     "Fused attention, which keeps no scores, or unfused, which writes them to memory.", "",
     "Dao et al., FlashAttention (2022)"},
    {"gradient_accumulation", "separate",
     "Whether a weight gradient's matmul adds to what is accumulated, or a kernel behind it does.", "",
     "plan/scenario.proto; Megatron-LM --no-gradient-accumulation-fusion"},
    {"env", "stack.env, NCCL_ALGO, NCCL_PROTO, NCCL_NVLS_ENABLE, NCCL_MAX_CTAS",
     "Environment variables of the job: those of NCCL that change its choices act.", "", "sim/cost/nccl_pins.h"},
    {"allocator", "expandable, stack.allocator",
     "How the framework's caching allocator takes memory: in segments that grow, or of fixed sizes.", "",
     "report/simulation_memory.cc"},
    {"jitter.kind", "compute_sigma, comm_sigma, samples, jitter.seed",
     "The spread of op times, the number of samples, and where they come from.", "", "sim/jitter.h"},
    {"job.tokens", "price, job.price, job.pue",
     "Tokens of the whole job, the price of a GPU hour and the facility's PUE.", "", "plan/scenario.proto"},
    {"perturb.rank",
     "perturb.node, perturb.stage, perturb.group, perturb.compute, perturb.hbm, perturb.nic, "
     "perturb.bandwidth, perturb.latency, perturb.down, perturb.note",
     "A perturbation's target and what happens to it.", "", "plan/README.md"},
    // Cluster.
    {"base", "", "The cluster preset or file whose keys a scenario's own are laid over.", "", "plan/README.md"},
    {"gpu.kind", "architecture", "GPU or CPU, and the generation that NCCL and kernels choose by.", "",
     "topology/cluster.proto"},
    {"peak_bf16", "peak_fp32, peak_fp8, peak_fp4", "The vendor's dense rate of matmuls in a format.", "",
     "stepcast hardware NAME"},
    {"gpu.memory", "memory_visible", "The device's memory by its data sheet, and what its driver lets programs see.",
     "", "topology/cluster.proto"},
    {"hbm_bandwidth", "HBM", "The vendor's rate of the device's memory.", "", "topology/cluster.proto"},
    {"multiprocessors", "SMs, SM, CTA, CTAs",
     "What kernels are spread over: streaming multiprocessors, compute units. A CTA of a communication kernel holds "
     "one.",
     "", "topology/cluster.proto"},
    {"power_limit", "gpu.clock", "The device's power limit and clock: for energy, and not acted on otherwise.", "",
     "topology/cluster.proto"},
    {"gpus_per_node", "", "Devices of a node.", "", "topology/cluster.proto"},
    {"scale_up.bandwidth", "scale_up.domain, sharp, NVLink SHARP",
     "Rate of a device's links to its domain, the devices of one domain, and whether their switch reduces and "
     "multicasts.",
     "", "topology/cluster.proto"},
    {"host.pcie", "c2c, nvme, dram, host link", "Links and memory of a node's host.", "", "topology/cluster.proto"},
    {"nic.rate", "per_gpu, nic.kind, nic.efficiency, nic.latency",
     "Vendor rate of a NIC, NICs of a device, and what of the rate and how late data arrives.", "",
     "topology/cluster.proto"},
    {"fabric", "fabric.kind, unit_nodes, pod_nodes, hop_latency, rail_only, fat_tree, custom",
     "How nodes are joined: rails or fat trees of units and pods, or stated cables.", "", "topology/cluster.proto"},
    {"routing", "qps_per_connection, routing_efficiency, ecmp, e_ecmp, adaptive",
     "How packets choose among equal paths, and what of the links' rate hashing leaves on average.", "",
     "topology/cluster.proto"},
    {"cables", "cables.a, cables.b, cables.rate, cables.latency", "Links of a custom fabric.", "",
     "topology/cluster.proto"},
    {"sources", "", "Where a cluster's figures come from.", "", "topology/cluster.proto"},
};

}  // namespace

std::span<const Term> key_terms() { return kKeys; }

}  // namespace stepcast::report
