// Every reader answers any text with an import or with stepcast::Error, and what it writes is YAML.
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/fuzz/mutate.h"
#include "tests/import/imported_text.h"
#include "tests/random_cases.h"

namespace stepcast::imports {
namespace {

constexpr std::uint64_t kSeed = 20261130;
const std::uint64_t kCases = testing::random_cases(1500);

struct Outcome {
  std::uint64_t imported = 0;
  std::uint64_t refused = 0;
};

Outcome run(const std::string& format, const std::string& name, const fuzz::Mutator& mutator,
            const std::string& model) {
  const ScratchFolder folder;
  ImportRequest request;
  request.format = format;
  request.model = model;
  request.gpus = 16;
  if (format == "deepspeed") request.settings = {config::parse_setting("training.sequence_length=4096")};
  Outcome outcome;
  for (std::uint64_t i = 0; i < kCases; ++i) {
    request.file = folder.write(name, mutator.text_at(i));
    try {
      const std::string yaml = scenario_yaml(import_file(request));
      config::parse_document(yaml, "run.yaml");
      ++outcome.imported;
    } catch (const Error& fault) {
      EXPECT_FALSE(fault.problems().empty());
      EXPECT_EQ(fault.problems()[0].where.file.find("run.yaml"), std::string::npos) << "case " << i << fault.what();
      ++outcome.refused;
    } catch (const std::exception& fault) {
      ADD_FAILURE() << "case " << i << ": " << fault.what() << "\n" << mutator.text_at(i);
      return outcome;
    }
  }
  return outcome;
}

// Neither all nothing: mutations reach past the parser, and some still mean something.
void expect_both(const Outcome& outcome) {
  EXPECT_GT(outcome.imported * 300, kCases);
  EXPECT_GT(outcome.refused * 30, kCases);
}

TEST(ImportFuzz, ReadsAnyScript) {
  const std::string script = R"(#!/bin/bash
#SBATCH --nodes=4
export NCCL_IB_SL=1
N=${NNODES:-4}
W=$((8 * $N))
if [ $N -gt 8 ]; then X=1; fi
A=(
  --num-layers 32 --hidden-size 4096   # shape
  --num-attention-heads 32 --swiglu --vocab-size 32000
)
B="--seq-length 4096 --bf16 \
  --micro-batch-size 1"
torchrun --nproc_per_node 8 --nnodes $N pretrain_gpt.py "${A[@]}" $B --global-batch-size 128 \
  --tensor-model-parallel-size=2 --pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 | tee log
)";
  const std::string nested = R"(A=(--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096)
export P="--micro-batch-size 1 --global-batch-size 128"
srun -N 2 bash -c "cd /x && torchrun --nproc_per_node 8 pretrain_gpt.py ${A[*]} \$P \${Q:---bf16} 2>&1; echo 'done'"
)";
  expect_both(run("megatron", "run.sh",
                  fuzz::Mutator(kSeed, {script, nested},
                                {"${", "$(", "$((", "`", "<<EOF", "((", "[[", "esac", "done", "A=(", "&&", "\\\n",
                                 "--decoder-first-pipeline-num-layers", "${#A[@]}", "\\$", "'", "2>"}),
                  ""));
}

TEST(ImportFuzz, ReadsAnyToml) {
  const std::string toml =
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\nconverters = [\"float8\"]\n[training]\n"
      "local_batch_size = 4\nseq_len = 8192\n[parallelism]\npipeline_parallel_degree = 2\n"
      "pipeline_parallel_schedule = \"1F1B\"\ndata_parallel_replicate_degree = 2\n";
  expect_both(run("torchtitan", "run.toml",
                  fuzz::Mutator(kSeed + 1, {toml},
                                {"[[", "]]", "\"\"\"", "1979-05-27", "-1", "inf", "0x", "a.b.c", "\u00e9", "\u3000"}),
                  ""));
}

TEST(ImportFuzz, ReadsAnyNanotronYaml) {
  const std::string yaml =
      "model: {dtype: bfloat16, model_config: {hidden_size: 64, num_hidden_layers: 4,\n"
      "  intermediate_size: 128, num_attention_heads: 4, vocab_size: 256}}\n"
      "parallelism: {dp: 4, pp: 2, tp: 2}\ntokens: {sequence_length: 128, micro_batch_size: 1,\n"
      "  batch_accumulation_per_replica: 4}\noptimizer: {zero_stage: 1}\n";
  expect_both(run("nanotron", "run2.yaml", fuzz::Mutator(kSeed + 2, {yaml}, {"pp", "4294967296", "afab"}), ""));
}

TEST(ImportFuzz, ReadsAnyDeepSpeedJson) {
  const std::string json = R"({"train_batch_size": 64, "gradient_accumulation_steps": 2, "bf16": {"enabled": true},
 "zero_optimization": {"stage": 2, "reduce_bucket_size": 5e8, "offload_optimizer": {"device": "cpu"}},
 "tensor_parallel": {"autotp_size": 2}})";
  expect_both(run("deepspeed", "ds.json", fuzz::Mutator(kSeed + 3, {json}, {"auto", "5e8", "stage"}), "llama-3.1-8b"));
}

TEST(ImportFuzz, ReadsAnyOverrides) {
  const std::string text =
      "python run.py model.tensor_model_parallel_size=2 +model.sequence_parallel=True "
      "train.global_batch_size=64 model.seq_length=4096 mixed_precision=bf16_mixed --num_gpus 16\n";
  expect_both(run("megatron-bridge", "run.sh", fuzz::Mutator(kSeed + 4, {text}, {"~", "++", "=", ".", "null"}),
                  "llama-3.1-8b"));
}

}  // namespace
}  // namespace stepcast::imports
