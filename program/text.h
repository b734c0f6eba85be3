// The text form of a Program: readable, stable, round-trips (parse_text(to_text(p)) == p). Used by `stepcast dump`.
#pragma once

#include <string>
#include <string_view>

#include "program/program.h"

namespace stepcast::program {

std::string to_text(const Program& p);

// Throws Error (kInput) with file name and line on malformed text. Never reads out of bounds or allocates more than the
// text's own size warrants, whatever the text says.
Program parse_text(std::string_view text, const std::string& file_name);

}  // namespace stepcast::program
