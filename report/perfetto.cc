// Writes packets one by one: a Perfetto trace is a repeated field, so serialised packets concatenate.
#include "report/perfetto.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <vector>

#include "base/check.h"
#include "program/types.h"
#include "report/perfetto.pb.h"

namespace stepcast::report {
namespace {

// One packet sequence holds the whole trace.
constexpr std::uint32_t kSequence = 1;
constexpr std::uint32_t kInterningStarts = 1;
constexpr std::uint32_t kNeedsInterning = 2;

// Track uuids: a block of 64 per process; 0 is the process, then its streams, then its counters.
constexpr std::uint64_t kUuidsPerProcess = 64;
constexpr std::uint64_t kFirstCounter = 32;
static_assert(program::kStreamCount < kFirstCounter - 1);
static_assert(program::kMemoryClassCount < kUuidsPerProcess - kFirstCounter);

std::uint64_t process_uuid(std::size_t track) { return (track + 1) * kUuidsPerProcess; }
std::uint64_t stream_uuid(std::size_t track, std::size_t stream) { return process_uuid(track) + 1 + stream; }
std::uint64_t counter_uuid(std::size_t track, std::size_t c) { return process_uuid(track) + kFirstCounter + c; }

std::uint64_t nanoseconds(SimTime t) { return static_cast<std::uint64_t>(std::max<std::int64_t>(t.ps, 0) / 1000); }

// Numbers names in order of first use.
class Interner {
 public:
  // The id of `name`, and whether it is new.
  std::pair<std::uint64_t, bool> id_of(const std::string& name) {
    const auto [it, added] = ids_.try_emplace(name, ids_.size() + 1);
    return {it->second, added};
  }

 private:
  std::map<std::string, std::uint64_t> ids_;
};

class Writer {
 public:
  Writer(const trace::Trace& trace, const Labeler& label) : trace_(trace), label_(label) {}

  std::string write() {
    for (std::size_t t = 0; t < trace_.tracks.size(); ++t) describe(t);
    for (std::size_t t = 0; t < trace_.tracks.size(); ++t) {
      for (std::size_t s = 0; s < program::kStreamCount; ++s) slices(t, s);
      for (std::size_t c = 0; c < program::kMemoryClassCount; ++c) counter(t, c);
    }
    return std::move(bytes_);
  }

 private:
  perfetto::TracePacket& packet() {
    message_.Clear();
    perfetto::TracePacket& p = *message_.add_packet();
    p.set_trusted_packet_sequence_id(kSequence);
    p.set_sequence_flags(bytes_.empty() ? kInterningStarts | kNeedsInterning : kNeedsInterning);
    return p;
  }
  void flush() { CHECK(message_.AppendToString(&bytes_)); }

  bool uses_stream(const trace::Track& track, std::size_t stream) const {
    return std::any_of(track.events.begin(), track.events.end(),
                       [&](const trace::Event& e) { return e.stream == stream; });
  }

  void describe(std::size_t t) {
    const trace::Track& track = trace_.tracks[t];
    const auto pid = static_cast<std::int32_t>(track.rank) + 1;  // viewers hide process 0
    perfetto::TrackDescriptor& process = *packet().mutable_track_descriptor();
    process.set_uuid(process_uuid(t));
    process.mutable_process()->set_pid(pid);
    process.mutable_process()->set_process_name(process_name(trace_, track));
    flush();
    for (std::size_t s = 0; s < program::kStreamCount; ++s) {
      if (!uses_stream(track, s)) continue;
      perfetto::TrackDescriptor& thread = *packet().mutable_track_descriptor();
      thread.set_uuid(stream_uuid(t, s));
      thread.set_parent_uuid(process_uuid(t));
      thread.mutable_thread()->set_pid(pid);
      thread.mutable_thread()->set_tid(static_cast<std::int32_t>(s) + 1);
      thread.mutable_thread()->set_thread_name(std::string(program::to_string(static_cast<program::Stream>(s))));
      flush();
    }
    for (std::size_t c = 0; c < program::kMemoryClassCount && !track.memory.empty(); ++c) {
      perfetto::TrackDescriptor& memory = *packet().mutable_track_descriptor();
      memory.set_uuid(counter_uuid(t, c));
      memory.set_parent_uuid(process_uuid(t));
      memory.set_name("memory " + std::string(program::to_string(static_cast<program::MemoryClass>(c))));
      memory.mutable_counter()->set_unit(perfetto::CounterDescriptor::SIZE_BYTES);
      flush();
    }
  }

