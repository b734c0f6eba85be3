// How many devices a script starts, which of its branches run, and what it asks for by name.
#include <gtest/gtest.h>

#include "tests/import/imported_text.h"

namespace stepcast::imports {
namespace {

const std::string kTraining =
    "pretrain_gpt.py --num-layers 4 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 "
    "--max-position-embeddings 1024 --vocab-size 32000 --bf16 --global-batch-size 64 --lr 1 ";

Answer script(const std::string& text, const std::map<std::string, std::string>& defines = {}) {
  ImportRequest request;
  request.defines = defines;
  return import_text("megatron", "run.sh", text, request);
}

std::string problem(const std::string& text) { return script(text).problem_text(); }

void expect_asked(const std::string& said, const std::string& variable, int line) {
  EXPECT_NE(said.find("--define " + variable + "="), std::string::npos) << said;
  EXPECT_NE(said.find("run.sh:" + std::to_string(line)), std::string::npos) << said;
}

// A number of nodes without a value is no single node.
TEST(Launch, AsksForTheNodesByName) {
  const std::string start = "torchrun --nproc_per_node 8 --nnodes ";
  const std::string hosts = "N=$(scontrol show hostnames $SLURM_JOB_NODELIST | wc -l)\n";
  expect_asked(problem(hosts + start + "$N " + kTraining), "N", 2);
  for (const char* name : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES", "WORLD_NODES", "PET_NNODES"}) {
    const Answer a = script(start + "${" + name + "} " + kTraining);
    ASSERT_EQ(a.problems.size(), 1U) << a.problem_text();
    EXPECT_EQ(a.problems[0].where.field, "--nnodes");
    expect_asked(a.problem_text(), name, 1);
    EXPECT_EQ(script(start + "$" + name + " " + kTraining, {{name, "4"}}).value("gpus"), "32");  // 4 * 8
  }
  EXPECT_EQ(script("#SBATCH --nodes=2\n" + start + "$SLURM_NNODES " + kTraining).value("gpus"), "16");
  ImportRequest request;
  request.gpus = 24;
  EXPECT_EQ(
      import_text("megatron", "run.sh", start + "$N " + kTraining + " --global-batch-size 24", request).value("gpus"),
      "24");
}

TEST(Launch, SaysThatOneNodeIsAssumed) {
  const Answer a = script("torchrun --nproc_per_node 8 " + kTraining);
  EXPECT_EQ(a.value("gpus"), "8");
  EXPECT_NE(import_report(a.imported).find("assumed: 1 node, torchrun's default"), std::string::npos);
  const Answer stated = script("torchrun --nproc_per_node 8 --nnodes 1 " + kTraining);
  EXPECT_EQ(import_report(stated.imported).find("1 node"), std::string::npos);
}

// srun starts one torchrun a node; each starts 8 processes.
TEST(Launch, CountsTheProcessesOfTorchrunNotItsCopies) {
  const std::string both = "srun --nodes=4 --ntasks-per-node=1 torchrun --nproc-per-node 8 ";
  EXPECT_EQ(script(both + kTraining).value("gpus"), "32");
}

TEST(Launch, RefusesCountsBelowOne) {
  EXPECT_NE(problem("\ntorchrun --nproc_per_node 0 --nnodes 2 " + kTraining).find("run.sh:2: --nproc-per-node"),
            std::string::npos);
}

const std::string kDebug =
    "OPTS=\"" + kTraining + "\"\nif [[ $DEBUG == 1 ]]; then\n  OPTS=\"$OPTS --num-layers 8\"\nfi\n";

// What is set before the branch still shows which command trains; the variable that decides is asked for.
TEST(Branches, AskForTheVariableThatDecides) {
  for (const char* start : {"torchrun --nproc_per_node 8 ", "srun -n 8 python "}) {
    const Answer a = script(kDebug + start + "$OPTS\n");
    ASSERT_EQ(a.problems.size(), 1U) << a.problem_text();
    expect_asked(a.problem_text(), "DEBUG", 3);
    EXPECT_EQ(script(kDebug + start + "$OPTS\n", {{"DEBUG", "1"}}).value("model.num_hidden_layers"), "8");
    EXPECT_EQ(script(kDebug + start + "$OPTS\n", {{"DEBUG", ""}}).value("model.num_hidden_layers"), "4");
  }
  const std::string only_there =
      "if [ \"$SIZE\" = big ]; then\n A=\"--num-layers 8\"\nelse\n A=\"--num-layers 4\"\nfi\n";
  for (const char* start : {"srun -n 8 python train.py $A\n", "srun -n 8 bash -c \"python train.py $A\"\n"}) {
    expect_asked(problem(only_there + start), "SIZE", 6);
  }
}

// A number in doubt matters only where the argument does.
TEST(Branches, DoNotAskWhereNothingDependsOnThem) {
  const std::string doubt = "W=2\nif [ -n \"$CI\" ]; then W=1; fi\nif [ -f x ]; then G=1; fi\n";
  EXPECT_EQ(problem(doubt + "torchrun --nproc_per_node 8 " + kTraining + "--num-workers $W"), "");
  expect_asked(problem(doubt + "torchrun --nproc_per_node 8 " + kTraining + "--num-layers $W"), "CI", 4);
  expect_asked(problem(doubt + "torchrun --nproc_per_node 8 " + kTraining + "--num-layers $G"), "G", 4);
  expect_asked(problem(doubt + "torchrun --nproc_per_node 8 --nnodes $W " + kTraining), "CI", 4);
}

// Arguments that only a branch sets that does not run are none; a value may still come from outside.
TEST(Branches, LeaveArgumentsEmptyThatTheySkip) {
  const std::string skipped = "if [ $DEBUG = 1 ]; then X=(--num-layers 8); Y=\"--num-layers 8\"; N=1; fi\n";
  const std::string start = skipped + "torchrun --nproc_per_node 8 " + kTraining;
  EXPECT_EQ(script(start + "\"${X[@]}\" $Y", {{"DEBUG", "0"}}).value("model.num_hidden_layers"), "4");
  expect_asked(script(start + "--num-layers $N", {{"DEBUG", "0"}}).problem_text(), "N", 2);
}

// As bash 5 decides them.
TEST(Branches, TakeWhatATestTells) {
  const auto layers = [](const std::string& text) {
    return script("S=8b\nN=4\nL=1\n" + text + "\ntorchrun --nproc_per_node 8 " + kTraining + "--num-layers $L")
        .value("model.num_hidden_layers");
  };
  EXPECT_EQ(layers("if [ $S = 8b ]; then L=2; elif [ -f x ]; then L=3; else L=4; fi"), "2");
  EXPECT_EQ(layers("if [[ \"$S\" != 8b ]]; then L=2; elif [ $N -ge 4 ]; then L=3; else L=4; fi"), "3");
  EXPECT_EQ(layers("if ! [ -n \"$S\" ]; then L=2; elif false; then L=3; else L=4; fi"), "4");
  EXPECT_EQ(layers("if [ $S = 8b ] && [ $N -lt 4 ]; then L=2; fi"), "1");
  EXPECT_EQ(layers("[ $N -eq 4 ] && L=5"), "5");
  EXPECT_EQ(layers("[ $N -eq 3 ] && L=5 || L=6"), "6");
  EXPECT_EQ(layers("if [ $N -eq 4 ]; then if [ $S = x ]; then L=7; else L=8; fi; fi"), "8");
  EXPECT_EQ(layers("if false; then torchrun --nproc_per_node 2 " + kTraining + "--bf16 --fp16; fi"), "1");
  EXPECT_EQ(layers("if [ -f x ]; then L=2; elif true; then L=3; fi"), "-");  // L=2 if there is a file x
}

// What stands behind an array in a quoted command reaches the program.
TEST(Launch, ReadsOnBehindAnArrayInAQuotedCommand) {
  const std::string head =
      "#SBATCH -N 4\n#SBATCH --ntasks-per-node=8\n"
      "MODEL=(--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 "
      "--max-position-embeddings 4096 --vocab-size 32000 --bf16)\n"
      "PAR=\"--tensor-model-parallel-size 4 --global-batch-size 128 --use-distributed-optimizer\"\n";
  const Answer a = script(head + "srun bash -c \"python pretrain_gpt.py ${MODEL[*]} $PAR\"\n");
  ASSERT_EQ(a.problem_text(), "");
  EXPECT_EQ(a.value("gpus"), "32");
  EXPECT_EQ(a.value("plan.tp"), "4");
  EXPECT_EQ(a.value("plan.zero"), "1");
  EXPECT_EQ(a.value("training.global_batch_size"), "128");
  const Answer lost = script(head + "srun bash -c \"python pretrain_gpt.py ${MODEL[@]} $PAR\"\n");
  EXPECT_EQ(lost.problems.size(), 1U) << lost.problem_text();
  EXPECT_NE(lost.problem_text().find("${NAME[*]}"), std::string::npos) << lost.problem_text();
  const Answer late = script(head + "export PAR\nsrun bash -c 'cd /x; python pretrain_gpt.py --bf16 $PAR " +
                             kTraining.substr(16) + "; echo done'\n");
  EXPECT_EQ(late.value("plan.tp"), "4") << late.problem_text();
}

}  // namespace
}  // namespace stepcast::imports
