// libFuzzer: any text is a scenario, with or without broken rules, or an Error.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "plan/scenario_reader.h"
#include "tests/fuzz/readers/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const stepcast::fuzz::InputFile file;
  stepcast::config::ScenarioSource source;
  source.file = file.write("run.yaml", data, size);
  try {
    stepcast::plan::read_scenario(source);
  } catch (const stepcast::Error&) {
  }
  return 0;
}
