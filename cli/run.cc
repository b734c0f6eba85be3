// stepcast run: executes a plan on this machine, ranks as threads.
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>

#include "base/quantity.h"
#include "cli/arguments.h"
#include "cli/backends.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/pipeline.h"
#include "cli/plan_run.h"
#include "cli/reference.h"
#include "cli/scenario_options.h"
#include "exec/executor.h"
#include "plan/rules.h"
#include "program/lifetimes.h"
#include "report/file.h"
#include "report/perfetto.h"
#include "report/run_report.h"

namespace stepcast::cli {
namespace {

struct RunOptions {
  ScenarioOptions scenario;
  std::string backend;
  std::string ranks_as;  // empty: as the launcher has it
  int steps = 5;
  std::optional<int> threads_per_rank;
  bool bind_cores = false;
  bool reference = false;
  bool json = false;
  std::string trace;
};

constexpr const char* kRunExamples = R"(Examples
  stepcast run scenarios/runs/tiny-llama-tp2-pp2.yaml --backend cpu --reference --steps 3
  stepcast run scenarios/runs/tiny-llama-tp2-pp2.yaml --backend cpu --trace run.pftrace
  stepcast run scenarios/runs/tiny-llama-tp2-pp2.yaml --backend cpu --reference --set plan.zero=3 --set plan.tp=1
  stepcast run scenarios/runs/tiny-llama-tp2-pp2.yaml --backend reference
  mpirun --hostfile HOSTS -n 4 stepcast run scenarios/runs/tiny-llama-tp2-pp2.yaml --backend cpu

Several hosts: under mpirun or srun each process is a rank, and what the launcher takes (hosts, binding, transports) is
said to it; the same stepcast and scenario have to be at the same paths everywhere.
Backends: cpu has the fast kernels (oneDNN), reference the readable ones that everything else is checked against. The
single rank of --reference always runs those, so it judges the kernels along with the plan.
The executor checks plans and the simulator; it is not a fast trainer. Exits 1 when it differs from the reference or
when its ops or bytes differ from the simulation, 6 when a rank fails.)";

void require_supported(const RunOptions& options) {
  if (options.backend == "cuda") {
    throw Error(ErrorKind::kUnsupported, "--backend cuda is known, not supported yet", {}, {"--backend cpu"});
  }
}

// Formats without kernels: priced, not executed.
void require_kernels(const plan::Scenario& scenario) {
  const bool half = scenario.training.compute == program::DType::kF16;
  if (!half && scenario.training.recipe == plan::MatmulRecipe::kNone) return;
  const std::string what = half ? "fp16" : std::string(to_string(scenario.training.recipe)) + " matmuls";
  throw Error(
      ErrorKind::kUnsupported, "run does not execute " + what + " yet; simulate, check, diff and sweep price them",
      {"", 0, "training.precision.compute"}, {"--set training.precision=bf16", "--set training.precision=fp32"});
}

// Peak bytes of all ranks together.
double total_peak(const program::CheckedProgram& p) {
  std::vector<double> peaks;
  for (std::size_t i = 0; i < p.program().rank_programs.size(); ++i) {
    const program::RankProgramId id(i);
    const program::RankProgram& r = p.program().rank_programs[id];
    peaks.push_back(static_cast<double>(program::derive_lifetimes(p.program(), r, p.resolution(id)).peak));
  }
  double sum = 0;
  for (const program::Rank& rank : p.program().ranks) sum += peaks.at(rank.program.value);
  return sum;
}

void require_memory(double bytes) {
  const double machine = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (bytes <= machine) return;
  throw Error(ErrorKind::kEnvironment,
              "the ranks need " + format_quantity(bytes, Dimension::kBytes) + " together, this machine has " +
                  format_quantity(machine, Dimension::kBytes),
              {}, {"run a smaller model of the same plan, such as --set model.num_hidden_layers=2"});
}

report::EngineChecks checks_of(const Prepared& prepared, const config::ScenarioSource& source,
                               const trace::Trace& measured) {
  const sim::Calibration calibration = find_calibration(prepared.scenario(), source);
  const sim::Prediction prediction = predict(prepared, calibration, {});
  return report::check_engines(measured, sim::to_trace(prediction, *prepared.program));
}

void execute_steps(const RunOptions& options, PlanRun& plan, Reference* reference, report::RunReport& result) {
  for (int i = 0; i < options.steps; ++i) {
    throw_if_interrupted();
    const exec::StepResult measured = plan.step();
    report::RunStep step{.step_time_s = measured.time.seconds(), .loss = measured.loss};
    if (options.reference) {
      const report::Gradients gradients = plan.gradients();
      if (reference != nullptr) reference->compare_step(gradients, step);
    }
    result.steps.push_back(step);
  }
  throw_if_interrupted();
}

exec::ExecOptions exec_options(const RunOptions& options, const Launch& launch) {
  exec::ExecOptions result;
  result.cores = {options.threads_per_rank, options.bind_cores};
  if (options.backend == "reference") return result;
  result.kernel_of = launch.cpu_kernel_of;
  result.stream_state = launch.cpu_state;
  return result;
}

void require_memory_for(const program::CheckedProgram& plan, const Reference* reference) {
  require_memory(total_peak(plan) + (reference != nullptr ? total_peak(reference->program()) : 0));
}

report::RunReport begin_report(const RunOptions& options, const Prepared& prepared) {
  report::RunReport result;
  result.backend = options.backend;
  result.ranks_as = options.ranks_as;
  result.scenario = prepared.scenario();
  result.cores = std::max(1U, std::thread::hardware_concurrency());
  result.fingerprint = prepared.program->fingerprint();
  result.warnings = prepared.read.warnings;
  result.trace_path = options.trace;
  return result;
}

void judge(report::RunReport& result, const Prepared& prepared, const config::ScenarioSource& source,
           const trace::Trace& measured) {
  result.checks = checks_of(prepared, source, measured);
  for (const trace::Track& track : measured.tracks)
    result.allocated_bytes = std::max(result.allocated_bytes, track.peak);
  using enum program::Stream;
  result.p2p_beside_compute = report::beside_compute(measured, {kSendNext, kRecvPrev, kSendPrev, kRecvNext});
  result.dp_beside_compute = report::beside_compute(measured, {kDp});
}

// All ranks, or with a world the one of this process.
int run_ranks(const RunOptions& options, const Launch& launch, exec::World* world) {
  const config::ScenarioSource source = source_of(options.scenario);
  require_outputs({options.trace}, source);
  const bool reports = world == nullptr || world->rank() == 0;
  const Prepared prepared = reports ? prepare(source) : prepare_read(read_and_judge(source));
  require_kernels(prepared.scenario());
  std::optional<Reference> reference;
  if (options.reference && reports) reference.emplace(prepared.scenario());
  require_memory_for(*prepared.program, reference ? &*reference : nullptr);
  PlanRun plan(*prepared.program, exec_options(options, launch), world);
  report::RunReport result = begin_report(options, prepared);
  result.threads_per_rank = plan.threads_per_rank();
  execute_steps(options, plan, reference ? &*reference : nullptr, result);
  const trace::Trace measured = plan.trace();
  if (!reports) return 0;
  if (reference) result.reference = reference->comparison();
  judge(result, prepared, source, measured);
  if (!options.trace.empty()) {
    report::write_file_atomically(options.trace,
                                  report::to_perfetto(measured, report::labels_of(prepared.program->program())));
  }
  print(options.json ? report::run_json(result) : report::run_screen(result));
  return result.passes() ? 0 : static_cast<int>(ErrorKind::kSubject);
}

// One rank of a world: what ends it ends all.
int run_process(const RunOptions& options, const Launch& launch) {
  const std::unique_ptr<exec::World> world = launch.world();
  try {
    return run_ranks(options, launch, world.get());
  } catch (const Error& error) {
    // What all of them find is said once.
    if (world->rank() == 0 || error.kind() == ErrorKind::kExecution) std::fprintf(stderr, "%s", error.what());
    world->end_all(error.exit_code());
    return error.exit_code();
  }
}

int run(RunOptions options, const Launch& launch) {
  require_supported(options);
  const std::string launcher = launcher_here();
  if (!launcher.empty() && options.ranks_as == "threads") {
    throw Error(ErrorKind::kUsage, "under " + launcher + " each process is a rank", {}, {"--ranks-as processes"});
  }
  if (options.ranks_as.empty()) options.ranks_as = launcher.empty() ? "threads" : "processes";
  if (options.ranks_as == "threads") {
    if (options.backend == "cpu" && launch.cpu_kernel_of == nullptr) become_rank_program(launch);
    return run_ranks(options, launch, nullptr);
  }
  if (launch.world != nullptr) return run_process(options, launch);
  if (!launcher.empty()) become_mpi_rank(launch);
  const config::ScenarioSource source = source_of(options.scenario);
  require_outputs({options.trace}, source);
  return run_mpi_ranks(launch, static_cast<int>(prepare_read(read_and_judge(source)).scenario().gpus));
}

}  // namespace

