// The Perfetto and Chrome files: names, nesting, determinism, and decoding by tools that know only the wire format.
#include "report/perfetto.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "report/chrome.h"
#include "report/file.h"
#include "report/perfetto.pb.h"

namespace stepcast::report {
namespace {

constexpr auto kCompute = static_cast<std::uint8_t>(program::Stream::kCompute);
constexpr auto kTp = static_cast<std::uint8_t>(program::Stream::kTp);

trace::Event event(std::uint32_t op, std::uint8_t stream, std::int64_t begin, std::int64_t transfer, std::int64_t end) {
  trace::Event e;
  e.id = {0, op};
  e.stream = stream;
  e.begin = SimTime(begin);
  e.transfer = SimTime(transfer);
  e.end = SimTime(end);
  return e;
}

// One class of 4 ranks: two matmuls on the compute stream, the second overlapped by a collective that waits 1 ns first.
trace::Trace small_trace() {
  trace::Trace t;
  t.source = "sim";
  t.class_of_rank = {0, 0, 0, 0};
  trace::Track track;
  track.ranks = 4;
  track.name = "stage0";
  track.events = {event(0, kCompute, 0, 0, 2000), event(1, kTp, 2000, 3000, 6000),
                  event(2, kCompute, 2000, 2000, 5000)};
  track.memory = {
      {SimTime(0), {100, 0, 0, 0, 0}}, {SimTime(2000), {100, 0, 0, 7, 0}}, {SimTime(3000), {100, 0, 0, 7, 0}}};
  t.tracks = {track};
  return t;
}

OpLabel label(std::uint32_t, trace::OpId id) {
  OpLabel l;
  l.name = "F.c0.m3.L12.attn.op" + std::to_string(id.op);
  l.category = id.op == 1 ? "collective" : "matmul";
  l.pass = "F";
  l.layer = 12;
  l.microbatch = 3;
  return l;
}

perfetto::Trace decoded(const std::string& bytes) {
  perfetto::Trace trace;
  EXPECT_TRUE(trace.ParseFromString(bytes));
  return trace;
}

TEST(Perfetto, NestsSlicesLastInFirstOutOnEveryTrack) {
  std::map<std::uint64_t, int> open;
  std::map<std::uint64_t, std::uint64_t> last_time;
  int slices = 0;
  const perfetto::Trace trace = decoded(to_perfetto(small_trace(), label));
  for (const auto& packet : trace.packet()) {
    const auto& e = packet.track_event();
    if (e.type() != perfetto::TrackEvent::SLICE_BEGIN && e.type() != perfetto::TrackEvent::SLICE_END) continue;
    EXPECT_GE(packet.timestamp(), last_time[e.track_uuid()]);
    last_time[e.track_uuid()] = packet.timestamp();
    open[e.track_uuid()] += e.type() == perfetto::TrackEvent::SLICE_BEGIN ? 1 : -1;
    EXPECT_GE(open[e.track_uuid()], 0);
    slices += e.type() == perfetto::TrackEvent::SLICE_BEGIN ? 1 : 0;
  }
  for (const auto& [track, depth] : open) EXPECT_EQ(depth, 0) << track;
  EXPECT_EQ(open.size(), 2U);
  EXPECT_EQ(slices, 4);  // three ops and one wait
}

TEST(Perfetto, NamesProcessesStreamsAndCounters) {
  std::set<std::string> names;
  const perfetto::Trace trace = decoded(to_perfetto(small_trace(), label));
  for (const auto& packet : trace.packet()) {
    if (!packet.has_track_descriptor()) continue;
    const auto& d = packet.track_descriptor();
    if (d.has_process()) names.insert("process " + d.process().process_name());
    if (d.has_thread()) names.insert("thread " + d.thread().thread_name());
    if (d.has_counter()) names.insert("counter " + d.name());
  }
  // Streams that hold no op have no thread; all five memory classes have a counter.
  EXPECT_EQ(names,
            (std::set<std::string>{"process stage0 x4 ranks", "thread compute", "thread tp", "counter memory weights",
                                   "counter memory gradients", "counter memory optimizer", "counter memory activations",
                                   "counter memory comm"}));
}

TEST(Perfetto, InternsOpPathsAndCategoriesBeforeTheirFirstUse) {
  std::map<std::uint64_t, std::string> names;
  std::map<std::uint64_t, std::string> categories;
  std::vector<std::string> shown;
  const perfetto::Trace trace = decoded(to_perfetto(small_trace(), label));
  for (const auto& packet : trace.packet()) {
    for (const auto& n : packet.interned_data().event_names()) names[n.iid()] = n.name();
    for (const auto& n : packet.interned_data().event_categories()) categories[n.iid()] = n.name();
    const auto& e = packet.track_event();
    if (e.type() != perfetto::TrackEvent::SLICE_BEGIN) continue;
    ASSERT_TRUE(names.contains(e.name_iid()));
    ASSERT_TRUE(categories.contains(e.category_iids(0)));
    shown.push_back(names[e.name_iid()] + " " + categories[e.category_iids(0)]);
  }
  EXPECT_EQ(shown, (std::vector<std::string>{"F.c0.m3.L12.attn.op0 matmul", "F.c0.m3.L12.attn.op2 matmul",
                                             "F.c0.m3.L12.attn.op1 collective", "wait wait"}));
}

TEST(Perfetto, StartsInterningAfreshOnlyOnce) {
  const perfetto::Trace trace = decoded(to_perfetto(small_trace(), label));
  EXPECT_EQ(trace.packet(0).sequence_flags(), 3U);
  for (int i = 1; i < trace.packet_size(); ++i) EXPECT_EQ(trace.packet(i).sequence_flags(), 2U);
}

TEST(Perfetto, WritesACounterOnlyWhereItChanges) {
  std::vector<std::int64_t> values;
  const perfetto::Trace trace = decoded(to_perfetto(small_trace(), label));
  for (const auto& packet : trace.packet()) {
    if (packet.track_event().type() == perfetto::TrackEvent::COUNTER)
      values.push_back(packet.track_event().counter_value());
  }
  // weights 100; gradients, optimizer 0; activations 0 then 7; comm 0: three samples, but no value is repeated.
  EXPECT_EQ(values, (std::vector<std::int64_t>{100, 0, 0, 0, 7, 0}));
}

TEST(Perfetto, IsTheSameBytesTwice) { EXPECT_EQ(to_perfetto(small_trace(), label), to_perfetto(small_trace(), label)); }

TEST(Perfetto, RefusesOverlapWithinAStream) {
  trace::Trace t = small_trace();
  t.tracks[0].events[2].begin = SimTime(1999);  // the op before ends at 2000
  EXPECT_THROW(to_perfetto(t, label), InternalError);
}

#ifdef STEPCAST_PROTOC
TEST(Perfetto, DecodesWithoutASchema) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "perfetto_test.pftrace";
  write_file_atomically(file.string(), to_perfetto(small_trace(), label));
  const std::string command = std::string(STEPCAST_PROTOC) + " --decode_raw < '" + file.string() + "'";
  std::FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0);
  EXPECT_NE(text.find("6: \"stage0 x4 ranks\""), std::string::npos) << text;  // ProcessDescriptor.process_name
  EXPECT_NE(text.find("2: \"F.c0.m3.L12.attn.op0\""), std::string::npos);     // EventName.name
  std::filesystem::remove(file);
}
#endif

