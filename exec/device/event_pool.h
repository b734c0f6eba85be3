// Numbers of a device's events that nobody uses now; the smallest number of events that a step needs is made once.
#pragma once

#include <vector>

#include "exec/device/device.h"

namespace stepcast::exec {

class EventPool {
 public:
  EventNumber take() {
    if (free_.empty()) return made_++;
    const EventNumber event = free_.back();
    free_.pop_back();
    return event;
  }
  void give(EventNumber event) { free_.push_back(event); }
  // As many as were ever in use at once.
  EventNumber made() const { return made_; }

 private:
  EventNumber made_ = 0;
  std::vector<EventNumber> free_;
};

}  // namespace stepcast::exec
