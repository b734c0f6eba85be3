// Pending events of one simulation, in a total order, so that equal inputs give equal runs: by time, then by bucket and
// within a bucket in the order of scheduling.
//
// Ranks that do the same end their ops at the same time, and one after the other: events scheduled for one time in a
// row share a bucket, and the heap holds buckets. Unfolded runs of thousands of equal ranks thus pay for the heap once
// per instant, not once per event.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/units.h"

namespace stepcast::sim {

struct Event {
  std::uint32_t what = 0;     // the owner's: what to do, and a generation that tells stale events apart
  std::uint32_t subject = 0;  // to whom
};

class EventQueue {
 public:
  SimTime now() const { return SimTime(now_); }

  // `time` must not lie in the past.
  void schedule(SimTime time, std::uint32_t what, std::uint32_t subject) {
    CHECK(time.ps >= now_, time.ps, now_);
    if (time.ps == now_) {
      instant_.push_back({what, subject});
      return;
    }
    for (const Recent& r : recent_) {
      if (r.time == time.ps) {
        buckets_[r.bucket].push_back({what, subject});
        return;
      }
    }
    open_bucket(time.ps).push_back({what, subject});
  }

  // Takes the next event of the current instant; false when it has none left.
  bool pop_now(Event& event) {
    if (next_ == instant_.size()) return false;
    event = instant_[next_++];
    return true;
  }

  // The event `distance` places behind the next one, if it is known already; for prefetching.
  const Event* ahead(std::size_t distance) const {
    return next_ + distance < instant_.size() ? &instant_[next_ + distance] : nullptr;
  }

  // Moves the clock to the next event, without taking it; false when none is left. The current instant must be over.
  bool advance() {
    CHECK(next_ == instant_.size(), next_, instant_.size());
    instant_.clear();
    next_ = 0;
    if (heap_.empty()) return false;
    CHECK(heap_.front().time > now_, heap_.front().time, now_);
    now_ = heap_.front().time;
    while (!heap_.empty() && heap_.front().time == now_) take_bucket();
    for (Recent& r : recent_) {
      if (r.time == now_) r.time = kNever;
    }
    return true;
  }

 private:
  static constexpr std::size_t kArity = 4;
  static constexpr std::int64_t kNever = -1;

  struct Entry {
    std::int64_t time = 0;
    std::uint64_t sequence = 0;
    std::uint32_t bucket = 0;
  };
  struct Recent {
    std::int64_t time = kNever;
    std::uint32_t bucket = 0;
  };

  static bool earlier(const Entry& a, const Entry& b) {
    return a.time != b.time ? a.time < b.time : a.sequence < b.sequence;
  }

  std::vector<Event>& open_bucket(std::int64_t time) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(buckets_.size()));
      buckets_.emplace_back();
    }
    const std::uint32_t bucket = free_.back();
    free_.pop_back();
    recent_[next_recent_] = {time, bucket};
    next_recent_ = (next_recent_ + 1) % recent_.size();
    heap_.push_back({time, sequence_++, bucket});
    sift_up(heap_.size() - 1);
    return buckets_[bucket];
  }

  void take_bucket() {
    const std::uint32_t bucket = heap_.front().bucket;
    pop_heap();
    instant_.insert(instant_.end(), buckets_[bucket].begin(), buckets_[bucket].end());
    buckets_[bucket].clear();
    free_.push_back(bucket);
  }

  void sift_up(std::size_t at) {
    const Entry entry = heap_[at];
    while (at > 0) {
      const std::size_t parent = (at - 1) / kArity;
      if (!earlier(entry, heap_[parent])) break;
      heap_[at] = heap_[parent];
      at = parent;
    }
    heap_[at] = entry;
  }

  void pop_heap() {
    const Entry last = heap_.back();
    heap_.pop_back();
    const std::size_t size = heap_.size();
    if (size == 0) return;
    std::size_t at = 0;
    for (;;) {
      const std::size_t first = kArity * at + 1;
      if (first >= size) break;
      std::size_t least = first;
      for (std::size_t child = first + 1; child < first + kArity && child < size; ++child) {
        if (earlier(heap_[child], heap_[least])) least = child;
      }
      if (!earlier(heap_[least], last)) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = last;
  }

  std::int64_t now_ = 0;
  std::uint64_t sequence_ = 0;
  std::vector<Entry> heap_;
  std::vector<std::vector<Event>> buckets_;
  std::vector<std::uint32_t> free_;  // buckets
  std::array<Recent, 4> recent_;     // the buckets opened last, while they are pending
  std::size_t next_recent_ = 0;
  std::vector<Event> instant_;  // events of the current instant
  std::size_t next_ = 0;
};

}  // namespace stepcast::sim