TEST(ChromeTrace, HoldsEveryOpWithExactMicroseconds) {
  const auto json = nlohmann::json::parse(to_chrome_json(small_trace(), label));
  int complete = 0;
  for (const auto& e : json["traceEvents"]) {
    if (e["ph"] != "X") continue;
    ++complete;
    if (e["name"] != "F.c0.m3.L12.attn.op1") continue;
    // 2,000 ps to 6,000 ps, of which 1,000 ps waiting.
    EXPECT_DOUBLE_EQ(e["ts"], 0.002);
    EXPECT_DOUBLE_EQ(e["dur"], 0.004);
    EXPECT_DOUBLE_EQ(e["args"]["wait_us"], 0.001);
    EXPECT_EQ(e["args"]["layer"], 12);
  }
  EXPECT_EQ(complete, 3);
}

TEST(OutputFile, AppearsWholeOrNotAtAll) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "output_file_test";
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "a.txt").string();
  write_file_atomically(path, "first");
  write_file_atomically(path, "second");
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), "second");
  // A folder cannot be replaced by a file, and the temporary file beside it goes away.
  EXPECT_THROW(write_file_atomically(folder.string(), "x"), Error);
  EXPECT_THROW(write_file_atomically((folder / "none" / "b.txt").string(), "x"), Error);
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++files;
  EXPECT_EQ(files, 1);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace stepcast::report
