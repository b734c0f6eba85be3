// Quantities of the schema: the dimension's number in config/options.proto names one of base/quantity.
#include "config/quantity.h"

#include <utility>

#include "base/check.h"
#include "base/quantity.h"
#include "config/text.h"

namespace stepcast::config {
namespace {

stepcast::Dimension base_dimension(Dimension dimension) {
  switch (dimension) {
    case BYTES:
      return stepcast::Dimension::kBytes;
    case BYTES_PER_SECOND:
      return stepcast::Dimension::kByteRate;
    case FLOP_PER_SECOND:
      return stepcast::Dimension::kFlopRate;
    case SECONDS:
      return stepcast::Dimension::kTime;
    case HERTZ:
      return stepcast::Dimension::kFrequency;
    case WATTS:
      return stepcast::Dimension::kPower;
    case TOKENS:
      return stepcast::Dimension::kTokens;
    case DOLLARS_PER_GPU_HOUR:
      return stepcast::Dimension::kPrice;
    default:
      CHECK(false, static_cast<int>(dimension));
  }
  return stepcast::Dimension::kBytes;
}

}  // namespace

double read_quantity(std::string_view text, Dimension dimension, const Location& where, ProblemList& problems) {
  QuantityResult result = stepcast::parse_quantity(text, base_dimension(dimension));
  if (!result.ok()) problems.add(ErrorKind::kInput, printable(result.problem, 160), where, std::move(result.help));
  return result.value;
}

}  // namespace stepcast::config
