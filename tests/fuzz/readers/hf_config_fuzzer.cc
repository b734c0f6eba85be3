// libFuzzer: any text is a model or an Error.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "models/hf_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    stepcast::models::parse_hf_config(std::string(reinterpret_cast<const char*>(data), size), "m.json");
  } catch (const stepcast::Error&) {
  }
  return 0;
}
