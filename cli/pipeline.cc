// Glue only: every step is another folder's.
#include "cli/pipeline.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <latch>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "base/quantity.h"
#include "cli/calibration_choice.h"
#include "cli/interrupt.h"
#include "cli/long_run.h"
#include "cli/remedies.h"
#include "config/search.h"
#include "plan/lowering.h"
#include "report/file.h"
#include "report/published_runs.h"
#include "sim/cost/analytic.h"
#include "sim/cost/calibration_reader.h"

namespace stepcast::cli {
namespace {

// What an unfolded simulation takes: a transfer's number, and on each thread an op's times and what it shares of a
// transfer's.
constexpr double kBytesPerOp = 10;
constexpr double kBytesPerOpAndThread = 50;

unsigned threads_for(std::size_t pieces) { return static_cast<unsigned>(thread_count(pieces)); }

// The setting of the command line that names the calibration: the last one counts.
std::optional<config::Setting> calibration_setting(const config::ScenarioSource& source) {
  std::optional<config::Setting> last;
  for (const config::Setting& setting : source.settings) {
    if (setting.field == "calibration") last = setting;
  }
  return last;
}

// Quantised matmuls priced by the shares of peak that bf16 ones reach, for want of a measurement.
std::vector<std::string> recipe_warnings(const plan::Scenario& scenario, const sim::Calibration& calibration) {
  const plan::MatmulRecipe recipe = scenario.training.recipe;
  const bool fp4 = recipe == plan::MatmulRecipe::kNvfp4;
  if (recipe == plan::MatmulRecipe::kNone || (calibration.matmul_fp8 && !fp4)) return {};
  return {"W303 calibration " + calibration.name + " has no " + (fp4 ? "fp4" : "fp8") +
          " matmuls: they are taken to reach the share of their peak that bf16 ones reach of theirs"};
}

std::vector<std::string> calibration_warnings(const plan::Scenario& scenario, const sim::Calibration& calibration) {
  const std::string& device = scenario.cluster.node.device.name;
  if (sim::is_first_for(calibration, device)) return {};
  if (sim::is_for(calibration, device)) {
    return {"W302 calibration " + calibration.name + " describes " + calibration.devices.front() + ": " + device +
            " is taken to reach the same shares of its own rates"};
  }
  return {"W301 calibration " + calibration.name + " describes other devices than " + device +
          ": its constants may be far off"};
}

sim::AnalyticCostModel cost_model(const Prepared& prepared, const sim::Calibration& calibration) {
  const plan::Scenario& scenario = prepared.scenario();
  return {scenario.cluster, calibration, scenario.environment, prepared.read.environment_at};
}

class Countdown {
 public:
  explicit Countdown(std::latch& latch) : latch_(latch) {}
  Countdown(const Countdown&) = delete;
  Countdown& operator=(const Countdown&) = delete;
  ~Countdown() { latch_.count_down(); }

