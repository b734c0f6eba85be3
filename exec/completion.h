// How a communication op learns that its parts have been matched and moved, by whichever thread arrived last.
//
// Shared by the op and its partners: a partner may still report when the op's own thread has been stopped.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

#include "exec/job.h"

namespace stepcast::exec {

// The bytes moved from `transfer` (the latest partner's start) to `end`.
struct Transfer {
  SimTime transfer;
  SimTime end;
};

class Completion {
 public:
  explicit Completion(std::size_t parts) : parts_left_(parts) {}

  // A part is done; called once per part by the thread that moved it.
  void part_done(Transfer part);
  // Until every part is done; the op's transfer and end are the latest of its parts. Throws Stopped.
  Transfer wait_done(const Job& job);
  // Until a paced link has let the last byte through. Throws Stopped.
  void sleep_until(const Job& job, SimTime end);

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::size_t parts_left_;
  Transfer latest_;
};

}  // namespace stepcast::exec
