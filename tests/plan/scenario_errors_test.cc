// Bad scenarios: each is refused with the file, line and field of the fault, the right exit code, and all faults at
// once.
#include <gtest/gtest.h>

#include <algorithm>

#include "config/bind.h"
#include "plan/scenario.pb.h"
#include "tests/plan/scenario_text.h"

namespace stepcast::plan {
namespace {

struct BadCase {
  const char* replace;  // this part of kTiny ...
  const char* with;     // ... becomes this
  int line;             // where the problem must point to; 0: the file
  const char* field;
  const char* help;  // part of the help, or of the message
};

std::string replaced(const BadCase& bad) {
  std::string text = kTiny;
  const std::size_t at = text.find(bad.replace);
  EXPECT_NE(at, std::string::npos) << bad.replace;
  return text.replace(at, std::string(bad.replace).size(), bad.with);
}

const BadCase kBadCases[] = {
    {"  tp: 2", "  tpp: 2", 8, "plan.tpp", "did you mean tp"},
    {"  tp: 2", "  sequence_lenght: 2", 8, "plan.sequence_lenght", "known here"},
    {"gpus: 4", "gpu: 4", 5, "gpu", "gpus"},
    {"gpus: 4", "gpus: 1000000000", 5, "gpus", "at most 16777216"},
    {"gpus: 4", "gpus: 99999999999999999999999", 5, "gpus", "at most 16777216"},
    {"gpus: 4", "gpus: 0", 5, "gpus", "at least 1"},
    {"gpus: 4", "gpus: -4", 5, "gpus", "at least 1"},
    {"gpus: 4", "gpus: 4.5", 5, "gpus", "whole number"},
    {"gpus: 4", "gpus: four", 5, "gpus", "whole number"},
    {"gpus: 4", "gpus: \"4\"", 5, "gpus", "whole number"},
    {"gpus: 4", "gpus: 4 GiB", 5, "gpus", "whole number"},
    {"gpus: 4", "gpus:", 5, "gpus", "empty"},
    {"gpus: 4", "gpus: [4]", 5, "gpus", "one value"},
    {"gpus: 4\n", "", 0, "gpus", "missing"},
    {"num_hidden_layers: 4", "num_hidden_layers: 0", 2, "model.num_hidden_layers", "at least 1"},
    {"num_hidden_layers: 4", "num_hidden_layers: 1000000000000", 2, "model.num_hidden_layers", "at most 100000"},
    {"vocab_size: 256", "vocab_size: 1000000000000", 3, "model.vocab_size", "at most 16777216"},
    {"sequence_length: 32", "sequence_length: 1000000000000000", 6, "training.sequence_length", "at most 1073741824"},
    {"  tp: 2", "  tp: 2\n  micro_batch_size: 1000000000000000000", 9, "plan.micro_batch_size", "at most 16777216"},
    {"  tp: 2", "  tp: 2\n  bucket: 1000000 TiB", 9, "plan.bucket", "more than 2^50 bytes"},
    {"global_batch_size: 8", "global_batch_tokens: 100 Ttok", 6, "training.global_batch_tokens", "more than 2^31"},
    {"num_hidden_layers: 4, ", "", 0, "model.num_hidden_layers", "missing"},
    {"cluster: local-cpu", "cluster: local-gpu", 4, "cluster.base", "did you mean local-cpu"},
    {"cluster: local-cpu", "cluster: ./no.yaml", 4, "cluster.base", "no such file"},
    {"cluster: local-cpu", "cluster: {gpu: {memory: 80}}", 4, "cluster.gpu.memory", "has no unit"},
    {"cluster: local-cpu", "cluster: {gpu: {memory: 80 GB/s}}", 4, "cluster.gpu.memory", "not a unit"},
    {"precision: fp32", "init_std: .nan", 6, "training.init_std", "finite number"},
    {"precision: fp32", "init_std: NaN", 6, "training.init_std", "finite number"},
    {"precision: fp32", "precision: float32", 6, "training.precision.compute", "one of bf16, fp32"},
    {"precision: fp32", "data_stall: 5", 6, "training.data_stall", "has no unit"},
    {"precision: fp32", "data_stall: 5 GiB", 6, "training.data_stall", "not a unit"},
    {"sequence_length: 32, ", "", 6, "training.sequence_length", "missing"},
    {"global_batch_size: 8, ", "", 0, "training.global_batch_size", "missing"},
    {"  pp: 2", "  pp: 5", 5, "gpus", "pp 1, 2 with tp 2"},
    {"  pp: 2", "  pp: 5", 9, "plan.pp", "4 mod 5 = 4"},
    {"num_attention_heads: 8", "num_attention_heads: 9", 2, "model.num_attention_heads", "head_dim"},
    {"num_attention_heads: 8", "head_dim: 6, num_attention_heads: 5", 3, "model.num_key_value_heads", "do not divide"},
    {"  tp: 2", "  sp: 2", 8, "plan.sp", "not a degree"},
    {"  tp: 2", "  local_batch_size: 2", 8, "plan.local_batch_size", "micro_batch_size"},
    {"  tp: 2", "  tp: 2\n  tensor_model_parallel_size: 2", 9, "plan.tensor_model_parallel_size", "given twice"},
    {"  tp: 2", "  tp: 2\n  tp: 4", 9, "", "given twice"},
    {"  tp: 2", "  tp: 2\n  schedule: 1f2b", 9, "plan.schedule", "did you mean 1f1b"},
    {"  tp: 2", "  tp: 2\n  rank_order: tp-dp", 9, "plan.rank_order", "pp"},
    {"  tp: 2", "  tp: 2\n  dp: 3", 9, "plan.dp", "dp 1"},
    {"  tp: 2", "  tp: 2\n  vp: 2000000", 9, "plan.vp", "more than the layers"},
    {"framework: plain", "framework: plein", 1, "framework", "did you mean plain"},
    {"framework: plain", "framework: plain\nschema: stepcast/scenario/9", 2, "schema", "stepcast/scenario/1"},
    {"framework: plain", "framework: plain\nname: \xFF", 2, "", "not UTF-8"},
};

TEST(BadScenario, PointsToTheFaultAndSaysWhatWorks) {
  for (const BadCase& bad : kBadCases) {
    const std::vector<Problem> problems = problems_of(replaced(bad));
    ASSERT_FALSE(problems.empty()) << bad.with;
    EXPECT_EQ(Error(problems).exit_code(), 3) << bad.with;
    const bool found = std::any_of(problems.begin(), problems.end(), [&](const Problem& problem) {
      std::string text = problem.message;
      for (const std::string& help : problem.help) text += "\n" + help;
      const bool file =
          problem.where.file.size() >= 8 && problem.where.file.substr(problem.where.file.size() - 8) == "run.yaml";
      return file && problem.where.line == bad.line && problem.where.field == bad.field &&
             text.find(bad.help) != std::string::npos;
    });
    EXPECT_TRUE(found) << "with: " << bad.with << "\n" << to_text(problems);
  }
}

TEST(BadScenario, ReportsEverythingAtOnce) {
  const std::vector<Problem> problems = problems_of(R"(framework: plain
model: no-such-model
cluster: no-such-cluster
gpus: many
training: {sequence_length: 0, global_batch_size: 8, data_stall: 5 us}
plan: {tp: 2, ep: 2, unknown_key: 1}
)");
  std::vector<std::string> fields;
  for (const Problem& problem : problems) fields.push_back(problem.where.field);
  std::sort(fields.begin(), fields.end());
  EXPECT_EQ(fields, (std::vector<std::string>{"cluster.base", "gpus", "model.config", "plan.ep", "plan.unknown_key",
                                              "training.data_stall", "training.sequence_length"}));
  EXPECT_EQ(Error(problems).exit_code(), 3);  // an unknown key weighs more than one that is known
}

// A size out of range is not also missing.
TEST(BadScenario, ReportsAWrongValueOnce) {
  for (const char* setting : {"model.num_hidden_layers=0", "model.hidden_size=many", "gpus=1000000000",
                              "model.num_hidden_layers=1000000000000", "model.vocab_size=1000000000000",
                              "training.sequence_length=1000000000000000", "plan.micro_batch_size=1000000000000000000",
                              "training.global_batch_size=0"}) {
    const std::vector<Problem> problems = problems_of(kTiny, {setting});
    EXPECT_EQ(problems.size(), 1u) << setting << "\n" << to_text(problems);
    EXPECT_EQ(Error(problems).exit_code(), 3) << setting;
  }
}

TEST(BadScenario, SaysThatAFileIsMissing) {
  config::ScenarioSource source;
  source.file = "/no/such/scenario.yaml";
  try {
    read_scenario(source);
    FAIL();
  } catch (const Error& fault) {
    EXPECT_EQ(fault.exit_code(), 3);
    EXPECT_EQ(fault.problems().front().where.file, source.file);
  }
}

TEST(KnownKey, IsUnsupportedUnlessItHasItsDefault) {
  const std::vector<std::string> unsupported = {"plan.ep=2",
                                                "plan.etp=2",
                                                "plan.schedule=dualpipe_v",
                                                "plan.schedule=file:table",
                                                "plan.cp_comm_type=a2a+p2p",
                                                "plan.moe={dispatcher: deepep}",
                                                "plan.moe.load=zipf",
                                                "plan.offload.activations.fraction=0.5",
                                                "plan.compression={kind: topk, args: {ratio: 0.1}}",
                                                "plan.recompute=selective[moe_act]",
                                                "plan.recompute={mode: selective, policy: op}",
                                                "plan.layout=Ett|ttm|L",
                                                "plan.fsdp.unit=layer",
                                                "framework=megatron-fsdp",
                                                "framework=megatron-fsdp@0.4",
                                                "cluster.gpu.clock=1 GHz",
                                                "perturb=[{rank: 0, compute: 1.03, from: trace.json}]",
                                                "training.documents={mean: 1000 tok}",
                                                "training.precision={compute: fp8, fp8_param_gather: true}",
                                                "training.precision.params=fp8",
                                                "training.precision.grads=fp16",
                                                "training.precision={grads: bf16, grad_reduce: fp32}",
                                                "training.precision={compute: fp32, grads: bf16}",
                                                "training.optimizer=muon",
                                                "training.optimizer.moments=fp16",
                                                "training.lm_head_loss=chunked(4)",
                                                "training.data_stall=5 us",
                                                "stack.compile=block",
                                                "stack.cuda_graphs=full",
                                                "stack.cuda_graphs=[attn, mlp]",
                                                "job.failures={mtbf: 5 h}",
                                                "observed.step_time=12 s",
                                                "observed.tokens_per_s_per_gpu=6514",
                                                "report.flops=full",
                                                "model.mtp_layers=1",
                                                "calibration=[a, b]"};
  for (const std::string& setting : unsupported) {
    EXPECT_EQ(exit_code_of(kTiny, {setting}), 4) << setting << "\n" << to_text(problems_of(kTiny, {setting}));
  }
}

// The default of every key that states one in the schema is accepted, by going through the schema.
TEST(KnownKey, AcceptsItsDefault) {
  const auto& schema = *schema::Scenario::descriptor();
  int presets = 0;
  for (const std::string& path : config::field_paths(schema)) {
    const std::string preset = config::preset_text(schema, path);
    if (preset.empty()) continue;
    ++presets;
    EXPECT_EQ(exit_code_of(kTiny, {path + "=" + preset}), 0) << path << "\n"
                                                             << to_text(problems_of(kTiny, {path + "=" + preset}));
  }
  EXPECT_GT(presets, 30);
  for (const char* setting : {"plan.offload=none", "plan.compression=none", "jitter=none", "calibration=auto",
                              "plan.recompute=none", "plan.layout=auto"}) {
    EXPECT_EQ(exit_code_of(kTiny, {setting}), 0) << setting;
  }
}

// Every key of the format: each must be known, whatever the answer to its value is.
TEST(KnownKey, IsNeverUnknown) {
  const auto& schema = *schema::Scenario::descriptor();
  for (const std::string& path : config::field_paths(schema)) {
    if (path == "extends") continue;  // acts on files
    for (const Problem& problem : problems_of(kTiny, {path + "=x"})) {
      EXPECT_EQ(problem.message.find("unknown field"), std::string::npos) << path;
    }
  }
  for (const char* key : {"placement.nodes", "training.documents", "plan.cp_order", "plan.moe.sms", "stack.versions",
                          "job.pue", "observed.flops", "report.trace_ranks", "cluster.host.c2c", "jitter.samples"}) {
    const std::vector<std::string> paths = config::field_paths(schema);
    EXPECT_NE(std::find(paths.begin(), paths.end(), key), paths.end()) << key;
  }
}

// The full examples of the format, as published with it; the second with a model that is known. What is not acted on
// yet is known.
constexpr const char* kDenseExample = R"(schema: stepcast/scenario/1
name: l31-405b-h100x2048
framework: megatron-core
model: llama-3.1-405b
gpus: 2048
cluster:
  base: hgx-h100
  nic: {rate: 400 Gb/s, per_gpu: 1, kind: roce, efficiency: 0.92}
  fabric:
    kind: rail
    unit_nodes: 32
    oversubscription: [1, 2]
    routing: e_ecmp
    qps_per_connection: 4
placement: {nodes: contiguous}
training:
  sequence_length: 8192
  global_batch_size: 512
  precision: {compute: bf16, params: bf16, grads: fp32, grad_reduce: fp32}
  optimizer: {name: adamw, master: fp32, moments: fp32}
plan:
  tp: 8
  sequence_parallel: true
  cp: 2
  cp_comm_type: p2p
  pp: 16
  vp: 8
  layout: auto
  schedule: interleaved_1f1b
  micro_batch_size: 1
  zero: 1
  recompute: none
  rank_order: tp-cp-ep-dp-pp
  overlap: {grad_reduce: true, param_gather: true, p2p: true, tp_comm: true}
stack:
  cuda_graphs: none
  attention: flash3
  env: {CUDA_DEVICE_MAX_CONNECTIONS: 1, NCCL_NVLS_ENABLE: 1}
calibration: auto
perturb: []
job: {tokens: 1 Ttok, price: 2.5 $/GPU-h, pue: 1.12}
)";

constexpr const char* kExpertExample = R"(schema: stepcast/scenario/1
name: dsv3-h100x1024
framework: megatron-core
model: {config: llama-3.1-405b, mtp_layers: 1}
gpus: 1024
cluster: hgx-h100-ndr400-rail
training:
  sequence_length: 4096
  global_batch_size: 8192
  precision: {compute: fp8, fp8_recipe: blockwise, params: bf16, grads: bf16, grad_reduce: bf16,
              fp8_param_gather: false}
  optimizer: {name: adamw, master: fp32, moments: bf16}
plan:
  tp: 2
  sequence_parallel: true
  pp: 8
  vp: 4
  layout: "Et|(tt|)*30mL"
  ep: 64
  etp: 1
  micro_batch_size: 1
  zero: 1
  schedule: interleaved_1f1b
  recompute: {granularity: selective, modules: [mla_up_proj, mlp]}
  overlap: {grad_reduce: true, param_gather: true, moe_a2a: false, delay_wgrad: false, shared_expert: false}
  moe: {dispatcher: hybridep, dispatch_dtype: fp8, combine_dtype: bf16, sms: 16, host_sync: auto,
        capacity_factor: dropless, transport: ibgda, grouped_gemm: true,
        load: {kind: zipf, max_over_mean: 1.3, scope: rank, seed: 1}}
stack: {cuda_graphs: [attn, moe_router, moe_preprocess]}
calibration: auto
)";

