// stepcast run: executes a plan. The process that a user starts supervises those that execute ranks.
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>

#include "base/quantity.h"
#include "cli/arguments.h"
#include "cli/backends.h"
#include "cli/commands.h"
#include "cli/cuda_backend.h"
#include "cli/fault.h"
#include "cli/interrupt.h"
#include "cli/pipeline.h"
#include "cli/plan_run.h"
#include "cli/rank_process.h"
#include "cli/reference.h"
#include "cli/scenario_options.h"
#include "cli/supervisor.h"
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
  double timeout_s = 60;
  std::string inject;
};

constexpr const char* kRunExamples = R"(Examples
  stepcast run scenarios/runs/tiny-llama-tp2-pp2.yaml --backend cpu --reference --steps 3
  stepcast run scenarios/runs/tiny-llama-tp2-pp2.yaml --backend cpu --trace run.pftrace
  stepcast run scenarios/runs/tiny-llama-tp2-pp2.yaml --backend cpu --reference --set plan.zero=3 --set plan.tp=1
  stepcast run scenarios/runs/tiny-llama-tp2-pp2.yaml --backend reference
  stepcast run scenarios/runs/tiny-llama-tp2-pp2.yaml --backend cpu --ranks-as processes --inject 2:step2:kill
  mpirun --hostfile HOSTS -n 4 stepcast run scenarios/runs/tiny-llama-tp2-pp2.yaml --backend cpu

Several hosts: under mpirun or srun each process is a rank, and what the launcher takes (hosts, binding, transports) is
said to it; the same stepcast and scenario have to be at the same paths everywhere.
Backends: cpu has the fast kernels (oneDNN), reference the readable ones that everything else is checked against, cuda
those of GPUs (each rank has one, as a thread on one host or as a process of torchrun or srun; not yet tried on a GPU).
The single rank of --reference always runs the readable ones, so it judges the kernels along with the plan.
The executor checks plans and the simulator; it is not a fast trainer. Exits 1 when it differs from the reference or
when its ops or bytes differ from the simulation, 6 when a rank dies, fails, is stopped or holds others up for longer
than --timeout; it then names the rank and its call, and no process is left. --inject makes such a fault on purpose,
RANK:WHEN:KIND: WHEN is stepN, or seconds (1.5s) after the rank's first kernel; KIND is throw, kill, stop, hang, or slow
(20 ms a kernel, which ends nothing).)";

// Where ranks are on GPUs: throws Error (kEnvironment) where this machine has not one for each of them.
void require_gpus(const Launch& launch, const std::optional<exec::LaunchedRank>& launched, std::size_t ranks) {
  const std::size_t here = launched ? static_cast<std::size_t>(launched->local_rank) + 1 : ranks;
  require_cuda(launch.cuda_facts(), static_cast<int>(here));
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

std::vector<std::size_t> all_ranks(std::size_t count) {
  std::vector<std::size_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), std::size_t{0});
  return ranks;
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

void execute_steps(const RunOptions& options, const RankProcess& process, PlanRun& plan, Reference* reference,
                   report::RunReport& result) {
  for (int i = 0; i < options.steps; ++i) {
    throw_if_interrupted();
    process.set_aside(false);
    const exec::StepResult measured = plan.step();
    process.set_aside(true);
    report::RunStep step{.step_time_s = measured.time.seconds(), .loss = measured.loss};
    if (options.reference) {
      const report::Gradients gradients = plan.gradients();
      if (reference != nullptr) reference->compare_step(gradients, step);
    }
    result.steps.push_back(step);
  }
  throw_if_interrupted();
}

exec::ExecOptions exec_options(const RunOptions& options, const Launch& launch, const RankProcess& process) {
  exec::ExecOptions result;
  result.page = process.page();
  // A supervisor sees all ranks and is the first to judge.
  result.watchdog = Duration::from_seconds(options.timeout_s * (process.page() ? 2 : 1));
  if (!options.inject.empty()) result.before_kernel = fault_maker(parse_fault(options.inject));
  result.cores = {options.threads_per_rank, options.bind_cores};
  if (options.backend != "cpu") return result;
  result.kernel_of = launch.cpu_kernel_of;
  result.stream_state = launch.cpu_state;
  return result;
}

