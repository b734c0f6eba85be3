// Questions of practitioners with the right answer. The inputs are in cases/, each with its source.
#include <gtest/gtest.h>

#include "plan/scenario_reader.h"
#include "tests/import/imported_text.h"

namespace stepcast::imports {
namespace {

Answer megatron_case(const std::string& name) { return answer(request_for("megatron", case_file(name))); }

void expect_mentions(const Answer& a, const std::vector<std::string>& texts) {
  EXPECT_FALSE(a.problems.empty());
  const std::string said = a.problem_text();
  for (const std::string& text : texts) EXPECT_NE(said.find(text), std::string::npos) << text << " in\n" << said;
}

TEST(Cases, D01SevenLayersOnTwoStages) {
  const Answer a = megatron_case("D01.sh");
  EXPECT_EQ(a.problems.size(), 1U) << a.problem_text();
  expect_mentions(a, {"7", "2", "pipeline", "--decoder-first-pipeline-num-layers 3", "Ettt|ttttL"});
}

// The layout it suggests is taken, and gives stages of 3 and 4 layers.
TEST(Cases, D01TakesTheSuggestedLayout) {
  const Answer a = import_text("megatron", "run.sh",
                               "torchrun --nproc_per_node=2 pretrain_gpt.py --num-layers 7 --hidden-size 1024 "
                               "--num-attention-heads 16 --seq-length 1024 --global-batch-size 8 --swiglu "
                               "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout \"Ettt|ttttL\"\n");
  ASSERT_EQ(a.problem_text(), "");
  const ScratchFolder folder;
  config::ScenarioSource source;
  source.file = folder.write("run.yaml", scenario_yaml(a.imported));
  const plan::ReadScenario read = plan::read_scenario(source);
  ASSERT_EQ(read.scenario.plan.layout.size(), 2U);
  EXPECT_EQ(read.scenario.plan.layout[0].layers, 3);
  EXPECT_EQ(read.scenario.plan.layout[1].layers, 4);
}

TEST(Cases, D02ThirtyLayersOnFourStages) {
  expect_mentions(megatron_case("D02.sh"), {"30", "4", "30 + 2 = 32 divides by 4: 7, 8 x 2, 7"});
}

TEST(Cases, D03FiveLayersInVirtualStagesOfTwo) {
  const Answer a = megatron_case("D03.sh");
  EXPECT_EQ(a.problems.size(), 1U) << a.problem_text();
  expect_mentions(a, {"80 layers", "16 are 5", "2", "--num-layers-per-virtual-pipeline-stage 1 or 5"});
}

TEST(Cases, D04FortySixLayersOnFourStages) {
  expect_mentions(megatron_case("D04.sh"),
                  {"46", "4", "46 + 2 = 48 divides by 4: 11, 12 x 2, 11",
                   "--decoder-first-pipeline-num-layers 11 --decoder-last-pipeline-num-layers 11"});
}

TEST(Cases, D06TooFewMicrobatchesForNanotron) {
  expect_mentions(answer(request_for("nanotron", case_file("D06.yaml"))),
                  {"batch_accumulation_per_replica 1", "pp - 1 = 7"});
}

TEST(Cases, D07KeyValueHeadsOfTorchtitan) {
  ImportRequest request = request_for("torchtitan", case_file("D07.sh"));
  request.model = case_file("D07.json");
  const Answer a = answer(request);
  EXPECT_EQ(a.problems.size(), 1U) << a.problem_text();
  expect_mentions(a, {"n_kv_heads 2", "tensor_parallel_degree 4"});
  // Megatron-LM replicates: 4 is a multiple of 2.
  const Answer megatron = import_text("megatron", "run.sh",
                                      "torchrun --nproc_per_node=8 pretrain_gpt.py --tensor-model-parallel-size 4 "
                                      "--num-layers 4 --hidden-size 2048 --num-attention-heads 32 --swiglu "
                                      "--group-query-attention --num-query-groups 2 --seq-length 2048\n");
  EXPECT_EQ(megatron.problem_text(), "");
}

// Each of the broken invariants alone, with both values; then all at once, one problem each.
TEST(Cases, D08InvariantsOfMegatron) {
  const std::string start = "torchrun --nproc_per_node=8 pretrain_gpt.py --num-layers 4 --seq-length 128 --swiglu ";
  const std::string good = "--hidden-size 960 --num-attention-heads 12 ";
  const std::string tp = "--tensor-model-parallel-size 4 ";
  struct Broken {
    std::string flags;
    std::vector<std::string> mentions;
  };
  const std::vector<Broken> table = {
      {tp + "--hidden-size 960 --num-attention-heads 10",
       {"--num-attention-heads 10", "--tensor-model-parallel-size 4"}},
      {tp + good + "--group-query-attention --num-query-groups 3", {"--num-query-groups 3", "parallel-size 4"}},
      {good + "--fp16 --bf16", {"--fp16", "--bf16"}},
      {tp + good + "--tensor-parallel-num-weight-shards 6", {"weight-shards 6", "--tensor-model-parallel-size 4"}},
      {good + "--overlap-p2p-communication-warmup-flush", {"warmup-flush", "batched"}},
      {good + "--fp8-format hybrid --fp4-format e2m1 --bf16", {"--fp8-format hybrid", "--fp4-format e2m1"}},
  };
  for (const Broken& broken : table) {
    const Answer a = import_text("megatron", "run.sh", start + broken.flags + "\n");
    EXPECT_EQ(a.problems.size(), 1U) << broken.flags << "\n" << a.problem_text();
    expect_mentions(a, broken.mentions);
  }
  const Answer all = import_text("megatron", "run.sh",
                                 start + tp +
                                     "--hidden-size 960 --num-attention-heads 10 --fp16 --bf16 "
                                     "--tensor-parallel-num-weight-shards 6 --fp8-format hybrid "
                                     "--overlap-p2p-communication-warmup-flush --fp4-format e2m1 "
                                     "--group-query-attention --num-query-groups 3\n");
  EXPECT_EQ(all.problems.size(), 6U) << all.problem_text();
}

TEST(Cases, D08SequenceParallelWithoutTensorParallelIsSwitchedOff) {
  const Answer a = import_text("megatron", "run.sh",
                               "torchrun --nproc_per_node=8 pretrain_gpt.py --num-layers 4 --seq-length 128 --swiglu "
                               "--hidden-size 960 --num-attention-heads 12 --sequence-parallel\n");
  EXPECT_EQ(a.problem_text(), "");
  ASSERT_EQ(a.imported.contradictions.size(), 1U);
  EXPECT_NE(a.imported.contradictions[0].find("switched off"), std::string::npos);
  EXPECT_EQ(a.value("plan.sequence_parallel"), "-");
}

// 6,738,415,616 parameters: the published total of Llama 2 7B, whose shape this is.
TEST(Cases, D10IsLlama7b) {
  ImportRequest request = request_for("megatron", case_file("D10.sh"));
  request.settings = {config::parse_setting("model.vocab_size=32000")};
  request.cluster = "hgx-a100-80";
  const Answer a = answer(request);
  ASSERT_EQ(a.problem_text(), "");
  const ScratchFolder folder;
  config::ScenarioSource source;
  source.file = folder.write("run.yaml", scenario_yaml(a.imported));
  const plan::ReadScenario read = plan::read_scenario(source);
  EXPECT_TRUE(read.violations.empty());
  EXPECT_EQ(models::count_parameters(read.scenario.model).total, 6738415616);
  EXPECT_EQ(read.scenario.plan.dp, 8);
  EXPECT_EQ(read.scenario.plan.zero, 1);
}

TEST(Cases, D20RunsOf70b) {
  const Answer fast = megatron_case("D20-run1.sh");
  EXPECT_EQ(fast.problem_text(), "");
  EXPECT_EQ(fast.value("gpus"), "768");
  EXPECT_EQ(fast.value("plan.recompute.granularity"), "-");
  const Answer slow = megatron_case("D20-run2.sh");
  EXPECT_EQ(slow.problem_text(), "");
  EXPECT_EQ(slow.value("plan.pp"), "8");
  EXPECT_EQ(slow.value("plan.recompute.granularity"), "full");
  EXPECT_EQ(slow.value("plan.recompute.method"), "uniform");
  EXPECT_EQ(slow.value("plan.recompute.num_layers"), "5");
  EXPECT_EQ(slow.ignored("--distribute-saved-activations")->reason, Reason::kNotSupported);
}

TEST(Cases, D23ABatchThatDoesNotDivide) {
  const Answer a = megatron_case("D23.sh");
  EXPECT_EQ(a.problems.size(), 1U) << a.problem_text();
  expect_mentions(a, {"32", "23", "46", "184", "a world of 1024: data parallel 16"});
}

}  // namespace
}  // namespace stepcast::imports
