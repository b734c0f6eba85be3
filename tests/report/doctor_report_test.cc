// What follows from the facts of a machine, and what the screen says of it.
#include "report/doctor_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "report/text.h"

namespace stepcast::report {
namespace {

exec::CudaFacts one_h100() {
  exec::CudaFacts facts{.runtime_version = 13000, .driver_version = 13000, .nccl_version = 22809};
  facts.devices.push_back({"NVIDIA H100 80GB HBM3", 9, 0, 132, 85520809984});
  return facts;
}

// A machine on which all works.
MachineFacts everything() {
  MachineFacts facts;
  facts.version = "stepcast 0.1.0";
  facts.folder = "/opt/stepcast";
  facts.processor = "AMD EPYC 9654";
  facts.cores = 96;
  facts.memory_bytes = 0x1p39;     // 512 GiB
  facts.available_bytes = 0x1p38;  // 256 GiB
  facts.avx512 = true;
  facts.rank = {"stepcast-rank", "/opt/stepcast/stepcast-rank", ""};
  facts.rank_mpi = {"stepcast-rank-mpi", "/opt/stepcast/stepcast-rank-mpi", ""};
  facts.rank_cuda = {"stepcast-rank-cuda", "/opt/stepcast/stepcast-rank-cuda", ""};
  facts.onednn = "oneDNN 2.6.0";
  facts.mpirun = "mpirun (Open MPI) 4.1.4";
  facts.cuda = one_h100();
  facts.environment = {{"NCCL_DEBUG", "INFO"}};
  return facts;
}

// The first state of the backend that is not "works", or none.
std::string reason_of(const MachineFacts& facts, const std::string& backend, const std::string& ranks_as) {
  for (const BackendState& state : judge_backends(facts)) {
    if (state.backend == backend && state.ranks_as == ranks_as) {
      EXPECT_EQ(state.reason.empty(), state.help.empty()) << state.reason;  // what is wrong comes with a way out
      return state.reason;
    }
  }
  return "no such backend";
}

DoctorReport report_of(const MachineFacts& facts) { return {facts, judge_backends(facts), {}}; }

TEST(Doctor, FindsThatAllWorks) {
  for (const BackendState& state : judge_backends(everything())) EXPECT_TRUE(state.works()) << state.reason;
  EXPECT_EQ(judge_backends(everything()).size(), 4U);
  EXPECT_TRUE(
      doctor_screen(report_of(everything())).starts_with("OK  simulation and every backend of run work here\n"));
}

TEST(Doctor, NamesWhatEachBackendLacks) {
  MachineFacts facts = everything();
  facts.rank.path.clear();
  EXPECT_EQ(reason_of(facts, "cpu", "threads"), "stepcast-rank is not built");
  EXPECT_EQ(reason_of(facts, "reference", "threads"), "");
  EXPECT_EQ(reason_of(facts, "cpu", "processes"), "");  // a program of its own

  facts = everything();
  facts.rank_mpi.failure = "libmpi.so.40: cannot open shared object file";
  EXPECT_EQ(reason_of(facts, "cpu", "processes"),
            "stepcast-rank-mpi does not start: libmpi.so.40: cannot open shared object file");

  facts = everything();
  facts.mpirun.clear();
  EXPECT_EQ(reason_of(facts, "cpu", "processes"), "mpirun is not on PATH");
  facts.mpirun = "mpirun (Open MPI) 4.1.4";
  facts.mpirun_failure = "no answer in ten seconds";
  EXPECT_EQ(reason_of(facts, "cpu", "processes"), "mpirun cannot start a process: no answer in ten seconds");

  facts = everything();
  facts.cuda.reset();
  EXPECT_EQ(reason_of(facts, "cuda", "processes"), "stepcast-rank-cuda does not say what CUDA has");
  facts.cuda = exec::CudaFacts{.runtime_version = 13000, .error = 35, .error_text = "too old"};
  EXPECT_EQ(reason_of(facts, "cuda", "processes"), "no NVIDIA driver (error 35)");
  facts.rank_cuda.path.clear();
  EXPECT_EQ(reason_of(facts, "cuda", "processes"), "stepcast-rank-cuda is not built");
}

TEST(Doctor, AnswersWhatWasAsked) {
  MachineFacts facts = everything();
  facts.cuda = exec::CudaFacts{.runtime_version = 13000, .error = 35, .error_text = "too old"};
  DoctorReport report = report_of(facts);
  EXPECT_TRUE(report.passes());  // nothing was asked
  report.asked = report.backends[3];
  EXPECT_FALSE(report.passes());
  EXPECT_TRUE(doctor_screen(report).starts_with("NO  run with cuda does not work here: no NVIDIA driver (error 35)\n"))
      << doctor_screen(report);
  report.asked = report.backends[2];
  EXPECT_TRUE(report.passes());
  EXPECT_TRUE(doctor_screen(report).starts_with("OK  run with cpu, ranks as processes works here\n"));
}

TEST(Doctor, FitsTheScreen) {
  MachineFacts facts = everything();
  facts.rank_mpi.failure = std::string(300, 'x') + " and " + std::string(40, 'y');
  facts.cuda->devices.assign(8, facts.cuda->devices[0]);
  facts.rank_mpi.failure =
      "a library that it needs is not here, which the loader says at some length, naming the "
      "library, the program and the folders in which it has looked for it in vain";
  const std::string screen = doctor_screen(report_of(facts));
  std::istringstream lines(screen);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), kColumns) << line;
  EXPECT_NE(screen.find("96 cores, 512.0 GiB memory, 256.0 GiB available; AVX-512 yes, its bf16 no"), std::string::npos)
      << screen;
  EXPECT_NE(screen.find("NCCL_DEBUG=INFO"), std::string::npos);
}

TEST(Doctor, SaysTheSameInJson) {
  MachineFacts facts = everything();
  facts.cuda->driver_version = 0;
  facts.cuda->error = 35;
  facts.cuda->error_text = "insufficient";
  facts.cuda->devices.clear();
  const auto json = nlohmann::json::parse(doctor_json(report_of(facts)));
  EXPECT_EQ(json["schema"], "stepcast/doctor/1");
  EXPECT_EQ(json["programs"].size(), 3U);
  EXPECT_EQ(json["cuda"]["error"], 35);
  EXPECT_EQ(json["environment"]["NCCL_DEBUG"], "INFO");
  EXPECT_TRUE(json["asked"].is_null());
  EXPECT_TRUE(json["launcher"].is_null());
  ASSERT_EQ(json["backends"].size(), 4U);
  EXPECT_EQ(json["backends"][2]["works"], true);
  EXPECT_TRUE(json["backends"][2]["reason"].is_null());
  EXPECT_EQ(json["backends"][3]["works"], false);
  EXPECT_EQ(json["backends"][3]["reason"], "no NVIDIA driver (error 35)");
}

}  // namespace
}  // namespace stepcast::report
