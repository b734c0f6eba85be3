#include "tests/device/section.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

namespace stepcast::device_check {
namespace {

using Clock = std::chrono::steady_clock;

void add_lines(std::ostringstream& text, const char* label, const std::vector<std::string>& lines, std::size_t most) {
  for (std::size_t i = 0; i < std::min(lines.size(), most); ++i) text << "  " << label << lines[i] << "\n";
  if (lines.size() > most) text << "  " << label << "and " << lines.size() - most << " more\n";
}

const char* verdict_of(const Outcome& outcome) {
  if (outcome.failed()) return "FAIL";
  return outcome.passed > 0 ? "PASS" : "SKIP";
}

}  // namespace

Budget::Budget(double seconds)
    : end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}

double Budget::seconds_left() const { return std::chrono::duration<double>(end_ - Clock::now()).count(); }

std::string summary(const std::vector<Outcome>& outcomes, std::size_t most) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1);
  bool failed = false;
  for (const Outcome& o : outcomes) {
    failed = failed || o.failed();
    text << verdict_of(o) << "  " << o.section << ": " << o.passed << " passed, " << o.failures.size() << " failed, "
         << o.skipped.size() << " skipped, " << o.seconds << " s\n";
    add_lines(text, "failed: ", o.failures, most);
    add_lines(text, "skipped: ", o.skipped, most);
    add_lines(text, "", o.notes, o.notes.size());
  }
  text << (failed ? "FAIL" : "OK") << "  gpu_check\n";
  return text.str();
}

}  // namespace stepcast::device_check
