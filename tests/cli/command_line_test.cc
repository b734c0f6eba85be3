// The command line as scripts rely on it: exit codes, JSON on standard output only.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/cli/program_run.h"

namespace stepcast::cli {
namespace {

struct ExitCase {
  std::string arguments;
  int code;
};

// What is wrong, where, and what would work.
TEST(CommandLine, NamesWhatCannotBePinnedOrPriced) {
  struct Case {
    std::string arguments;
    int code;
    std::vector<std::string> texts;
  };
  const std::string eight = kEight;
  const std::string nonsense = " --set stack.env.NCCL_ALGO=nonsense";
  const std::vector<std::string> words = {"unknown word 'nonsense'", "stack.env.NCCL_ALGO", "Tree, Ring"};
  const std::vector<Case> cases = {
      {"simulate " + eight + nonsense, 3, words},
      {"check " + eight + nonsense, 3, words},
      {"simulate " + eight + " --set stack.env.NCCL_ALGO=NVLSTree", 3, {"leave nothing to run", "stack.env.NCCL_ALGO"}},
      {"simulate " + eight + " --set 'cluster.gpu.peak_bf16=1 FLOP/s'",
       3,
       {"attn.qkv of ", "one op takes longer than 106 days", "help: less work for it"}},
      {"simulate " + eight + " --vp 2 --vpp 3", 2, {"--vp 2 and --vpp 3 both give plan.vp"}},
      {"simulate " + eight + " --set plan.vpp=2 --set plan.vp=4",
       2,
       {"--set plan.vpp=2 and --set plan.vp=4 both give plan.vp"}},
      {"sweep " + eight + " --vary tp=1 --top 0", 2, {"at least 1; got 0"}},
      {"simulate " + eight + " --tp ''", 2, {"--tp", "needs a value"}},
      {"simulate " + eight + " --calibration ''", 2, {"--calibration", "needs a value"}},
      {"simulate " + eight + " --set 'cluster.scale_up.bandwidth=1 B/s'", 3, {" of ", "longer than 106 days"}},
  };
  for (const Case& c : cases) {
    const ProgramRun run = stepcast(c.arguments);
    EXPECT_EQ(run.exit_code, c.code) << c.arguments << run.err;
    for (const std::string& text : c.texts) EXPECT_NE(run.err.find(text), std::string::npos) << text << "\n" << run.err;
  }
}

void expect_exit_codes(const std::vector<ExitCase>& cases) {
  for (const ExitCase& c : cases) {
    const ProgramRun run = stepcast(c.arguments);
    EXPECT_EQ(run.exit_code, c.code) << "stepcast " << c.arguments << "\n" << run.err;
    if (c.code >= 2) {
      EXPECT_EQ(run.out, "") << c.arguments;
      EXPECT_NE(run.err, "") << c.arguments;
    }
  }
}

TEST(CommandLine, NoticesThatHelpCannotBeWritten) {
  for (const std::string arguments : {"help", "help run", "--version", "hardware"}) {
    // Leaves the shell before the redirections that follow.
    EXPECT_EQ(stepcast(arguments + " >/dev/full 2>&1; exit $?; :").exit_code, 5) << arguments;
  }
}

TEST(CommandLine, KeepsItsExitCodes) {
  const std::string tiny = kTiny;
  const std::vector<ExitCase> cases = {
      {"", 0},
      {"--version", 0},
      {"--help", 0},
      {"help", 0},
      {"help exit-codes", 0},
      {"simulate --help", 0},
      {"help run", 0},
      {"hardware", 0},
      {"hardware gb200-nvl72", 0},
      {"hardware --frobnicate", 2},
      {"hardware hgx-h10O", 3},
      {"models", 0},
      {"models deepseek-v3", 0},
      {"models --frobnicate", 2},
      {"models deepseek-v33", 3},
      {"import megatron tests/import/cases/D10.sh", 0},
      {"import megatron tests/import/cases/D10.sh --json", 0},
      {"import megatron", 2},
      {"import tests/import/cases/D10.sh", 2},
      {"import frobnicate tests/import/cases/D10.sh", 2},
      {"import megatron tests/import/cases/D10.sh --define =1", 2},
      {"import megatron none.sh", 3},
      {"import megatron tests/import/cases/D01.sh", 3},
      {"import megatron tests/import/cases/D10.sh --set foo.bar=1", 3},
      {"import megatron tests/import/cases/D10.sh --set plan.pp=5", 0},
      {"import megatron tests/import/cases/D10.sh --cluster hgx-h10O", 3},
      {"import megatron tests/import/cases/D10.sh --out /nonexistent/run.yaml", 5},
      {"frobnicate", 2},
      {"simulate", 2},
      {"simulate llama-3.1-8b", 2},
      {"simulate scenarios/models/llama-3.1-8b.json", 2},
      {"simulate " + tiny + " --frobnicate", 2},
      {"simulate " + tiny + " extra.yaml", 2},
      {"simulate " + tiny + " --set plan.tp", 2},
      {"run " + tiny, 2},
      {"run " + tiny + " --backend tpu", 2},
      {"run " + tiny + " --backend cpu --steps 0", 2},
      {"simulate none.yaml", 3},
      {"simulate " + tiny + " --set plan.tpp=2", 3},
      {"simulate " + tiny + " --set training.sequence_length=0", 3},
      {"simulate " + tiny + " --set plan.pp=5", 3},
      {"simulate " + tiny + " --calibration none", 3},
      {"simulate no-such-model", 3},
      {"check " + tiny, 0},
      {"check " + tiny + " --set gpus=20 --set plan.pp=5", 1},
      {"check none.yaml", 3},
      {"simulate " + tiny + " --ep 2", 4},
      {"simulate " + tiny + " --symbols trace.pftrace", 4},
      // 75,617 ops of two classes are 302,468 on 8 ranks: times 100,000 more than 2e9.
      {"simulate " + kEight + " --set jitter.compute_sigma=0.1 --set jitter.samples=100000", 4},
      {"run " + tiny + " --backend cuda", 5},
      {"compare " + tiny, 4},
      {"simulate " + kEight + " --set plan.zero=3", 4},
      {"simulate deepseek-v3 --cluster hgx-h100 --gpus 8 --seq 4096 --gbs 8", 4},
      {"check " + kEight + " --set model=mixtral-8x7b", 4},
      {"simulate " + tiny + " --trace /nonexistent/step.pftrace", 5},
      {"run " + kEight + " --backend cpu --set training.global_batch_size=1024 --set plan.zero=0 --tp 1 --pp 1", 5},
  };
  expect_exit_codes(cases);
}

TEST(CommandLine, KeepsTheExitCodesOfComparisons) {
  const std::string tiny = kTiny;
  expect_exit_codes({
      {"sweep " + tiny, 2},
      {"sweep " + tiny + " --vary plan.tp", 2},
      {"sweep " + tiny + " --vary plan.tp=1,2", 0},
      {"sweep " + tiny + " --vary plan.tp=1,,2", 2},
      {"sweep " + tiny + " --vary tp=1 --vary plan.tp=2", 2},
      {"sweep " + tiny + " --vary plan.tp=1,2 --format xml", 2},
      {"sweep " + tiny + " --vary plan.tp=1,2 --sort speed", 2},
      {"sweep " + tiny + " --vary plan.tp=1,2 --top 0", 2},
      {"sweep " + tiny + " --vary plan.tpp=1,2", 3},
      {"sweep none.yaml --vary plan.tp=1,2", 3},
      {"sweep " + tiny + " --vary plan.pp=3,5", 1},
      {"diff " + tiny, 2},
      {"diff", 2},
      {"diff " + tiny + " none.yaml", 3},
      {"diff " + tiny + " --set plan.pp=5", 3},
      {"diff " + tiny + " --set plan.ep=2", 4},
      {"diff " + tiny + " --set plan.tp=1", 0},
      {"backtest", 2},
      {"backtest none.csv", 3},
      {"explain", 0},
      {"explain bubble", 0},
      {"explain bubbel", 2},
      {"calibrations", 0},
      {"calibrations h100-default", 0},
      {"calibrations h10O-default", 3},
      {"doctor --backend reference", 0},
      {"doctor --backend tpu", 2},
      {"doctor --ranks-as processes", 2},
      {"doctor --backend reference --ranks-as processes", 2},
  });
}

TEST(CommandLine, GreetsWithoutArguments) {
  const ProgramRun run = stepcast("");
  EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\n'), 18);
  EXPECT_NE(run.out.find("stepcast simulate scenarios/runs/llama-3.1-8b-h100x8.yaml"), std::string::npos);
}

// A refusal is an answer too: a script that reads JSON gets one object, whatever went wrong.
TEST(CommandLine, RefusesInJsonWhereJsonIsAskedFor) {
  struct Case {
    std::string arguments;
    int code;
    const char* kind;
  };
  const std::vector<Case> cases = {
      {"simulate --json " + kEight + " --set training.global_batch_size=127", 3, "input"},
      {"simulate --json " + kEight + " --framework megatron-fsdp", 4, "unsupported"},
      {"diff " + kEight + " --json", 2, "usage"},
      {"simulate --json --nonsense", 2, "usage"},
      {"sweep " + kEight + " --vary plan.tpp=1 --format json", 3, "input"},
  };
  for (const Case& c : cases) {
    const ProgramRun run = stepcast(c.arguments);
    EXPECT_EQ(run.exit_code, c.code) << c.arguments << run.err;
    EXPECT_NE(run.err, "") << c.arguments;
    const auto json = nlohmann::json::parse(run.out, nullptr, false);
    ASSERT_TRUE(json.is_object()) << c.arguments << run.out;
    EXPECT_EQ(json["schema"], "stepcast/error/1");
    EXPECT_EQ(json["exit_code"], c.code);
    ASSERT_FALSE(json["problems"].empty()) << c.arguments;
    EXPECT_EQ(json["problems"][0]["kind"], c.kind) << c.arguments;
    EXPECT_NE(json["problems"][0]["message"], "");
  }
}

}  // namespace
}  // namespace stepcast::cli