  void slices(std::size_t t, std::size_t stream) {
    const trace::Track& track = trace_.tracks[t];
    const std::uint64_t uuid = stream_uuid(t, stream);
    SimTime free;
    for (const trace::Event& e : track.events) {
      if (e.stream != stream) continue;
      CHECK(e.begin >= free && e.transfer >= e.begin && e.end >= e.transfer, e.id.call, e.id.op, e.begin.ps, free.ps);
      free = e.end;
      begin_op(uuid, e, label_(track.rank, e.id));
      if (e.transfer > e.begin) {
        begin(uuid, e.begin, "wait", "wait", packet());
        flush();
        end(uuid, e.transfer);
      }
      end(uuid, e.end);
    }
  }

  void begin_op(std::uint64_t uuid, const trace::Event& e, const OpLabel& label) {
    perfetto::TracePacket& p = packet();
    begin(uuid, e.begin, label.name, label.category, p);
    annotation(p, "pass").set_string_value(label.pass);
    if (label.layer) annotation(p, "layer").set_uint_value(*label.layer);
    if (label.microbatch) annotation(p, "microbatch").set_uint_value(*label.microbatch);
    flush();
  }

  void begin(std::uint64_t uuid, SimTime at, const std::string& name, const std::string& category,
             perfetto::TracePacket& p) {
    p.set_timestamp(nanoseconds(at));
    perfetto::TrackEvent& event = *p.mutable_track_event();
    event.set_type(perfetto::TrackEvent::SLICE_BEGIN);
    event.set_track_uuid(uuid);
    const auto [name_id, new_name] = names_.id_of(name);
    if (new_name) intern(name_id, name, *p.mutable_interned_data()->add_event_names());
    event.set_name_iid(name_id);
    const auto [category_id, new_category] = categories_.id_of(category);
    if (new_category) intern(category_id, category, *p.mutable_interned_data()->add_event_categories());
    event.add_category_iids(category_id);
  }

  void end(std::uint64_t uuid, SimTime at) {
    perfetto::TracePacket& p = packet();
    p.set_timestamp(nanoseconds(at));
    p.mutable_track_event()->set_type(perfetto::TrackEvent::SLICE_END);
    p.mutable_track_event()->set_track_uuid(uuid);
    flush();
  }

  perfetto::DebugAnnotation& annotation(perfetto::TracePacket& p, const std::string& name) {
    const auto [id, is_new] = annotations_.id_of(name);
    if (is_new) intern(id, name, *p.mutable_interned_data()->add_debug_annotation_names());
    perfetto::DebugAnnotation& a = *p.mutable_track_event()->add_debug_annotations();
    a.set_name_iid(id);
    return a;
  }

  static void intern(std::uint64_t id, const std::string& name, perfetto::InternedName& entry) {
    entry.set_iid(id);
    entry.set_name(name);
  }

  // Only changes are written.
  void counter(std::size_t t, std::size_t c) {
    std::optional<std::int64_t> last;
    for (const trace::MemorySample& sample : trace_.tracks[t].memory) {
      const std::int64_t value = sample.class_bytes[c];
      if (value == last) continue;
      last = value;
      perfetto::TracePacket& p = packet();
      p.set_timestamp(nanoseconds(sample.time));
      p.mutable_track_event()->set_type(perfetto::TrackEvent::COUNTER);
      p.mutable_track_event()->set_track_uuid(counter_uuid(t, c));
      p.mutable_track_event()->set_counter_value(value);
      flush();
    }
  }

  const trace::Trace& trace_;
  const Labeler& label_;
  perfetto::Trace message_;
  Interner names_;
  Interner categories_;
  Interner annotations_;
  std::string bytes_;
};

}  // namespace

std::string process_name(const trace::Trace& trace, const trace::Track& track) {
  if (trace.source == "exec") return track.name + " rank " + std::to_string(track.rank);
  return track.name + " x" + std::to_string(track.ranks) + (track.ranks == 1 ? " rank" : " ranks");
}

std::string to_perfetto(const trace::Trace& trace, const Labeler& label) { return Writer(trace, label).write(); }

}  // namespace stepcast::report
