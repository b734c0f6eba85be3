// Megatron arguments: names, defaults and rules of Megatron-LM d98e8a64, megatron/training/arguments.py.
#include <gtest/gtest.h>

#include "import/megatron_flags.h"
#include "plan/scenario_reader.h"
#include "tests/import/imported_text.h"

namespace stepcast::imports {
namespace {

const std::string kModel =
    "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --swiglu --normalization RMSNorm "
    "--disable-bias-linear --position-embedding-type rope --untie-embeddings-and-output-weights --vocab-size 32000 "
    "--seq-length 4096 --max-position-embeddings 4096 --attention-dropout 0 --hidden-dropout 0 --bf16 ";

Answer llama(const std::string& flags, ImportRequest request = {}) {
  return import_text("megatron", "run.sh", "torchrun --nproc_per_node 8 pretrain_gpt.py " + kModel + flags + "\n",
                     std::move(request));
}

TEST(MegatronImport, WritesOutDefaultsThatDiffer) {
  const Answer a = llama("--global-batch-size 64 --tensor-model-parallel-size 2");
  ASSERT_EQ(a.problem_text(), "");
  EXPECT_EQ(a.value("plan.zero"), "0");
  EXPECT_EQ(a.value("plan.sequence_parallel"), "false");
  EXPECT_EQ(a.value("plan.overlap.grad_reduce"), "false");
  EXPECT_EQ(a.value("model.intermediate_size"), "10880");  // int(4096 * 8 / 3 / 64) * 64 = 170 * 64
  EXPECT_EQ(a.value("training.precision.grads"), "fp32");
  EXPECT_EQ(a.value("gpus"), "8");
}

TEST(MegatronImport, DerivesTheBatchItIsNotGiven) {
  const Answer a = llama("--micro-batch-size 2 --tensor-model-parallel-size 2");
  EXPECT_EQ(a.value("training.global_batch_size"), "8");  // 2 sequences * dp 8 / 2
}

TEST(MegatronImport, TakesOptimizerInstancesAndNarrowStates) {
  const Answer a = llama(
      "--global-batch-size 64 --use-distributed-optimizer --num-distributed-optimizer-instances 2 "
      "--grad-reduce-in-bf16 --use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16");
  ASSERT_EQ(a.problem_text(), "");
  const ScratchFolder folder;
  config::ScenarioSource source;
  source.file = folder.write("run.yaml", scenario_yaml(a.imported));
  const plan::Scenario s = plan::read_scenario(source).scenario;
  EXPECT_EQ(s.plan.shards(), 4);
  EXPECT_EQ(s.plan.dp_replicate, 2);
  EXPECT_EQ(s.training.gradients, program::DType::kBf16);
  EXPECT_EQ(s.training.moments, program::DType::kBf16);
}

TEST(MegatronImport, WritesAScenarioThatItsReaderTakes) {
  const ScratchFolder folder;
  const Answer a = llama(
      "--global-batch-size 64 --tensor-model-parallel-size 2 --use-distributed-optimizer "
      "--sequence-parallel --recompute-activations");
  ASSERT_EQ(a.problem_text(), "");
  config::ScenarioSource source;
  source.file = folder.write("run.yaml", scenario_yaml(a.imported));
  const plan::ReadScenario read = plan::read_scenario(source);
  EXPECT_TRUE(read.violations.empty());
  EXPECT_EQ(read.scenario.plan.tp, 2);
  EXPECT_EQ(read.scenario.plan.zero, 1);
  EXPECT_EQ(read.scenario.plan.dp, 4);
  EXPECT_TRUE(read.scenario.plan.recompute.core_attn);
  EXPECT_EQ(read.scenario.model.layers, 32);
}

TEST(MegatronImport, AsksForAVariableOnlyWhereItCounts) {
  const Answer a = llama("--global-batch-size $GBS --save $DIR --load=$DIR/x");
  ASSERT_EQ(a.problems.size(), 1U) << a.problem_text();
  EXPECT_NE(a.problem_text().find("--define GBS=VALUE"), std::string::npos);
  ImportRequest request;
  request.defines = {{"GBS", "32"}};
  EXPECT_EQ(llama("--global-batch-size $GBS --save $DIR", request).value("training.global_batch_size"), "32");
}

TEST(MegatronImport, AsksForArgumentsThatAVariableMayHide) {
  EXPECT_NE(llama("--global-batch-size 8 $EXTRA").problem_text().find("--define EXTRA="), std::string::npos);
}

TEST(MegatronImport, SortsWhatItIgnores) {
  const Answer a =
      import_text("megatron", "run.sh",
                  "torchrun --nproc_per_node 8 train_fork.py " + kModel +
                      "--global-batch-size 8 --lr 1e-4 --defer-embedding-wgrad-compute --our-own-loss 2\n");
  ASSERT_EQ(a.problem_text(), "");
  EXPECT_EQ(a.ignored("--lr")->reason, Reason::kNoInfluence);
  EXPECT_EQ(a.ignored("--defer-embedding-wgrad-compute")->reason, Reason::kNotSupported);
  const Ignored* unknown = a.ignored("--our-own-loss");
  ASSERT_NE(unknown, nullptr);
  EXPECT_EQ(unknown->reason, Reason::kUnknown);
  EXPECT_NE(import_report(a.imported).find("1 name (listed by --json)"), std::string::npos)
      << import_report(a.imported);
}

TEST(MegatronImport, TakesTheLastOfTwoAndTells) {
  const Answer a = llama("--micro-batch-size 1 --global-batch-size 16 --micro-batch-size 2");
  EXPECT_EQ(a.value("plan.micro_batch_size"), "2");
  ASSERT_EQ(a.imported.contradictions.size(), 1U);
  EXPECT_NE(a.imported.contradictions[0].find("--micro-batch-size 2 holds"), std::string::npos);
}

TEST(MegatronImport, TakesUnderscores) {
  const Answer a = llama("--global_batch_size=16 --tensor_model_parallel_size 2");
  EXPECT_EQ(a.value("training.global_batch_size"), "16");
  EXPECT_EQ(a.value("plan.tp"), "2");
}

TEST(MegatronImport, WritesEveryWayToSplitLayers) {
  const std::string pipeline = "--global-batch-size 64 --pipeline-model-parallel-size 4 ";
  EXPECT_EQ(llama(pipeline).value("plan.layout"), "-");
  // 30 counted layers: 32 - 2, so each of 4 ranks counts (30 + 2) / 4 = 8.
  const std::string thirty = pipeline + "--num-layers 30 ";
  EXPECT_EQ(llama(thirty + "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split")
                .value("plan.layout"),
            "[7, 8, 8, 7]");
  EXPECT_EQ(llama(thirty + "--decoder-first-pipeline-num-layers 6").value("plan.layout"), "[6, 8, 8, 8]");
  EXPECT_EQ(llama(pipeline + "--num-virtual-stages-per-pipeline-rank 2").value("plan.vp"), "2");
  EXPECT_EQ(llama(pipeline + "--num-layers-per-virtual-pipeline-stage 2").value("plan.vp"), "4");
  // Ranks of 6 and 8 layers in two chunks each: 3 and 4.
  EXPECT_EQ(llama(thirty + "--decoder-first-pipeline-num-layers 6 --num-virtual-stages-per-pipeline-rank 2")
                .value("plan.layout"),
            "[3, 4, 4, 4, 3, 4, 4, 4]");
  EXPECT_EQ(llama(pipeline + "--pipeline-model-parallel-layout 'Et*8|t*8|t*8|t*8L'").value("plan.layout"),
            "\"Et*8|t*8|t*8|t*8L\"");
}

TEST(MegatronImport, ReadsArgumentsInYaml) {
  const std::string yaml = R"(ENV_VARS: {NCCL_NVLS_ENABLE: 0}
MODEL_ARGS:
  --num-layers: 16
  --hidden-size: 2048
  --num-attention-heads: 16
  --swiglu: true
  --seq-length: 2048
  --micro-batch-size: 1
  --global-batch-size: 8
  --sequence-parallel: false
  --vocab-size: 32000
)";
  ImportRequest request;
  request.gpus = 8;
  const Answer a = import_text("megatron", "zoo.yaml", yaml, request);
  ASSERT_EQ(a.problem_text(), "");
  EXPECT_EQ(a.value("model.num_hidden_layers"), "16");
  EXPECT_EQ(a.value("stack.env"), "{NCCL_NVLS_ENABLE: 0}");
  EXPECT_EQ(a.value("model.hidden_act"), "silu");
  const std::string fields =
      "model: {num_layers: 4, hidden_size: 64, num_attention_heads: 4, add_bias_linear: false,\n"
      "  share_embeddings_and_output_weights: false, seq_length: 128, fp8: null, _target_: x}\n"
      "train: {global_batch_size: 8, micro_batch_size: 1}\n";
  const Answer b = import_text("megatron", "args.yaml", fields, request);
  ASSERT_EQ(b.problem_text(), "");
  EXPECT_EQ(b.value("model.tie_word_embeddings"), "false");
  EXPECT_EQ(b.value("model.hidden_act"), "gelu_new");
  EXPECT_EQ(b.value("model.add_bias_linear"), "false");
}

TEST(MegatronImport, LetsASettingReplaceWhatItNames) {
  ImportRequest request;
  request.settings = {config::parse_setting("plan.recompute=none"),
                      config::parse_setting("cluster.nic={rate: 200 Gb/s}")};
  const Answer a = llama("--global-batch-size 8 --recompute-activations", request);
  EXPECT_EQ(a.value("plan.recompute"), "none");
  EXPECT_EQ(a.value("plan.recompute.granularity"), "-");
  EXPECT_EQ(a.value("cluster.base"), "hgx-h100");
}

// Slurm starts 4 * 8 tasks; the quoted command is opened, the one that only prints is not read.
TEST(MegatronImport, FindsTheLaunchInASlurmScript) {
  const Answer a = import_text("megatron", "run.sbatch",
                               "#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=8\n"
                               "ARGS=\"" +
                                   kModel +
                                   "--global-batch-size 64\"\n"
                                   "echo python pretrain_gpt.py $ARGS --micro-batch-size 7\n"
                                   "python tools/preprocess_data.py --workers 8 --tokenizer-type GPT2BPETokenizer\n"
                                   "srun -l bash -c \"python pretrain_gpt.py $ARGS\"\n");
  ASSERT_EQ(a.problem_text(), "");
  EXPECT_EQ(a.value("gpus"), "32");
  EXPECT_EQ(a.value("plan.micro_batch_size"), "1");
  ASSERT_EQ(a.imported.contradictions.size(), 1U);  // the other program is told
  EXPECT_NE(a.imported.contradictions[0].find("line 6 is read; line 5"), std::string::npos);
}

TEST(MegatronFlags, KnowsSpellings) {
  EXPECT_TRUE(is_megatron_flag("tensor-model-parallel-size"));
  EXPECT_TRUE(is_megatron_flag("no-rope-fusion") || is_megatron_flag("no-persist-layer-norm"));
  EXPECT_FALSE(is_megatron_flag("tensor-modl-parallel-size"));
  EXPECT_EQ(complete_megatron_flag("tensor-model-parallel-s"), "tensor-model-parallel-size");
  EXPECT_EQ(complete_megatron_flag("num-"), "");
  EXPECT_EQ(nearest_megatron_flags("hiden-size").front(), "--hidden-size");
}

}  // namespace
}  // namespace stepcast::imports
