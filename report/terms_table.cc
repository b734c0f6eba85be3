// The terms of the screens. Formulas are those of the code that computes the figure.
#include "report/terms_parts.h"

namespace stepcast::report {
namespace {

constexpr Term kTerms[] = {
    // Time.
    {"step", "s/step, ms/step, time, step time",
     "One optimizer step: from the first op of any rank to the end of the last op of any rank.",
     "step = compute + optimizer + exposed + bubble + host on every rank", "sim/accounting.h"},
    {"compute", "",
     "Time in which a rank's compute stream runs kernels of the forward or backward pass, recompute too.", "",
     "sim/accounting.h"},
    {"optimizer", "", "Time in which the compute stream runs the optimizer's kernels: norm, clipping, Adam update.", "",
     "sim/accounting.h"},
    {"slowed by overlap", "slowed, slowdown",
     "Part of compute and optimizer, so not in the sum: what kernels took longer than alone because communication "
     "beside them held multiprocessors and used memory bandwidth.",
     "", "sim/README.md, contention"},
    {"exposed", "exposed communication",
     "Time in which a rank's compute stream waits for bytes in flight; communication beside computation is hidden. By "
     "the kind of op waited for: tp, cp, ep, pp, dp, gather, copy.",
     "hidden % = 1 - exposed / time in which transfers of that kind move", "sim/accounting.h"},
    {"exposed tp", "", "Waiting for tensor-parallel collectives: gathers and reductions around each layer's matmuls.",
     "", "sim/exposed.h; Shoeybi et al., Megatron-LM (2019)"},
    {"exposed cp", "", "Waiting for context-parallel exchange of queries, keys and values.", "",
     "sim/exposed.h; Liu et al., Ring Attention (2023)"},
    {"exposed ep", "ep", "Waiting for expert-parallel dispatch and combine.", "", "sim/exposed.h"},
    {"exposed pp", "", "Waiting for activations or gradients of a neighbouring pipeline stage that are being sent.", "",
     "sim/exposed.h"},
    {"exposed dp", "", "Waiting for gradients being reduced over data-parallel ranks.", "", "sim/exposed.h"},
    {"exposed gather", "gather",
     "Waiting for parameters being gathered: after a ZeRO-1 step, or before use under ZeRO-3.", "",
     "sim/exposed.h; Rajbhandari et al., ZeRO (2020)"},
    {"exposed copy", "copy", "Waiting for copies between host and device.", "", "sim/exposed.h"},
    {"bubble", "bubble fraction, bubble of step",
     "Waiting for a partner that has not begun to send or to take part, not for bytes: pipeline fill and drain, "
     "unequal "
     "stages, skew. Beside the share of the step, screens give bubble over work, as papers do.",
     "bubble_fraction = bubble / step; ideal of 1F1B and interleaved 1F1B: bubble / work = (p - 1) / (v m), p stages, "
     "v "
     "chunks of each, m microbatches",
     "Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters (2021), section 2.2"},
    {"skew", "", "Waiting in a collective for its latest member; counted as bubble, not as exposed.", "",
     "sim/accounting.h"},
    {"host", "", "Time in which the compute stream has nothing to run because the host thread has not launched it yet.",
     "", "sim/accounting.h; launch costs: scenarios/calibrations"},
    {"if free", "saved if free, free, if_free_s",
     "The step simulated again with one kind of time costing nothing. Less is saved than is exposed where other work "
     "takes its place, more where it slowed kernels.",
     "saved = step if free - step (negative: shorter)", "sim/free.h"},
    {"stage min..max", "", "The smallest and largest mean of a pipeline stage's ranks, with the stage's number.", "",
     "report/simulation_report.h"},
    {"what would change it", "sensitivity",
     "The step simulated again with one thing changed: faster kernels or links (simulate --sensitivity), or a kind of "
     "time free.",
     "(changed step - step) / step", "cli/sensitivity.h"},
    {"jitter", "p50, p90, p99",
     "Steps whose ops take random times; percentiles over samples by nearest rank. Every rank is simulated.",
     "op time x exp(sigma z), z standard normal", "sim/jitter.h"},
    {"waterfall", "why",
     "The parts of time of two plans and their differences; they sum to the difference of the steps in picoseconds.",
     "change = B - A", "report/diff_report.h"},
    // Speed.
    {"tok/s/GPU", "tokens_per_s_per_gpu, tokens per second", "Tokens of the global batch per second and device.",
     "global batch x sequence length / step / GPUs", "report/simulation_report.h"},
    {"TFLOP/s/GPU", "model_tflops_per_gpu", "Model FLOPs per second and device; recompute is not counted.",
     "FLOP/token x tok/s/GPU", "report/simulation_report.h"},
    {"FLOP/token", "", "Model FLOPs of a token, forward and backward.",
     "6 x parameters used by matmuls (output head yes, input embedding no) + attention 12 L h s full, half of it "
     "causal",
     "Narayanan et al. (2021), appendix; PaLM (2022), appendix B"},
    {"MFU", "MFU full, mfu, MFU % full, full",
     "Model FLOPs utilisation: model FLOPs over the dense peak of the compute type. Full counts attention as if there "
     "were no mask; recompute is never counted.",
     "FLOP/token full x tok/s/GPU / peak", "Chowdhery et al., PaLM (2022), appendix B"},
    {"MFU causal", "causal", "MFU that counts only the half of attention that a causal mask keeps.",
     "FLOP/token causal x tok/s/GPU / peak", "Dao, FlashAttention-2 (2023), section 4.1"},
    {"HFU", "hardware_tflops_per_gpu",
     "Hardware FLOPs utilisation: FLOPs of the matmul and attention ops executed, recompute too, over the peak. "
     "Attention is causal and its backward counts 2.5 forwards, so HFU may lie below MFU full.",
     "executed FLOPs / step / GPUs / peak",
     "Korthikanti et al., Reducing Activation Recomputation (2022); program/ops"},
    {"peak", "peak_tflops",
     "The vendor's dense rate of the compute type, without sparsity; under fp8 and fp4 that of the quantised matmuls.",
     "", "stepcast hardware NAME"},
    {"job", "", "Totals of a whole job at the simulated speed, as if it never stopped.",
     "steps = tokens / tokens of a step; GPU-h = steps x step x GPUs; cost = GPU-h x price; energy = GPU-h x power "
     "limit x "
     "PUE",
     "report/job_report.h"},
    {"ETTR", "", "Effective training time ratio: productive time over wall time. 1.0: no failures, no checkpoints.", "",
     "Kokolis et al., Revisiting Reliability in Large-Scale Machine Learning Research Clusters (2024)"},
    {"PUE", "power usage effectiveness", "Energy of the facility over that of its computers.", "", "ISO/IEC 30134-2"},
    // Verdicts and confidence.
    {"fits", "OK", "What every device holds leaves at least as much room as tight asks for.", "",
     "report/simulation_report.h"},
    {"tight", "report.reserve", "It fits, but little is left for what the estimates miss.",
     "left < report.reserve, or min(2 GiB, a tenth of the device)", "report/simulation_report.h"},
    {"OOM", "out of memory, over by, if it fitted", "Some rank needs more than its device's memory.",
     "over by = device - capacity", "report/simulation_report.h"},
    {"best", "", "Of a sweep: the variant that fits with the highest tok/s/GPU; of equals the one with less memory.",
     "", "report/sweep_report.h"},
    {"refused", "",
     "A rule of the framework is broken or a value is wrong: the plan would not start. check says how to "
     "mend it.",
     "", "plan/rules.h"},
    {"unsupported", "", "Known to the format or the framework, but not simulated by this release (exit code 4).", "",
     "plan/scenario.proto"},
    {"uncalibrated", "evidence, band",
     "No training step was fitted: constants are vendor peaks, stated efficiencies and fits to kernel tables. A band "
     "of "
     "error is given once predictions were tested against measurements.",
     "", "scenarios/calibrations; stepcast calibrations"},
    {"calibration", "constants", "The file of constants of the cost model, each with meaning, unit and source.", "",
     "sim/calibration.proto; stepcast calibrations NAME"},
    {"not modelled", "", "What exists in a real run and is left out of the figures.", "", "report/simulation_notes.cc"},
    {"warning", "", "It runs, but probably not as meant. Codes such as W302 have entries of their own.", "",
     "plan/rules.h"},
    {"note", "", "How to read a figure, or what was ignored.", "", "report/simulation_notes.cc"},
    {"W301", "", "The calibration in use describes other devices than the cluster's: its constants may be far off.", "",
     "cli/pipeline.h"},
    {"W302", "",
     "The calibration in use describes a relative of the cluster's device first: its shares of peak are taken to hold.",
     "", "cli/pipeline.h"},
    {"W303", "",
     "The calibration in use has no matmuls of the recipe's format: they are taken to reach the share of their peak "
     "that bf16 ones reach of theirs.",
     "", "cli/pipeline.h"},
    {"fp8", "fp4, mxfp8, nvfp4, fp8_recipe, delayed, tensorwise, blockwise, quantised",
     "Matmuls of the decoder layers read 8 or 4 bits; everything else is bf16. A recipe says how scales are found and "
     "how many elements share one.",
     "", "plan/quantisation.h"},
    // Plan.
    {"plan", "", "How the work is split: degrees, schedule, sharding, batch, recompute.", "", "plan/README.md"},
    {"model", "", "What is trained: a built-in name or a Hugging Face config.json.", "", "models/README.md"},
    {"layout", "", "What each virtual pipeline stage holds, in model order: E embedding, a number of layers, L loss.",
     "", "plan/layout.h; Megatron-LM --pipeline-model-parallel-layout"},
    {"tensor parallelism", "tp, plan.tp", "Each layer's matrices are split over tp devices, normally within a node.",
     "", "Shoeybi et al., Megatron-LM (2019)"},
    {"sequence_parallel", "SP, sp, sequence parallelism",
     "Norms and residuals are split over the tensor-parallel group by tokens; all-reduces become reduce-scatters and "
     "all-gathers of the same bytes.",
     "", "Korthikanti et al. (2022), section 4.2.2"},
    {"pipeline parallelism", "pp, plan.pp, stage, pipeline",
     "Layers are split over pp stages; microbatches pass through them.", "", "Narayanan et al. (2021)"},
    {"vp", "virtual stages, vpp, interleaved",
     "Chunks of layers of each pipeline rank. More chunks mean a smaller bubble and more messages.",
     "bubble / work = (p - 1) / (v m)", "Narayanan et al. (2021), section 2.2.2"},
    {"data parallelism", "dp, plan.dp", "Copies of the model that each take a share of the batch.",
     "dp = GPUs / (tp x cp x pp)", "plan/scenario_plan.cc"},
    {"schedule", "1f1b, gpipe, interleaved_1f1b", "The order in which a pipeline rank runs the passes of microbatches.",
     "", "plan/schedule.h; Huang et al., GPipe (2019); Narayanan et al. (2019, 2021)"},
    {"microbatch", "MBS, mbs, microbatches, micro_batch_size", "The sequences that pass through the model together.",
     "microbatches = GBS / (MBS x DP)", "plan/scenario.h"},
    {"GBS", "global_batch_size, global batch", "Sequences of one optimizer step over all ranks.", "",
     "plan/scenario.h"},
    {"zero", "zero-0, zero-1, zero-2, zero-3",
     "What data-parallel ranks share instead of repeating: 1 the optimizer states, 2 also gradients, 3 also "
     "parameters.",
     "bytes per parameter of bf16 training with fp32 gradients: 18 without, 6 + 12/dp with 1",
     "Rajbhandari et al., ZeRO (2020)"},
    {"gradient_sync", "plan.fsdp.gradient_sync, every_microbatch, last_microbatch, set_requires_gradient_sync, no_sync",
     "When ZeRO-3 reduces gradients: behind every backward pass, or once a step with whole gradients kept until then; "
     "the latter in a pipeline, where torch.distributed.pipelining does so behind each chunk's last backward pass.",
     "kept per rank: parameters / (tp x pp) x bytes of the reduction's type; reduce-scatters: units x microbatches, or "
     "units",
     "PyTorch, distributed/pipelining/stage.py, backward_maybe_with_nosync and perform_reduce_grad; torchtitan issue "
     "292"},
    {"recompute", "activation checkpointing, selective, core_attn, layernorm, mlp_act",
     "Activations that are not kept but computed again in the backward pass: less memory, more compute.", "",
     "Chen et al. (2016); Korthikanti et al. (2022)"},
    {"bucket", "plan.bucket", "Gradients reduced together, as soon as all of them are complete.", "", "plan/README.md"},
    {"placement", "", "On which nodes a job's ranks are.", "", "plan/README.md"},
    {"perturb", "perturbation", "Devices or links made slower on purpose: what a slow node would cost.", "",
     "plan/README.md"},
    // Memory.
    {"memory", "GiB, total, allocated", "Bytes of live tensors at the peak over issue order, per rank.",
     "peak = max over issue positions of the sum of live buffers", "program/lifetimes.h"},
    {"device", "reserved, fragmentation, context, workspaces, NCCL buffers",
     "What a process holds of its device: its tensors, an allocator's share for fragmentation (5 %; 12 % with "
     "stack.allocator default), context, workspaces and communicators' buffers; with tp_comm a user buffer for each of "
     "ten matmuls and three workspaces. All but the tensors are estimates.",
     "reserved = allocated x (1 + fragmentation); device = reserved + the rest",
     "sim/cost/device_memory.h; plan/user_buffer_memory.h"},
    {"weights", "", "Parameters in the compute type, gathered ones included.", "", "program/program.h"},
    {"grads", "gradients, unsharded_gradients, gradient_ring, main_gradients, placeholder",
     "Gradients: the sum over microbatches, in the type they are accumulated in, and what stands beside it: whole ones "
     "that are not reduced yet (ZeRO-2, ZeRO-3), fp32 copies of narrower ones, Transformer Engine's placeholders, one "
     "weight's where a kernel of its own adds it. The line \"grads\" of the screen names those that count.",
     "", "plan/parameter_store.h; program/program.h"},
    {"optim", "optimizer states", "Master weights and moments.", "", "program/program.h"},
    {"activ", "activations", "What the backward pass needs, received inputs and logits included.", "",
     "program/program.h"},
    {"comm", "", "Staging buffers of communication.", "", "program/program.h"},
    {"at peak", "", "The op whose issue reaches the peak, and the largest tensors alive then.", "",
     "program/lifetimes.h"},
    // Network and cluster.
    {"network", "mean, carries, utilisation",
     "Bytes out of a GPU per step by tier of links; mean and peak share of the links' rate, and the groups carried.",
     "", "sim/network_use.h"},
    {"cluster", "", "Nodes, devices, NICs and fabric of the run.", "", "topology/README.md; stepcast hardware NAME"},
    {"scale_up", "scale-up, NVLink, domain",
     "The links between devices of one domain: NVLink and NVSwitch, xGMI. The rate is per device and direction.", "",
     "topology/cluster.h"},
    {"nic", "NICs", "Network adapters; the rate of one is per direction.", "", "topology/cluster.h"},
    {"rail", "rail-optimised", "Device i of every node of a unit hangs on leaf i.", "", "topology/cluster.h"},
    {"leaf", "unit", "The switches that a unit's NICs hang on.", "", "topology/cluster.h"},
    {"spine", "oversubscription", "Switches above the leaves. n:1 is the capacity down over the capacity up.", "",
     "topology/cluster.h"},
    {"core", "pod", "Switches between pods.", "", "topology/cluster.h"},
    {"algbw", "", "Algorithm bandwidth of a collective.", "size / time", "NVIDIA/nccl-tests doc/PERFORMANCE.md"},
    {"busbw", "bus bandwidth", "Algorithm bandwidth times what the operation moves over each link.",
     "all-reduce algbw x 2 (n - 1)/n; all-gather, reduce-scatter, all-to-all x (n - 1)/n; broadcast, sendrecv x 1",
     "NVIDIA/nccl-tests doc/PERFORMANCE.md"},
    {"algorithm", "ring, tree, nvls",
     "How NCCL moves a collective: along a ring, a double tree, or through the switch.", "", "sim/cost/nccl_tuning.h"},
    {"protocol", "ll, ll128, simple, channels",
     "How NCCL synchronises: LL and LL128 flag every line, Simple each slice.",
     "payload: LL 1/2, LL128 0.92, Simple all of it", "NVIDIA/nccl src/graph/tuning.cc"},
    // The simulation itself.
    {"ranks", "classes, rank_classes",
     "Ranks that must take the same times form a class, of which one is simulated; --no-fold simulates all.", "",
     "sim/folding.h"},
    {"fingerprint", "", "Identifies the Program, not devices or calibration: equal plans have equal fingerprints.", "",
     "program/program.h"},
    {"next", "remedies",
     "Commands that go on from here; out of memory, single settings that make the plan smaller, each simulated.", "",
     "cli/remedies.h"},
    // Running for real.
    {"loss_error", "ref loss, bounds, PASS", "Relative difference of the losses of a plan and of one rank.", "",
     "report/run_report.h"},
    {"gradient_error", "grad error", "Difference of gradients over their norm, the worst parameter.", "",
     "report/run_report.h"},
    {"checks", "", "Executed against simulated: op ids, bytes at the peak, bytes sent.", "", "report/run_report.h"},
    {"overlap", "", "Share of communication that ran beside computation in a real run.", "", "report/run_report.h"},
};

}  // namespace

std::span<const Term> screen_terms() { return kTerms; }

}  // namespace stepcast::report
