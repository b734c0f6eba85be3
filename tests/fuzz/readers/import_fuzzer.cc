// libFuzzer: any script or configuration is an import, whose scenario is YAML, or an Error. The text is read as every
// format it could be.
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "config/document.h"
#include "import/imported.h"
#include "tests/fuzz/readers/input_file.h"

namespace stepcast::imports {
namespace {

struct Source {
  const char* format;
  const char* name;
};
constexpr std::array kSources = std::to_array<Source>({{"megatron", "run.sh"},
                                                       {"megatron", "run.yaml"},
                                                       {"megatron-bridge", "run.sh"},
                                                       {"torchtitan", "run.toml"},
                                                       {"torchtitan", "run.sh"},
                                                       {"nanotron", "run.yaml"},
                                                       {"deepspeed", "run.json"}});

void import_as(const Source& source, const std::string& file) {
  ImportRequest request;
  request.format = source.format;
  request.file = file;
  request.gpus = 16;
  std::string yaml;
  try {
    yaml = scenario_yaml(import_file(request));
  } catch (const Error&) {
    return;
  }
  config::parse_document(yaml, "written.yaml");
}

}  // namespace
}  // namespace stepcast::imports

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const stepcast::fuzz::InputFile file;
  for (const auto& source : stepcast::imports::kSources) {
    stepcast::imports::import_as(source, file.write(source.name, data, size));
  }
  return 0;
}
