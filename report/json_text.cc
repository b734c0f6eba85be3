// Escapes what RFC 8259 section 7 requires: quotation mark, reverse solidus and control characters.
#include "report/json_text.h"

#include <fmt/format.h>

namespace stepcast::report {

std::string json_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace stepcast::report
