// stepcast doctor: what this machine can do.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/machine_facts.h"
#include "report/doctor_report.h"

namespace stepcast::cli {
namespace {

struct DoctorOptions {
  std::string backend;
  std::string ranks_as;
  bool json = false;
};

constexpr const char* kDoctorExamples = R"(Examples
  stepcast doctor
  stepcast doctor --backend cuda          exits 5 where run --backend cuda cannot work
  stepcast doctor --backend cpu --ranks-as processes --json

Asks the programs beside stepcast for their libraries, CUDA for its driver and devices, mpirun whether it can start a
process. Exits 0 when it has answered, 5 when the backend that was asked for does not work here.)";

// The first of the backend's states that fits.
report::BackendState state_asked_for(const DoctorOptions& options, const std::vector<report::BackendState>& states) {
  const auto fits = [&](const report::BackendState& state) {
    return state.backend == options.backend && (options.ranks_as.empty() || state.ranks_as == options.ranks_as);
  };
  const auto found = std::find_if(states.begin(), states.end(), fits);
  if (found == states.end()) {
    throw Error(ErrorKind::kUsage, "--backend " + options.backend + " has no ranks as " + options.ranks_as, {},
                {"--backend cpu --ranks-as processes"});
  }
  return *found;
}

int doctor(const DoctorOptions& options) {
  if (options.backend.empty() && !options.ranks_as.empty()) {
    throw Error(ErrorKind::kUsage, "--ranks-as asks about a backend", {}, {"--backend cpu --ranks-as processes"});
  }
  report::DoctorReport result;
  result.facts = machine_facts();
  result.backends = report::judge_backends(result.facts);
  if (!options.backend.empty()) result.asked = state_asked_for(options, result.backends);
  print(options.json ? report::doctor_json(result) : report::doctor_screen(result));
  return result.passes() ? 0 : static_cast<int>(ErrorKind::kEnvironment);
}

}  // namespace

Command doctor_command(CLI::App& parent) {
  const auto options = std::make_shared<DoctorOptions>();
  CLI::App* app = parent.add_subcommand("doctor", "what this machine can do, and what would let it do the rest");
  app->add_option("--backend", options->backend, "ask whether this backend works: exit 5 where it does not")
      ->check(CLI::IsMember({"reference", "cpu", "cuda"}));
  app->add_option("--ranks-as", options->ranks_as, "with --backend: threads or processes")
      ->check(CLI::IsMember({"threads", "processes"}));
  app->add_flag("--json", options->json, "one JSON object on standard output");
  app->footer(kDoctorExamples);
  return {app, [options] { return doctor(*options); }};
}

}  // namespace stepcast::cli