Command run_command(CLI::App& parent, const Launch& launch) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* app = parent.add_subcommand("run", "execute a plan for real on this machine");
  add_scenario_options(*app, options->scenario);
  app->add_option("--backend", options->backend, "cpu, reference; cuda is not supported yet")
      ->required()
      ->check(CLI::IsMember({"cpu", "reference", "cuda"}));
  app->add_option("--ranks-as", options->ranks_as,
                  "threads, or processes under Open MPI (default: threads, processes under a launcher)")
      ->check(CLI::IsMember({"threads", "processes"}));
  app->add_option("--steps", options->steps, "steps to execute (default 5)")->check(CLI::Range(1, 1000000));
  app->add_option("--threads-per-rank", options->threads_per_rank,
                  "threads of one kernel of --backend cpu (default: cores / ranks, at least 1)");
  app->add_flag("--bind-cores", options->bind_cores, "keep each rank's threads on cores of their own");
  app->add_flag("--reference", options->reference, "compare losses and gradients with the same training on one rank");
  app->add_option("--trace", options->trace, "write the last step as a Perfetto file")
      ->type_name("F.pftrace")
      ->check(refuse_empty);
  app->add_flag("--json", options->json, "one JSON object on standard output");
  app->footer(kRunExamples);
  return {app, [options, &launch] { return run(*options, launch); }};
}

}  // namespace stepcast::cli
