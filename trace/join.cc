// A merge of two sorted lists of op ids per rank.
#include "trace/join.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string>

#include "base/check.h"
#include "base/error.h"

namespace stepcast::trace {
namespace {

std::string hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, value);
  return text;
}

void require_same_program(const Trace& left, const Trace& right) {
  if (left.fingerprint != right.fingerprint) {
    throw Error(ErrorKind::kInput,
                "traces of different programs cannot be joined: " + left.source + " has fingerprint " +
                    hex(left.fingerprint) + ", " + right.source + " has " + hex(right.fingerprint),
                {}, {"make both from the same scenario, with the same --set options"});
  }
  if (left.class_of_rank.size() != right.class_of_rank.size()) {
    throw Error(ErrorKind::kInput, "traces of different sizes cannot be joined: " + left.source + " has " +
                                       std::to_string(left.class_of_rank.size()) + " ranks, " + right.source + " has " +
                                       std::to_string(right.class_of_rank.size()));
  }
}

// The track's events by op id; none when the rank has no track.
std::vector<Event> events_by_id(const Trace& trace, std::uint32_t rank) {
  const std::optional<std::size_t> track = track_of_rank(trace, rank);
  if (!track) return {};
  std::vector<Event> events = trace.tracks[*track].events;
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.id < b.id; });
  const auto twice =
      std::adjacent_find(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.id == b.id; });
  CHECK(twice == events.end(), rank, twice->id.call, twice->id.op);
  return events;
}

void join_rank(const Trace& left, const Trace& right, std::uint32_t rank, Join& result) {
  const std::vector<Event> a = events_by_id(left, rank);
  const std::vector<Event> b = events_by_id(right, rank);
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() || j < b.size()) {
    if (j == b.size() || (i < a.size() && a[i].id < b[j].id)) {
      result.only_left.push_back({rank, a[i++].id});
    } else if (i == a.size() || b[j].id < a[i].id) {
      result.only_right.push_back({rank, b[j++].id});
    } else {
      result.ops.push_back({rank, a[i++], b[j++]});
    }
  }
}

}  // namespace

std::optional<std::size_t> track_of_rank(const Trace& trace, std::uint32_t rank) {
  std::optional<std::size_t> of_class;
  for (std::size_t i = 0; i < trace.tracks.size(); ++i) {
    const Track& track = trace.tracks[i];
    if (track.rank == rank) return i;
    if (!of_class && rank < trace.class_of_rank.size() && track.class_id == trace.class_of_rank[rank]) of_class = i;
  }
  return of_class;
}

Join join(const Trace& left, const Trace& right) {
  require_same_program(left, right);
  Join result;
  for (std::uint32_t rank = 0; rank < left.class_of_rank.size(); ++rank) join_rank(left, right, rank, result);
  return result;
}

}  // namespace stepcast::trace
