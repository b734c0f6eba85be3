// A process that executes ranks and is watched: it tells the status page how it ends, and leaves the words to its
// supervisor.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exec/status_page.h"

namespace stepcast::cli {

// Names the page of the supervisor that started this process.
inline constexpr const char* kPageVariable = "STEPCAST_STATUS_PAGE";

// What a rank that fails leaves for its supervisor, as one text.
struct FailureNote {
  std::string message;
  std::vector<std::string> help;

  std::string packed() const;
  static FailureNote unpacked(const std::string& text);
};

class RankProcess {
 public:
  // The one of this process: with the page that a supervisor has named, if there is one that can be seen from here.
  RankProcess();

  // Whether a supervisor has started this process, even if its page cannot be seen.
  static bool has_supervisor();

  // Null without.
  const std::shared_ptr<exec::StatusPage>& page() const { return page_; }

  // From now on this process has `ranks`, so that they are missed when it dies. A SIGTERM is marked in the page, which
  // tells a rank that others ended from the one that was the cause.
  void take(const std::vector<std::size_t>& ranks);
  // Whether the ranks are busy with something that others have no part in (RankSlot::aside).
  void set_aside(bool aside) const;

  // Runs `body` and gives its exit code. Of what it throws, Interrupted too, the page gets the text, and the exit code
  // comes back. Without a page it throws.
  int run(const std::function<int()>& body);
  // Whether it has thrown.
  bool failed() const { return failed_; }
  // After a failure: returns when the supervisor has read it and leaves the end to this process. Mostly the supervisor
  // ends it first. Does not wait longer than kPatience seconds.
  void wait_until_seen() const;

  static constexpr double kPatience = 5;

 private:
  int fail(int code, const FailureNote& note);

  std::shared_ptr<exec::StatusPage> page_;
  std::vector<std::size_t> ranks_;
  bool failed_ = false;
};

}  // namespace stepcast::cli
