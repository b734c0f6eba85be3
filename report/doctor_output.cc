// The screen and the JSON of `doctor`.
#include <fmt/format.h>

#include "report/doctor_report.h"
#include "report/json.h"
#include "report/text.h"

namespace stepcast::report {
namespace {

std::string gib(double bytes) { return fmt::format("{:.1f} GiB", bytes / 0x1p30); }

std::string backend_text(const BackendState& state) {
  return state.backend == "cpu" ? fmt::format("cpu, ranks as {}", state.ranks_as) : state.backend;
}

std::string verdict(const DoctorReport& report) {
  if (report.asked) {
    const BackendState& asked = *report.asked;
    if (asked.works()) return fmt::format("OK  run with {} works here\n", backend_text(asked));
    return wrapped("NO", 4, fmt::format("run with {} does not work here: {}", backend_text(asked), asked.reason));
  }
  std::vector<std::string> missing;
  for (const BackendState& state : report.backends) {
    if (!state.works()) missing.push_back(fmt::format("{} ({})", backend_text(state), state.reason));
  }
  if (missing.empty()) return "OK  simulation and every backend of run work here\n";
  return wrapped("OK", 4, "simulation works here; run without: " + joined(missing, ", "));
}

std::string program_text(const RankProgramFacts& program, const std::string& what) {
  if (program.path.empty()) return program.name + " not built";
  if (!program.failure.empty()) return program.name + " does not start";
  return what.empty() ? program.name : fmt::format("{} ({})", program.name, what);
}

std::string cuda_text(const MachineFacts& facts) {
  if (!facts.cuda) return "not known: stepcast-rank-cuda asks for it";
  const exec::CudaFacts& cuda = *facts.cuda;
  std::string text = "runtime " + exec::cuda_version_text(cuda.runtime_version);
  text += cuda.driver_version == 0 ? ", no driver" : ", driver for " + exec::cuda_version_text(cuda.driver_version);
  text += cuda.nccl_version == 0 ? ", no NCCL" : ", NCCL " + exec::nccl_version_text(cuda.nccl_version);
  if (cuda.error != 0) text += fmt::format(", error {}: {}", cuda.error, cuda.error_text);
  for (std::size_t i = 0; i < cuda.devices.size(); ++i) {
    const exec::CudaDeviceFacts& d = cuda.devices[i];
    text += fmt::format("; GPU {}: {}, sm_{}{}, {} SMs, {}", i, d.name, d.major, d.minor, d.multiprocessors,
                        gib(static_cast<double>(d.memory_bytes)));
  }
  return text;
}

std::string launcher_text(const MachineFacts& facts) {
  const std::string here = facts.mpirun.empty() ? "mpirun is not here" : facts.mpirun;
  return here + (facts.launcher.empty() ? "; started by no launcher" : "; started by " + facts.launcher);
}

std::string environment_text(const MachineFacts& facts) {
  std::vector<std::string> parts;
  for (const EnvironmentVariable& v : facts.environment) parts.push_back(v.name + "=" + v.value);
  return parts.empty() ? "nothing set that ranks read" : joined(parts, "  ");
}

std::string facts_block(const MachineFacts& facts) {
  std::string text =
      wrapped("machine", kLabelWidth,
              fmt::format("{}, {} cores, {} memory, {} available; AVX-512 {}, its bf16 {}", facts.processor,
                          facts.cores, gib(facts.memory_bytes), gib(facts.available_bytes), facts.avx512 ? "yes" : "no",
                          facts.bf16 ? "yes" : "no"));
  const std::vector<std::string> programs = {program_text(facts.rank, facts.onednn), program_text(facts.rank_mpi, ""),
                                             program_text(facts.rank_cuda, "")};
  text += wrapped("programs", kLabelWidth,
                  fmt::format("{} in {}: {}", facts.version, facts.folder, joined(programs, ", ")));
  text += wrapped("launcher", kLabelWidth, launcher_text(facts));
  text += wrapped("CUDA", kLabelWidth, cuda_text(facts));
  return text + wrapped("set", kLabelWidth, environment_text(facts));
}

std::string backends_block(const std::vector<BackendState>& backends) {
  constexpr std::size_t kWidth = 33;
  std::string text = fmt::format("{:<26}{:<7}{}\n", "backend of run", "works", "why not, and what would help");
  for (const BackendState& state : backends) {
    const std::string label = fmt::format(" {:<25}{}", backend_text(state), state.works() ? "yes" : "no");
    std::string why = state.reason;
    for (const std::string& help : state.help) why += "; help: " + help;
    text += why.empty() ? label + "\n" : wrapped(label, kWidth, why);
  }
  return text;
}

Json json_of(const RankProgramFacts& program) {
  return {{"name", program.name},
          {"path", program.path.empty() ? Json() : Json(program.path)},
          {"failure", program.failure.empty() ? Json() : Json(program.failure)}};
}

Json json_of(const BackendState& state) {
  return {{"backend", state.backend},
          {"ranks_as", state.ranks_as},
          {"works", state.works()},
          {"reason", state.works() ? Json() : Json(state.reason)},
          {"help", state.help}};
}

Json json_of(const std::optional<exec::CudaFacts>& facts) {
  if (!facts) return {};
  Json devices = Json::array();
  for (const exec::CudaDeviceFacts& d : facts->devices) {
    devices.push_back({{"name", d.name},
                       {"compute_capability", fmt::format("{}.{}", d.major, d.minor)},
                       {"multiprocessors", d.multiprocessors},
                       {"memory_bytes", d.memory_bytes}});
  }
  return {{"runtime_version", facts->runtime_version}, {"driver_version", facts->driver_version},
          {"nccl_version", facts->nccl_version},       {"error", facts->error},
          {"error_text", facts->error_text},           {"devices", devices}};
}

}  // namespace

std::string doctor_screen(const DoctorReport& report) {
  return verdict(report) + "\n" + facts_block(report.facts) + "\n" + backends_block(report.backends);
}

std::string doctor_json(const DoctorReport& report) {
  const MachineFacts& f = report.facts;
  Json environment = Json::object();
  for (const EnvironmentVariable& v : f.environment) environment[v.name] = v.value;
  Json backends = Json::array();
  for (const BackendState& state : report.backends) backends.push_back(json_of(state));
  const auto text = [](const std::string& value) { return value.empty() ? Json() : Json(value); };
  return to_text({{"schema", "stepcast/doctor/1"},
                  {"version", f.version},
                  {"folder", f.folder},
                  {"processor", f.processor},
                  {"cores", f.cores},
                  {"memory_bytes", f.memory_bytes},
                  {"available_bytes", f.available_bytes},
                  {"avx512", f.avx512},
                  {"avx512_bf16", f.bf16},
                  {"programs", {json_of(f.rank), json_of(f.rank_mpi), json_of(f.rank_cuda)}},
                  {"onednn", text(f.onednn)},
                  {"mpirun", text(f.mpirun)},
                  {"mpirun_failure", text(f.mpirun_failure)},
                  {"cuda", json_of(f.cuda)},
                  {"launcher", text(f.launcher)},
                  {"environment", environment},
                  {"backends", backends},
                  {"asked", report.asked ? json_of(*report.asked) : Json()}});
}

}  // namespace stepcast::report
