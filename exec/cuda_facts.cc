// See cuda_facts.h. Codes of cudaError_t, which do not change between versions: CUDA runtime API, driver_types.h.
#include "exec/cuda_facts.h"

#include <sstream>

#include "base/error.h"

namespace stepcast::exec {
namespace {

constexpr int kInsufficientDriver = 35;
constexpr int kNoDevice = 100;

[[noreturn]] void refuse_line(const std::string& line) {
  throw Error(ErrorKind::kEnvironment, "not what a probe of CUDA says: '" + line.substr(0, 80) + "'", {},
              {"build all programs of stepcast from one version"});
}

// "MAJOR MINOR MULTIPROCESSORS BYTES NAME".
CudaDeviceFacts parse_device(std::istringstream& in, const std::string& line) {
  CudaDeviceFacts device;
  if (!(in >> device.major >> device.minor >> device.multiprocessors >> device.memory_bytes)) refuse_line(line);
  std::getline(in >> std::ws, device.name);
  return device;
}

CudaProblem no_device_problem(const CudaFacts& facts) {
  const std::string code = " (error " + std::to_string(facts.error) + ")";
  const std::string runtime = cuda_version_text(facts.runtime_version);
  if (facts.error == kInsufficientDriver && facts.driver_version == 0) {
    return {"no NVIDIA driver" + code, {"a machine with a GPU and a driver for CUDA " + runtime + " or newer"}};
  }
  if (facts.error == kInsufficientDriver) {
    return {"the driver runs CUDA up to " + cuda_version_text(facts.driver_version) + ", this program has " + runtime +
                code,
            {"a driver for CUDA " + runtime + " or newer, or a build with the older toolkit"}};
  }
  if (facts.error == kNoDevice || facts.error == 0) {
    return {"no GPU" + code, {"a machine with a GPU; CUDA_VISIBLE_DEVICES may hide those that are here"}};
  }
  return {"CUDA fails: " + facts.error_text + code, {"nvidia-smi may say more"}};
}

}  // namespace

std::optional<CudaProblem> why_no_cuda(const CudaFacts& facts, int ranks) {
  if (facts.error != 0 || facts.devices.empty()) return no_device_problem(facts);
  const auto devices = static_cast<int>(facts.devices.size());
  if (ranks > devices) {
    return CudaProblem{std::to_string(ranks) + " ranks on this machine, which has " + std::to_string(devices) +
                           (devices == 1 ? " GPU" : " GPUs") + ": each rank needs one of its own",
                       {"a plan of " + std::to_string(devices) + (devices == 1 ? " rank" : " ranks") +
                        ", or more machines: srun, torchrun"}};
  }
  if (ranks > 1 && facts.nccl_version == 0) {
    return CudaProblem{"NCCL is not linked, and ranks talk through it", {"install libnccl-dev and build again"}};
  }
  return std::nullopt;
}

std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string nccl_version_text(int version) {
  const int major = version >= 10000 ? 10000 : 1000;
  return std::to_string(version / major) + "." + std::to_string(version % major / 100) + "." +
         std::to_string(version % 100);
}

std::string to_text(const CudaFacts& facts) {
  std::ostringstream text;
  text << "runtime " << facts.runtime_version << "\ndriver " << facts.driver_version << "\nnccl " << facts.nccl_version
       << "\n";
  if (facts.error != 0) text << "error " << facts.error << ' ' << facts.error_text << "\n";
  for (const CudaDeviceFacts& device : facts.devices) {
    text << "device " << device.major << ' ' << device.minor << ' ' << device.multiprocessors << ' '
         << device.memory_bytes << ' ' << device.name << "\n";
  }
  return text.str();
}

CudaFacts parse_cuda_facts(const std::string& text) {
  CudaFacts facts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in(line);
    std::string key;
    in >> key;
    if (key == "device") {
      facts.devices.push_back(parse_device(in, line));
      continue;
    }
    int* const number = key == "runtime"  ? &facts.runtime_version
                        : key == "driver" ? &facts.driver_version
                        : key == "nccl"   ? &facts.nccl_version
                        : key == "error"  ? &facts.error
                                          : nullptr;
    if (number == nullptr) continue;
    if (!(in >> *number)) refuse_line(line);
    if (key == "error") std::getline(in >> std::ws, facts.error_text);
  }
  return facts;
}

}  // namespace stepcast::exec
