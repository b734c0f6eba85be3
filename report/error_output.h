// What a command that was asked for JSON says when it cannot answer.
#pragma once

#include <string>

#include "base/error.h"

namespace stepcast::report {

// Schema stepcast/error/1: {schema, exit_code, problems [{kind, message, file, line, field, help}]}; a problem's kind
// is "subject", "usage", "input", "unsupported", "environment" or "execution". Ends in a newline.
std::string error_json(const Error& error);

}  // namespace stepcast::report
