// Pending events of one simulation: a binary heap of 32-byte records with a total order, so that equal inputs give
// equal runs, and a FIFO for what happens at the current instant.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/units.h"

namespace stepcast::sim {

struct Event {
  std::int64_t time = 0;       // ps after the start of the step
  std::uint64_t sequence = 0;  // order of scheduling: breaks ties
  std::uint32_t priority = 0;  // lower first within an instant
  std::uint32_t handler = 0;   // what to do: the owner's enum
  std::uint64_t payload = 0;   // to whom
};
static_assert(sizeof(Event) == 32);

class EventQueue {
 public:
  SimTime now() const { return SimTime(now_); }

  // `time` must not lie in the past.
  void schedule(SimTime time, std::uint32_t priority, std::uint32_t handler, std::uint64_t payload) {
    CHECK(time.ps >= now_, time.ps, now_);
    const Event event{time.ps, sequence_++, priority, handler, payload};
    if (time.ps == now_) {
      instant_.push_back(event);
    } else {
      heap_.push_back(event);
      std::push_heap(heap_.begin(), heap_.end(), later);
    }
  }

  // Takes the next event and moves the clock to it; false when none is left.
  bool pop(Event& event) {
    if (next_ < instant_.size()) {
      event = instant_[next_++];
    } else {
      instant_.clear();
      next_ = 0;
      if (heap_.empty()) return false;
      std::pop_heap(heap_.begin(), heap_.end(), later);
      event = heap_.back();
      heap_.pop_back();
      CHECK(event.time >= now_, event.time, now_);
      now_ = event.time;
    }
    return true;
  }

 private:
  static bool later(const Event& a, const Event& b) {
    if (a.time != b.time) return a.time > b.time;
    if (a.priority != b.priority) return a.priority > b.priority;
    return a.sequence > b.sequence;
  }

  std::int64_t now_ = 0;
  std::uint64_t sequence_ = 0;
  std::vector<Event> heap_;
  std::vector<Event> instant_;  // events of the current instant, in scheduling order
  std::size_t next_ = 0;
};

}  // namespace stepcast::sim
