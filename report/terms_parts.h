// The tables of terms that terms.cc puts together (internal to the terms).
#pragma once

#include "report/terms.h"

namespace stepcast::report {

std::span<const Term> screen_terms();   // terms_table.cc
std::span<const Term> key_terms();      // terms_keys.cc
std::span<const Term> program_terms();  // terms_program.cc

}  // namespace stepcast::report