 private:
  std::latch& latch_;
};

sim::SimOptions what_if(sim::Free kind, const sim::SimOptions& options) {
  sim::SimOptions changed = options;
  changed.fold = true;
  changed.free = kind;
  changed.record_events = false;
  return changed;
}

// The answer, and the steps if each kind in use were free. What the Program has of communication is known before the
// answer is, so those run beside it; of the others, those count that take at least a thousandth of the step.
// Beyond kMostOpsWithWhatIfs the answer alone.
void run_all(const sim::Simulation& folded, const std::function<sim::Prediction()>& answer,
             const sim::SimOptions& options, LongRun& long_run, Outcome& outcome) {
  if (folded.op_count() >= kMostOpsWithWhatIfs) {
    outcome.prediction = answer();
    return;
  }
  std::vector<sim::Free> kinds = folded.communication_kinds();
  if (options.contention) kinds.push_back(sim::Free::kSlowdown);
  const std::size_t certain = kinds.size();
  for (int k = 1; k < sim::kFreeCount; ++k) {
    const auto kind = static_cast<sim::Free>(k);
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  std::latch answered(1);
  std::vector<sim::Free> used;
  const auto answer_first = [&] {
    const Countdown on_any_exit(answered);
    outcome.prediction = answer();
    used = report::kinds_in_use(outcome.prediction);
  };
  const auto is_used = [&used](sim::Free kind) { return std::find(used.begin(), used.end(), kind) != used.end(); };
  std::vector<std::optional<Duration>> steps(kinds.size());
  // Pieces are taken in order, so whoever waits for the answer waits for one that is being worked on.
  parallel_on(threads_for(kinds.size() + 1), kinds.size() + 1, [&](std::size_t piece) {
    if (piece == 0) return answer_first();
    const std::size_t k = piece - 1;
    if (k >= certain) {
      answered.wait();
      if (!is_used(kinds[k]) || report::share_of_step(outcome.prediction, kinds[k]) < 1e-3) {
        if (!sim::exposed_of(kinds[k])) long_run.skip(folded.op_count());
        return;
      }
    }
    steps[k] = folded.step(what_if(kinds[k], options));
  });
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    if (steps[k] && is_used(kinds[k])) outcome.if_free.emplace_back(kinds[k], *steps[k]);
  }
  std::sort(outcome.if_free.begin(), outcome.if_free.end());
}

// Ops of all ranks.
double unfolded_ops(const program::CheckedProgram& p) {
  std::vector<double> by_program;
  for (std::size_t i = 0; i < p.program().rank_programs.size(); ++i) {
    by_program.push_back(static_cast<double>(p.resolution(program::RankProgramId(i)).op_count()));
  }
  double ops = 0;
  for (const program::Rank& rank : p.program().ranks) ops += by_program.at(rank.program.value);
  return ops;
}

// Says what takes long before it does.
void announce(const sim::Simulation& folded, const Prepared& prepared, const sim::SimOptions& options,
              LongRun& long_run) {
  const auto answer = options.fold ? folded.op_count() : static_cast<std::uint64_t>(unfolded_ops(*prepared.program));
  if (answer < kManyOps) return;
  const std::int64_t ranks = prepared.scenario().gpus;
  const auto classes = options.fold ? static_cast<std::int64_t>(folded.class_count()) : ranks;
  // The answer, and without communication by kind, slowdown, the host and the optimizer.
  const std::size_t runs = folded.op_count() < kMostOpsWithWhatIfs ? folded.communication_kinds().size() + 4 : 1;
  std::fprintf(stderr, "%s\n", long_run_note(ranks, classes, answer, options.fold ? runs : 1).c_str());
  long_run.expect(answer + (runs - 1) * folded.op_count());
}

void require_jitter_within_limits(const Prepared& prepared, const plan::Jitter& jitter) {
  const double ops = unfolded_ops(*prepared.program);
  const double all = ops * jitter.samples;
  const auto count = [](double n) { return format_count(static_cast<std::int64_t>(n)); };
  if (all > kMostJitteredOps) {
    std::vector<std::string> help;
    const double fewer = std::floor(kMostJitteredOps / ops);
    if (fewer >= 1) help.push_back("--set jitter.samples=" + std::to_string(static_cast<std::int64_t>(fewer)));
    help.emplace_back("fewer gpus with a smaller global_batch_size: a smaller job of the same plan");
    throw Error(ErrorKind::kUnsupported,
                "jitter simulates every rank: " + count(ops) + " ops x " + counted(jitter.samples, "sample") +
                    " are more than " + count(kMostJitteredOps),
                {"", 0, "jitter.samples"}, help);
  }
  const double bytes =
      ops * (kBytesPerOp + kBytesPerOpAndThread * threads_for(static_cast<std::size_t>(jitter.samples)));
  const double machine = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (bytes > machine) {
    throw Error(ErrorKind::kEnvironment,
                "jitter simulates every rank: " + count(ops) + " ops need about " +
                    format_quantity(bytes, Dimension::kBytes) + ", this machine has " +
                    format_quantity(machine, Dimension::kBytes),
                {"", 0, "jitter"}, {"fewer gpus with a smaller global_batch_size: a smaller job of the same plan"});
  }
}

std::vector<Duration> jittered_steps(const Prepared& prepared, const sim::CostModel& costs,
                                     const sim::SimOptions& options) {
  const plan::Jitter& jitter = *prepared.scenario().jitter;
  std::fprintf(stderr, "note: jitter unfolds: %s ranks simulated, %d samples\n",
               format_count(prepared.scenario().gpus).c_str(), jitter.samples);
  const sim::Simulation simulation(*prepared.program, costs, false);
  LongRun long_run;
  long_run.expect(simulation.op_count() * static_cast<std::uint64_t>(jitter.samples));
  sim::SimOptions unfolded = options;
  unfolded.watch = long_run.watch();
  unfolded.fold = false;
  unfolded.record_events = false;
  return simulation.jittered_steps({.compute_sigma = jitter.compute_sigma,
                                    .communication_sigma = jitter.comm_sigma,
                                    .samples = jitter.samples,
                                    .seed = jitter.seed},
                                   unfolded, threads_for(static_cast<std::size_t>(jitter.samples)));
}

// Those of 8-bit matmuls price nothing where there are none.
std::int64_t constants_in_use(const sim::Calibration& calibration, const plan::Scenario& scenario) {
  const bool quantises = scenario.training.recipe != plan::MatmulRecipe::kNone;
  return std::count_if(
      calibration.constants.begin(), calibration.constants.end(),
      [&](const sim::CalibrationConstant& c) { return quantises || !c.name.starts_with("matmul.fp8"); });
}

}  // namespace

plan::ReadScenario read_and_judge(const config::ScenarioSource& source) {
  plan::ReadScenario read = plan::read_scenario(source);
  // Judged by who acts on it.
  sim::parse_nccl_pins(read.scenario.environment, read.environment_at);
  return read;
}

Prepared prepare(const config::ScenarioSource& source) {
  start_helpers();
  plan::ReadScenario read = read_and_judge(source);
  for (const std::string& note : read.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  return prepare_read(std::move(read));
}

Prepared prepare_read(plan::ReadScenario read) {
  Prepared prepared;
  prepared.read = std::move(read);
  plan::throw_if_violated(prepared.read);
  throw_if_interrupted();
  prepared.program = std::make_unique<program::CheckedProgram>(plan::lower(prepared.read.scenario));
  throw_if_interrupted();
  return prepared;
}

sim::Calibration find_calibration(const plan::Scenario& scenario, const config::ScenarioSource& source) {
  const std::optional<config::Setting> setting = calibration_setting(source);
  return choose_calibration({.name = scenario.calibration,
                             .device = scenario.cluster.node.device.name,
                             .beside = setting ? "" : source.file,
                             .where = {setting ? setting->origin : source.file, 0, "calibration"}},
                            source.search);
}

sim::Prediction predict(const Prepared& prepared, const sim::Calibration& calibration, const sim::SimOptions& options) {
  return *predict_within(prepared, calibration, options, std::numeric_limits<std::uint64_t>::max());
}

std::optional<sim::Prediction> predict_within(const Prepared& prepared, const sim::Calibration& calibration,
                                              const sim::SimOptions& options, std::uint64_t most_ops) {
  const sim::AnalyticCostModel costs = cost_model(prepared, calibration);
  const sim::Simulation simulation(*prepared.program, costs, options.fold);
  throw_if_interrupted();
  if (simulation.op_count() > most_ops) return std::nullopt;
  sim::Prediction prediction = simulation.run(options);
  throw_if_interrupted();
  return prediction;
}

Outcome predict_with_what_ifs(const Prepared& prepared, const sim::Calibration& calibration,
                              const sim::SimOptions& options) {
  const plan::Scenario& scenario = prepared.scenario();
  if (scenario.jitter) require_jitter_within_limits(prepared, *scenario.jitter);
  const sim::AnalyticCostModel costs = cost_model(prepared, calibration);
  Outcome outcome;
  outcome.contention = options.contention;
  // Folding changes no picosecond: what-ifs are folded even where the answer is not.
  const sim::Simulation folded(*prepared.program, costs, true);
  throw_if_interrupted();
  LongRun long_run;
  sim::SimOptions watched = options;
  watched.watch = long_run.watch();
  announce(folded, prepared, options, long_run);
  const auto answer = [&] {
    return options.fold ? folded.run(watched) : sim::simulate(*prepared.program, costs, watched);
  };
  run_all(folded, answer, watched, long_run, outcome);
  throw_if_interrupted();
  if (scenario.jitter) outcome.jittered_steps = jittered_steps(prepared, costs, options);
  throw_if_interrupted();
  return outcome;
}

report::SimulationReport bare_report_of(const Prepared& prepared, const sim::Calibration& calibration,
                                        const Outcome& outcome) {
  std::vector<std::string> warnings = prepared.read.warnings;
  for (std::string& warning : calibration_warnings(prepared.scenario(), calibration)) {
    warnings.push_back(std::move(warning));
  }
  for (std::string& warning : recipe_warnings(prepared.scenario(), calibration)) warnings.push_back(std::move(warning));
  return report::make_simulation_report(
      {.scenario = prepared.scenario(),
       .program = *prepared.program,
       .prediction = outcome.prediction,
       .calibration = {calibration.name, constants_in_use(calibration, prepared.scenario()), calibration.stack},
       .warnings = std::move(warnings),
       .published = report::published_runs(),
       .contention = outcome.contention,
       .if_free = outcome.if_free,
       .jittered_steps = outcome.jittered_steps});
}

report::SimulationReport report_of(const Prepared& prepared, const config::ScenarioSource& source,
                                   const sim::Calibration& calibration, const Outcome& outcome) {
  report::SimulationReport report = bare_report_of(prepared, calibration, outcome);
  if (report.memory.verdict == report::Verdict::kOom) {
    report.remedies = memory_remedies(report, source, outcome.contention);
  }
  return report;
}

void require_outputs(const std::vector<std::string>& paths, const config::ScenarioSource& source) {
  std::vector<std::filesystem::path> taken;
  std::error_code code;
  if (!source.file.empty()) taken.push_back(std::filesystem::weakly_canonical(source.file, code));
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    const std::filesystem::path real = std::filesystem::weakly_canonical(path, code);
    if (std::find(taken.begin(), taken.end(), real) != taken.end()) {
      throw Error(ErrorKind::kUsage, "the output " + path + " is also the scenario or another output");
    }
    taken.push_back(real);
    report::require_writable(path);
  }
}

}  // namespace stepcast::cli