// Of this machine; what ranks need of a GPU is seen when they allocate it.
void require_memory_for(const RunOptions& options, const program::CheckedProgram& plan, const Reference* reference) {
  const double ranks = options.backend == "cuda" ? 0 : total_peak(plan);
  require_memory(ranks + (reference != nullptr ? total_peak(reference->program()) : 0));
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

std::vector<CommonFact> common_facts(const RunOptions& options) {
  return {{"was given other --steps", std::to_string(options.steps)},
          {"was given another --backend", options.backend},
          {"was given --reference otherwise", options.reference ? "yes" : "no"}};
}

// All ranks, or with a world the one of this process.
int run_ranks(const RunOptions& options, const Launch& launch, const RankProcess& process, exec::World* world) {
  const config::ScenarioSource source = source_of(options.scenario);
  require_outputs({options.trace}, source);
  const bool reports = world == nullptr || world->rank() == 0;
  const Prepared prepared = reports ? prepare(source) : prepare_read(read_and_judge(source));
  require_kernels(prepared.scenario());
  std::optional<Reference> reference;
  if (options.reference && reports) reference.emplace(prepared.scenario());
  require_memory_for(options, *prepared.program, reference ? &*reference : nullptr);
  const bool on_gpus = options.backend == "cuda";
  if (on_gpus) require_gpus(launch, gpu_launch(), prepared.program->program().ranks.size());
  PlanRun plan(*prepared.program, exec_options(options, launch, process), world, common_facts(options),
               on_gpus ? launch.cuda_runner : nullptr);
  report::RunReport result = begin_report(options, prepared);
  result.threads_per_rank = plan.threads_per_rank();
  execute_steps(options, process, plan, reference ? &*reference : nullptr, result);
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

// The launcher that has started this process as a rank; empty where there is none.
std::string launcher_of(const RunOptions& options) {
  if (options.backend != "cuda") return launcher_here();
  const std::optional<exec::LaunchedRank> launched = gpu_launch();
  return launched && launched->size > 1 ? launched->launcher : "";
}

// The number that the launcher has given it.
std::optional<std::size_t> rank_under(const RunOptions& options) {
  if (options.backend != "cuda") return launcher_rank();
  const std::optional<exec::LaunchedRank> launched = gpu_launch();
  return launched ? std::optional(static_cast<std::size_t>(launched->rank)) : std::nullopt;
}

// One rank of a world: what ends it ends all.
int run_process(const RunOptions& options, const Launch& launch, RankProcess& process) {
  // Before MPI starts, which can fail too.
  if (const auto rank = rank_under(options)) process.take({*rank});
  std::unique_ptr<exec::World> world;
  int code = 0;
  try {
    code = process.run([&] {
      world = launch.world();
      process.take({static_cast<std::size_t>(world->rank())});
      return run_ranks(options, launch, process, world.get());
    });
    if (!process.failed()) return code;
    process.wait_until_seen();
  } catch (const Error& error) {
    if (!world) throw;
    // Nobody watches. What all of them find is said once.
    if (world->rank() == 0 || error.kind() == ErrorKind::kExecution) std::fprintf(stderr, "%s", error.what());
    code = error.exit_code();
  }
  if (world) world->end_all(code);
  return code;
}

int run_here(const RunOptions& options, const Launch& launch) {
  RankProcess process;
  if (options.ranks_as == "processes") return run_process(options, launch, process);
  if (process.page()) process.take(all_ranks(process.page()->ranks()));
  return process.run([&] { return run_ranks(options, launch, process, nullptr); });
}

// What ranks would find as well, each of them.
Prepared prepare_to_supervise(const RunOptions& options, const config::ScenarioSource& source) {
  require_outputs({options.trace}, source);
  Prepared prepared = prepare_read(read_and_judge(source));
  require_kernels(prepared.scenario());
  const std::size_t ranks = prepared.program->program().ranks.size();
  if (options.inject.empty() || parse_fault(options.inject).rank < ranks) return prepared;
  throw Error(ErrorKind::kUsage, "--inject " + options.inject + ": the plan has " + std::to_string(ranks) + " ranks",
              {}, {"a rank from 0 to " + std::to_string(ranks - 1)});
}

int supervise(const RunOptions& options, const Launch& launch, bool launcher) {
  const Prepared prepared = prepare_to_supervise(options, source_of(options.scenario));
  SupervisedJob job{*prepared.program};
  job.timeout_s = options.timeout_s;
  job.json = options.json;
  job.ranks = all_ranks(prepared.program->program().ranks.size());
  if (options.ranks_as == "threads") {
    job.words = {thread_rank_program(launch, options.backend)};
  } else if (launcher) {
    job.words = {options.backend == "cuda" ? thread_rank_program(launch, options.backend) : mpi_rank_program()};
    job.one_of_several = true;
    job.ranks.assign(1, rank_under(options).value_or(0));
  } else {
    job.words = mpirun_words(mpi_rank_program(), job.ranks.size());
    job.launcher = true;
  }
  job.words.insert(job.words.end(), launch.argv + 1, launch.argv + launch.argc);
  return Supervisor(job).run();
}

int run(RunOptions options, const Launch& launch) {
  const std::string launcher = launcher_of(options);
  if (!launcher.empty() && options.ranks_as == "threads") {
    throw Error(ErrorKind::kUsage, "under " + launcher + " each process is a rank", {}, {"--ranks-as processes"});
  }
  if (options.ranks_as.empty()) options.ranks_as = launcher.empty() ? "threads" : "processes";
  if (options.backend == "cuda" && options.ranks_as == "processes" && launcher.empty()) {
    throw Error(ErrorKind::kUsage, "ranks on GPUs are processes where torchrun or srun starts them", {},
                {"torchrun --no-python --nproc-per-node N stepcast run ... --backend cuda", "--ranks-as threads"});
  }
  if (RankProcess::has_supervisor() || launch.world != nullptr) return run_here(options, launch);
  try {
    return supervise(options, launch, !launcher.empty());
  } catch (const Error& error) {
    // What every process of a launcher finds is said by the first.
    if (launcher.empty() || rank_under(options).value_or(0) == 0) throw;
    return error.exit_code();
  }
}

}  // namespace

Command run_command(CLI::App& parent, const Launch& launch) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* app = parent.add_subcommand("run", "execute a plan for real on this machine");
  add_scenario_options(*app, options->scenario);
  app->add_option("--backend", options->backend, "cpu, reference; cuda: GPUs, see doctor")
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
  app->add_option("--timeout", options->timeout_s,
                  "seconds that a rank may hold others up without completing an op (default 60)")
      ->check(CLI::Range(0.1, 1e6));
  app->add_option("--inject", options->inject, "make a fault: RANK:WHEN:KIND, such as 2:step3:kill")
      ->type_name("RANK:WHEN:KIND")
      ->check(refuse_empty);
  app->add_flag("--json", options->json, "one JSON object on standard output");
  app->footer(kRunExamples);
  return {app, [options, &launch] { return run(*options, launch); }};
}

}  // namespace stepcast::cli