constexpr const char* kShardedExample = R"(schema: stepcast/scenario/1
name: titan-8b-h100x128
framework: torchtitan
model: llama-3.1-8b
gpus: 128
cluster:
  base: hgx-h100
  gpu: {name: H100-SXM, memory: 96 GiB, hbm_bandwidth: 2.4 TB/s, power_limit: 500 W}
  nic: {rate: 400 Gb/s, per_gpu: 1, kind: roce}
training:
  sequence_length: 8192
  global_batch_size: 256
  precision: {params: fp32, compute: bf16, grads: fp32, grad_reduce: fp32}
  optimizer: {name: adamw, moments: fp32, fused: true}
plan:
  zero: 3
  dp_shard: 128
  dp_replicate: 1
  fsdp: {version: 2, unit: block, prefetch: 1, reshard_after_forward: auto}
  micro_batch_size: 2
  recompute: {mode: selective, policy: op}
stack: {compile: block, cuda_graphs: none, attention: sdpa_flash}
observed:
  tokens_per_s_per_gpu: 6514
  memory_reserved: 62.0 GiB
  source: torchtitan benchmarks 2024-12, titan-005
)";

TEST(KnownKey, FullExamplesOfTheFormatAreKnown) {
  for (const char* example : {kDenseExample, kExpertExample, kShardedExample}) {
    const std::vector<Problem> problems = problems_of(example);
    const bool known = std::all_of(problems.begin(), problems.end(),
                                   [](const Problem& problem) { return problem.kind == ErrorKind::kUnsupported; });
    EXPECT_TRUE(known) << to_text(problems);
  }
}

TEST(KnownKey, MinimalScenarioOfTheFormatIsAccepted) {
  EXPECT_EQ(to_text(problems_of(R"(model: llama-3.1-405b
cluster: hgx-h100-roce400-rail
gpus: 2048
training: {sequence_length: 8192, global_batch_size: 512}
plan: {tp: 8, cp: 2, pp: 16, vp: 8}
)")),
            "");
}

}  // namespace
}  // namespace stepcast::plan
