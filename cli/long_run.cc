// Progress is counted in millions of ops.
#include "cli/long_run.h"

#include "base/quantity.h"
#include "cli/interrupt.h"

namespace stepcast::cli {
namespace {

constexpr std::int64_t kMillion = 1'000'000;

}  // namespace

std::string long_run_note(std::int64_t ranks, std::int64_t classes, std::uint64_t ops, std::size_t runs) {
  const auto millions = static_cast<std::int64_t>((ops + kMillion / 2) / kMillion);
  std::string text = "note: simulating " + counted(classes, "class", "classes") + " of " + counted(ranks, "rank") +
                     ": about " + format_count(millions) + " million ops";
  if (ops >= kMostOpsWithWhatIfs) return text + ", without what-ifs";
  return runs > 1 ? text + ", up to " + std::to_string(runs) + " times (the answer and its what-ifs)" : text;
}

void LongRun::expect(std::uint64_t ops) {
  progress_.emplace("simulating, million ops", static_cast<std::int64_t>(ops) / kMillion);
}

sim::Watch LongRun::watch() {
  return [this](std::int64_t ops) { look(ops); };
}

void LongRun::look(std::int64_t ops) {
  throw_if_interrupted();
  const std::int64_t done = done_ += ops;
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (lock && progress_) progress_->update(done / kMillion);
}

}  // namespace stepcast::cli
