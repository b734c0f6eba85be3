// The progress line: carriage return, text, erase to the end of the line (ECMA-48 EL).
#include "base/progress.h"

#include <unistd.h>

#include <utility>

namespace stepcast {
namespace {

constexpr std::chrono::nanoseconds kInterval = std::chrono::milliseconds(100);

}  // namespace

Progress::Progress(std::string label, std::int64_t total)
    : Progress(std::move(label), total, stderr, isatty(STDERR_FILENO) == 1) {}

Progress::Progress(std::string label, std::int64_t total, std::FILE* out, bool terminal)
    : label_(std::move(label)),
      total_(total),
      out_(out),
      terminal_(terminal),
      start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", out_);
  std::fflush(out_);
}

void Progress::update(std::int64_t done) {
  if (terminal_) update_at(done, std::chrono::steady_clock::now() - start_);
}

void Progress::update_at(std::int64_t done, std::chrono::nanoseconds elapsed) {
  if (!terminal_ || elapsed < next_) return;
  next_ = elapsed + kInterval;
  shown_ = true;
  std::string text = "\r" + label_ + " " + std::to_string(done);
  if (total_ > 0) text += "/" + std::to_string(total_);
  text += "  " + std::to_string(std::chrono::duration_cast<std::chrono::seconds>(elapsed).count()) + " s\x1b[K";
  std::fputs(text.c_str(), out_);
  std::fflush(out_);
}

}  // namespace stepcast
