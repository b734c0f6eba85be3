// What the JSON outputs share. Only .cc files include this: the JSON library is heavy.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "program/lifetimes.h"

namespace stepcast::report {

// Keys keep the order they are written in.
using Json = nlohmann::ordered_json;

// Indented text with a final newline. Invalid UTF-8 is replaced, not an error; NaN and infinities become null.
std::string to_text(const Json& json);

// 16 hexadecimal digits.
std::string hex(std::uint64_t value);

// [{kind, message, file, line, field, help}]; kind is "input", "unsupported" or another ErrorKind's name.
Json problems_json(const std::vector<Problem>& problems);

// {"weights": bytes, ..., "comm": bytes}.
Json class_bytes_json(const program::ClassBytes& bytes);

}  // namespace stepcast::report
