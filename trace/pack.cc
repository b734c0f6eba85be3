// Numbers as eight bytes each, in the machine's order.
#include "trace/pack.h"

#include <cstring>

#include "base/error.h"

namespace stepcast::trace {
namespace {

class Writer {
 public:
  void put(std::int64_t value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  void put(const std::string& text) {
    put(static_cast<std::int64_t>(text.size()));
    bytes_ += text;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  std::int64_t number() {
    std::int64_t value = 0;
    const std::string_view bytes = take(sizeof value);
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(count(1))); }
  // A number of things that follow, of at least so many bytes each.
  std::size_t count(std::size_t bytes_each) {
    const std::int64_t n = number();
    if (n < 0 || static_cast<std::uint64_t>(n) > bytes_.size() / bytes_each) fail();
    return static_cast<std::size_t>(n);
  }
  void expect_end() const {
    if (!bytes_.empty()) fail();
  }

 private:
  std::string_view take(std::size_t size) {
    if (size > bytes_.size()) fail();
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  [[noreturn]] static void fail() { throw Error(ErrorKind::kExecution, "a rank's track cannot be read"); }

  std::string_view bytes_;
};

constexpr std::size_t kEventBytes = 7 * 8;
constexpr std::size_t kSampleBytes = 6 * 8;

void put(Writer& w, const Event& e) {
  for (const std::int64_t value : {std::int64_t{e.id.call}, std::int64_t{e.id.op}, std::int64_t{e.stream}, e.issue.ps,
                                   e.begin.ps, e.transfer.ps, e.end.ps}) {
    w.put(value);
  }
}

Event event_of(Reader& r) {
  Event e;
  e.id.call = static_cast<std::uint32_t>(r.number());
  e.id.op = static_cast<std::uint32_t>(r.number());
  e.stream = static_cast<std::uint8_t>(r.number());
  e.issue = SimTime(r.number());
  e.begin = SimTime(r.number());
  e.transfer = SimTime(r.number());
  e.end = SimTime(r.number());
  return e;
}

}  // namespace

std::string pack(const Track& track) {
  Writer w;
  for (const std::int64_t value : {std::int64_t{track.rank}, std::int64_t{track.class_id}, track.ranks, track.peak}) {
    w.put(value);
  }
  for (const std::int64_t peak : track.class_peak) w.put(peak);
  w.put(track.name);
  w.put(static_cast<std::int64_t>(track.events.size()));
  for (const Event& e : track.events) put(w, e);
  w.put(static_cast<std::int64_t>(track.memory.size()));
  for (const MemorySample& sample : track.memory) {
    w.put(sample.time.ps);
    for (const std::int64_t bytes : sample.class_bytes) w.put(bytes);
  }
  return w.take();
}

Track unpack(std::string_view bytes) {
  Reader r(bytes);
  Track track;
  track.rank = static_cast<std::uint32_t>(r.number());
  track.class_id = static_cast<std::uint32_t>(r.number());
  track.ranks = r.number();
  track.peak = r.number();
  for (std::int64_t& peak : track.class_peak) peak = r.number();
  track.name = r.text();
  for (std::size_t left = r.count(kEventBytes); left > 0; --left) track.events.push_back(event_of(r));
  for (std::size_t left = r.count(kSampleBytes); left > 0; --left) {
    MemorySample sample;
    sample.time = SimTime(r.number());
    for (std::int64_t& value : sample.class_bytes) value = r.number();
    track.memory.push_back(sample);
  }
  r.expect_end();
  return track;
}

}  // namespace stepcast::trace
