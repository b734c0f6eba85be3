// One row of each source, field by field, by hand from the table's columns and the recipe its source names.
#include "calibrate/row_scenario.h"

#include <gtest/gtest.h>

#include <vector>

#include "plan/scenario_reader.h"
#include "tests/calibrate/published_rows.h"

namespace stepcast::calibrate {
namespace {

Fields shape(const char* layers, const char* hidden, const char* ffn, const char* heads, const char* kv,
             const char* vocab, const char* positions, const char* tied) {
  return {{"model.num_hidden_layers", layers},
          {"model.hidden_size", hidden},
          {"model.intermediate_size", ffn},
          {"model.num_attention_heads", heads},
          {"model.num_key_value_heads", kv},
          {"model.vocab_size", vocab},
          {"model.max_position_embeddings", positions},
          {"model.tie_word_embeddings", tied}};
}

const Fields kLlama8B = shape("32", "4096", "14336", "32", "8", "128256", "8192", "false");
const Fields kLlama70B = shape("80", "8192", "28672", "64", "8", "128256", "8192", "false");

Fields gpt(const char* positions, const char* biases) {
  return {{"model.hidden_act", "gelu_pytorch_tanh"},
          {"model.normalization", "LayerNorm"},
          {"model.position_embedding_type", positions},
          {"model.add_bias_linear", biases}};
}

// Degrees, batch and dropout, which every row has.
Fields run(const char* gpus, const char* tp, const char* pp, const char* dp, const char* micro, const char* global,
           const char* sequence) {
  return {{"gpus", gpus},
          {"plan.tp", tp},
          {"plan.pp", pp},
          {"plan.dp", dp},
          {"plan.micro_batch_size", micro},
          {"training.global_batch_size", global},
          {"training.sequence_length", sequence}};
}

Fields all(const std::vector<Fields>& parts) {
  Fields fields = {{"training.dropout", "0"}};
  for (const Fields& part : parts) {
    for (const auto& [field, value] : part) fields[field] = value;
  }
  return fields;
}

void expect_fields(const std::string& id, const Fields& expected) {
  const RowScenario scenario = scenario_of(shipped_row(id));
  EXPECT_EQ(scenario.skipped, "") << id;
  EXPECT_EQ(fields_of(scenario), expected) << id;
}

// 126 layers + 2 over 8 * 4 stages; 64 of each rack's 72 GPUs on four racks of 18 trays.
TEST(RowScenario, OfMegatronBridge) {
  expect_fields("mbridge-015", all({shape("126", "16384", "53248", "128", "8", "128256", "8192", "false"),
                                    run("256", "4", "8", "8", "1", "1536", "8192"),
                                    {{"framework", "megatron-core"},
                                     {"cluster.base", "gb300-nvl72"},
                                     {"placement.exclude", "[16, 17, 34, 35, 52, 53, 70, 71]"},
                                     {"plan.zero", "1"},
                                     {"plan.vp", "4"},
                                     {"plan.sequence_parallel", "true"},
                                     {"plan.overlap.tp_comm", "true"},
                                     {"plan.overlap.param_gather", "true"},
                                     {"training.precision.compute", "fp8"},
                                     {"training.precision.fp8_recipe", "tensorwise"},
                                     {"training.precision.grads", "bf16"}}}));
}

TEST(RowScenario, OfMegatronFsdp) {
  expect_fields("mbridge-242", all({kLlama8B,
                                    run("8", "1", "1", "8", "1", "128", "8192"),
                                    {{"framework", "plain"},
                                     {"cluster.base", "hgx-h100"},
                                     {"model.vocab_pad_to", "128"},
                                     {"plan.zero", "3"},
                                     {"plan.recompute.granularity", "full"},
                                     {"plan.recompute.method", "block"},
                                     {"plan.recompute.num_layers", "5"},
                                     {"stack.attention", "cudnn"},
                                     {"training.precision.compute", "fp8"},
                                     {"training.precision.fp8_recipe", "tensorwise"},
                                     {"training.precision.params", "fp32"},
                                     {"training.precision.grad_reduce", "bf16"}}}));
}

TEST(RowScenario, OfDgxCloud) {
  expect_fields("dgxc-001", all({kLlama8B,
                                 run("8", "1", "1", "4", "1", "128", "8192"),
                                 {{"framework", "megatron-core"},
                                  {"cluster.base", "hgx-h100"},
                                  {"plan.zero", "1"},
                                  {"plan.cp", "2"},
                                  {"plan.overlap.param_gather", "true"},
                                  {"stack.env.NCCL_NVLS_ENABLE", "\"0\""},
                                  {"training.precision.compute", "bf16"},
                                  {"training.precision.grads", "bf16"}}}));
}

TEST(RowScenario, OfMaxText) {
  expect_fields("dgxc-191", all({kLlama70B,
                                 run("512", "1", "1", "512", "2", "1024", "8192"),
                                 {{"framework", "plain"},
                                  {"cluster.base", "hgx-h100-ndr400-rail"},
                                  {"plan.zero", "3"},
                                  {"plan.dp_shard", "128"},
                                  {"training.precision.compute", "bf16"},
                                  {"training.precision.params", "fp32"},
                                  {"training.precision.grad_reduce", "bf16"}}}));
}

TEST(RowScenario, OfNemoAndMlPerf) {
  const Fields h100 = {{"framework", "megatron-core"},
                       {"cluster.base", "hgx-h100-ndr400-rail"},
                       {"plan.zero", "1"},
                       {"plan.overlap.param_gather", "true"},
                       {"training.precision.compute", "fp8"},
                       {"training.precision.fp8_recipe", "delayed"},
                       {"training.precision.grads", "bf16"}};
  expect_fields("nemo2407-001",
                all({shape("24", "4096", "16384", "32", "32", "51200", "2048", "true"), gpt("learned_absolute", "true"),
                     run("64", "1", "1", "64", "4", "2048", "2048"), h100}));
  expect_fields("mlperf-002",
                all({shape("96", "12288", "49152", "96", "96", "51200", "2048", "true"),
                     gpt("learned_absolute", "true"),
                     run("8192", "4", "8", "256", "1", "4096", "2048"),
                     h100,
                     {{"plan.vp", "12"}, {"plan.sequence_parallel", "true"}, {"plan.overlap.tp_comm", "true"}}}));
}

// The H100 network of these runs is not stated: the preset's stays. The tied table is two under ZeRO-3.
TEST(RowScenario, OfMosaic) {
  const Fields mosaic = {{"framework", "plain"},
                         {"cluster.base", "hgx-h100-ndr400-rail"},
                         {"plan.zero", "3"},
                         {"stack.attention", "flash2"},
                         {"training.lm_head_loss", "unfused"},
                         {"training.precision.compute", "bf16"},
                         {"training.precision.params", "fp32"}};
  expect_fields("mpt-001", all({shape("80", "8192", "32768", "64", "64", "50368", "2048", "false"),
                                gpt("learned_absolute", "false"),
                                run("512", "1", "1", "512", "8", "4096", "2048"),
                                mosaic,
                                {{"plan.recompute.granularity", "full"}, {"training.precision.grad_reduce", "fp32"}}}));
}

TEST(RowScenario, OfTorchtitanAndTorchao) {
  const Fields titan = {{"framework", "torchtitan"},
                        {"plan.zero", "3"},
                        {"plan.recompute.mode", "selective"},
                        {"plan.recompute.policy", "every 2"},
                        {"training.precision.compute", "bf16"}};
  expect_fields("titan-004", all({kLlama8B,
                                  run("128", "1", "1", "128", "2", "256", "8192"),
                                  titan,
                                  {{"cluster.base", "hgx-h100-96gb-500w-roce400-rail"}}}));
  expect_fields("ao-004",
                all({kLlama8B, run("8", "1", "1", "8", "1", "8", "8192"), titan, {{"cluster.base", "mi300x-8"}}}));
}

TEST(RowScenario, OfMegatronOn2021AndOn2022) {
  const Fields megatron = {
      {"framework", "megatron-core"},        {"cluster.base", "hgx-a100-80-hdr200-rail"}, {"plan.zero", "0"},
      {"stack.attention", "unfused"},        {"stack.gradient_accumulation", "separate"}, {"training.dropout", "0.1"},
      {"training.precision.compute", "fp16"}};
  expect_fields("sc21-001", all({shape("24", "2304", "9216", "24", "24", "51200", "2048", "true"),
                                 gpt("learned_absolute", "true"),
                                 run("32", "1", "1", "32", "16", "512", "2048"),
                                 megatron,
                                 {{"plan.recompute.granularity", "full"}, {"plan.overlap.tp_input_grad", "false"}}}));
  const Fields sequence = {{"plan.vp", "3"},
                           {"plan.sequence_parallel", "true"},
                           {"plan.overlap.grad_reduce", "false"},
                           {"plan.recompute.granularity", "selective"},
                           {"plan.recompute.modules", "[core_attn]"}};
  expect_fields("kort-009", all({shape("105", "20480", "81920", "128", "128", "51200", "2048", "true"),
                                 gpt("learned_absolute", "true"), run("2240", "8", "35", "8", "1", "2240", "2048"),
                                 megatron, sequence}));
}

// Four 100 Gb/s NICs serve eight GPUs.
TEST(RowScenario, OfBloom) {
  expect_fields("bloom-023", all({shape("72", "14336", "57344", "16", "16", "250880", "2048", "true"),
                                  gpt("alibi", "true"),
                                  run("384", "8", "6", "8", "4", "2048", "2048"),
                                  {{"framework", "deepspeed"},
                                   {"cluster.base", "hgx-a100-80-hdr200-rail"},
                                   {"cluster.nic.rate", "100 Gb/s"},
                                   {"cluster.nic.per_gpu", "0.5"},
                                   {"plan.zero", "1"},
                                   {"plan.sequence_parallel", "false"},
                                   {"plan.recompute.granularity", "full"},
                                   {"stack.attention", "unfused"},
                                   {"stack.gradient_accumulation", "separate"},
                                   {"training.lm_head_loss", "fused_vocab_parallel"},
                                   {"training.precision.compute", "fp16"}}}));
}

TEST(RowScenario, OfInternEvo) {
  expect_fields("intern-032", all({shape("32", "4096", "11008", "32", "32", "103168", "2048", "false"),
                                   run("1024", "2", "1", "512", "4", "8192", "2048"),
                                   {{"framework", "plain"},
                                    {"cluster.base", "hgx-a100-80-hdr200-rail"},
                                    {"cluster.nic.rate", "100 Gb/s"},
                                    {"cluster.nic.per_gpu", "0.5"},
                                    {"plan.zero", "1"},
                                    {"plan.dp_shard", "8"},
                                    {"plan.bucket", "512 MiB"},
                                    {"plan.overlap.grad_reduce", "true"},
                                    {"plan.sequence_parallel", "false"},
                                    {"stack.attention", "flash2"},
                                    {"training.precision.compute", "bf16"},
                                    {"training.precision.grads", "bf16"}}}));
}

TEST(RowScenario, OfKwaiAndSimuMax) {
  expect_fields("kwai-013", all({shape("80", "8192", "22016", "64", "64", "32004", "4096", "false"),
                                 run("200", "4", "5", "10", "1", "250", "4096"),
                                 {{"framework", "megatron-core"},
                                  {"cluster.base", "hgx-h800-ndr400-rail"},
                                  {"cluster.nic.rate", "100 Gb/s"},
                                  {"cluster.nic.per_gpu", "1"},
                                  {"plan.zero", "1"},
                                  {"plan.vp", "4"},
                                  {"plan.sequence_parallel", "true"},
                                  {"plan.overlap.tp_comm", "true"},
                                  {"training.precision.compute", "bf16"},
                                  {"training.precision.grads", "fp32"}}}));
  expect_fields("simu-001", all({shape("12", "8192", "28672", "64", "8", "128256", "4096", "false"),
                                 run("8", "1", "2", "4", "1", "16", "4096"),
                                 {{"framework", "megatron-core"},
                                  {"cluster.base", "hgx-b200"},
                                  {"plan.zero", "1"},
                                  {"plan.overlap.grad_reduce", "false"},
                                  {"training.precision.compute", "bf16"},
                                  {"training.precision.grads", "fp32"}}}));
}

// 1.34 thousand million parameters are those of one table: 16 (4 * 2048^2 + 3 * 2048 * 8192) + 131072 * 2048.
TEST(RowScenario, OfNanotron) {
  expect_fields("usp-001", all({shape("16", "2048", "8192", "32", "32", "131072", "4096", "true"),
                                run("8", "1", "1", "8", "2", "256", "4096"),
                                {{"framework", "nanotron"},
                                 {"cluster.base", "hgx-h100"},
                                 {"plan.zero", "0"},
                                 {"training.precision.compute", "bf16"},
                                 {"training.precision.grads", "fp32"}}}));
}

TEST(RowScenario, OfFms) {
  expect_fields("fms-001", all({shape("32", "4096", "11008", "32", "32", "32000", "4096", "false"),
                                run("128", "1", "1", "128", "2", "256", "4096"),
                                {{"framework", "plain"},
                                 {"cluster.base", "hgx-a100-80-hdr200-rail"},
                                 {"cluster.nic.rate", "50 Gb/s"},
                                 {"cluster.nic.per_gpu", "1"},
                                 {"plan.zero", "3"},
                                 {"plan.dp_shard", "8"},
                                 {"stack.attention", "flash2"},
                                 {"training.lm_head_loss", "unfused"},
                                 {"training.precision.compute", "bf16"},
                                 {"training.precision.params", "fp32"},
                                 {"training.precision.grad_reduce", "bf16"}}}));
}

TEST(RowScenario, OfSwiftAndMlEngineering) {
  expect_fields("swift-001", all({shape("48", "5120", "13824", "40", "8", "152064", "8192", "false"),
                                  run("8", "4", "1", "2", "1", "16", "8192"),
                                  {{"framework", "megatron-core"},
                                   {"cluster.base", "hgx-a800"},
                                   {"model.config", "qwen2.5-32b"},
                                   {"plan.zero", "1"},
                                   {"plan.sequence_parallel", "true"},
                                   {"plan.recompute.granularity", "selective"},
                                   {"plan.recompute.modules", "[core_attn]"},
                                   {"training.precision.compute", "bf16"},
                                   {"training.precision.grads", "fp32"}}}));
  expect_fields("mleng-005", all({shape("32", "4096", "14336", "32", "8", "128256", "65536", "false"),
                                  run("8", "1", "1", "8", "1", "8", "65536"),
                                  {{"framework", "deepspeed"},
                                   {"cluster.base", "hgx-h200"},
                                   {"plan.zero", "3"},
                                   {"plan.recompute.granularity", "full"},
                                   {"stack.attention", "flash3"},
                                   {"training.lm_head_loss", "fused"},
                                   {"training.precision.compute", "bf16"}}}));
}

// What the strict reader makes of one row of each model family: its parameters are those published, in the source's
// unit and rounding. The tied table of MPT is two (50,368 * 2,560 more), its norms have biases.
TEST(RowScenario, HasThePublishedParameters) {
  struct Case {
    const char* id;
    double billions;
    double tolerance;
  };
  for (const Case& c : {Case{"mbridge-015", 405.9, 0.1}, Case{"mlperf-002", 175, 0.5}, Case{"usp-001", 1.34, 0.005},
                        Case{"bloom-023", 181, 0.5}, Case{"sc21-001", 1.7, 0.05}, Case{"swift-001", 14.77, 0.005},
                        Case{"kwai-013", 65.2, 0.1}, Case{"mpt-013", 2.652 + 0.129, 0.01}}) {
    config::ScenarioSource source;
    source.settings = scenario_of(shipped_row(c.id)).settings;
    const plan::ReadScenario read = plan::read_scenario(source);
    EXPECT_TRUE(read.violations.empty()) << c.id << read.violations.front().message;
    EXPECT_NEAR(static_cast<double>(models::count_parameters(read.scenario.model).total) / 1e9, c.billions, c.tolerance)
        << c.id;
  }
}

}  // namespace
}  // namespace stepcast::calibrate
