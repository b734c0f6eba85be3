// Texts of the front page and of help topics.
#pragma once

#include <string_view>

namespace stepcast::cli {

// What a bare `stepcast` prints.
std::string_view orientation();
// The table of `stepcast help exit-codes`.
std::string_view exit_codes();

}  // namespace stepcast::cli
