// See rank_process.h. A signal handler has no argument of its own, so the slots that it marks are global.
#include "cli/rank_process.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>

#include "base/check.h"
#include "base/error.h"
#include "cli/command_line.h"
#include "cli/interrupt.h"

namespace stepcast::cli {
namespace {

// Where the handler of SIGTERM leaves its mark: one word for each rank of this process.
struct TermMarks {
  std::vector<std::atomic<std::int64_t>*> words;
};
TermMarks* volatile term_marks = nullptr;

constexpr char kSeparator = '\x1e';

extern "C" void mark_and_end(int) {
  const std::int64_t now = exec::now_ns();
  if (TermMarks* marks = term_marks) {
    for (std::atomic<std::int64_t>* word : marks->words) word->store(now);
  }
  _exit(128 + SIGTERM);
}

FailureNote note_of(const Error& error) {
  FailureNote note;
  for (const Problem& problem : error.problems()) {
    note.message += (note.message.empty() ? "" : "\n") + problem.message;
    note.help.insert(note.help.end(), problem.help.begin(), problem.help.end());
  }
  return note;
}

}  // namespace

std::string FailureNote::packed() const {
  // The help first: of a text that is too long the end is lost, which is the status of ranks.
  std::string text;
  for (const std::string& line : help) text += line + kSeparator;
  return text + message;
}

FailureNote FailureNote::unpacked(const std::string& text) {
  FailureNote note;
  std::size_t begin = 0;
  for (std::size_t end = text.find(kSeparator); end != std::string::npos; end = text.find(kSeparator, begin)) {
    note.help.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  note.message = text.substr(begin);
  return note;
}

bool RankProcess::has_supervisor() { return std::getenv(kPageVariable) != nullptr; }

RankProcess::RankProcess() {
  if (const char* where = std::getenv(kPageVariable)) page_ = exec::StatusPage::open(where);
}

void RankProcess::take(const std::vector<std::size_t>& ranks) {
  if (!page_) return;
  ranks_ = ranks;
  static TermMarks marks;
  term_marks = nullptr;
  marks.words.clear();
  for (const std::size_t rank : ranks) marks.words.push_back(&page_->rank(rank).terminated_at);
  term_marks = &marks;
  struct sigaction action = {};
  action.sa_handler = mark_and_end;
  sigaction(SIGTERM, &action, nullptr);
  set_aside(true);
  for (const std::size_t rank : ranks) page_->rank(rank).pid.store(::getpid());
}

void RankProcess::set_aside(bool aside) const {
  for (const std::size_t rank : ranks_) page_->rank(rank).aside.store(aside);
}

int RankProcess::fail(int code, const FailureNote& note) {
  failed_ = true;
  for (const std::size_t rank : ranks_) page_->rank(rank).fail(code, note.packed());
  return code;
}

int RankProcess::run(const std::function<int()>& body) {
  if (!page_) return body();
  try {
    const int code = body();
    for (const std::size_t rank : ranks_) page_->rank(rank).ended_well.store(true);
    return code;
  } catch (const Error& error) {
    return fail(error.exit_code(), note_of(error));
  } catch (const Interrupted&) {
    return fail(kInterruptedCode, {"a rank was interrupted", {}});
  } catch (const std::bad_alloc&) {
    return fail(static_cast<int>(ErrorKind::kEnvironment), {"out of memory on this machine", {}});
  } catch (const std::exception& error) {
    return fail(kInternalCode, {error.what(), {}});
  }
}

void RankProcess::wait_until_seen() const {
  if (ranks_.empty()) return;
  for (int i = 0; i < static_cast<int>(kPatience * 100) && !page_->rank(ranks_[0]).seen.load(); ++i) ::usleep(10'000);
}

}  // namespace stepcast::cli
