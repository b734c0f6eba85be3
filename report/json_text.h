// Text as a JSON string.
#pragma once

#include <string>
#include <string_view>

namespace stepcast::report {

// Quoted and escaped; bytes of 0x80 and above are kept, since all text of stepcast is UTF-8.
std::string json_string(std::string_view text);

}  // namespace stepcast::report
