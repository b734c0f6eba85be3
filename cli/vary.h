// What `--vary K=a,b,c` means, and the cross product of several.
#pragma once

#include <string>
#include <vector>

#include "config/source.h"
#include "report/sweep_report.h"

namespace stepcast::cli {

// More are no table any more, and an hour of work.
inline constexpr std::size_t kMostVariants = 100'000;

// "plan.tp=1,2,4" each, or a flag's name without dashes: "tp=1,2,4". Commas within quotes, brackets, braces and
// parentheses separate nothing. Throws Error (kUsage): without "=", with an empty or repeated value, for a field named
// twice, for more than kMostVariants combinations.
std::vector<report::SweepAxis> axes_of(const std::vector<std::string>& texts);

std::size_t variant_count(const std::vector<report::SweepAxis>& axes);
// Values of variant i by axis; the last axis varies fastest.
std::vector<std::string> values_of(const std::vector<report::SweepAxis>& axes, std::size_t i);
std::vector<config::Setting> settings_of(const std::vector<report::SweepAxis>& axes, std::size_t i);

}  // namespace stepcast::cli
