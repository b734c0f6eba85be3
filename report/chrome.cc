// Streams of a rank become threads of a process, as in report/perfetto.cc.
#include "report/chrome.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <optional>

#include "program/types.h"
#include "report/json_text.h"
#include "report/perfetto.h"

namespace stepcast::report {
namespace {

using Output = std::back_insert_iterator<std::string>;

// Microseconds, exact.
std::string microseconds(std::int64_t ps) { return fmt::format("{}.{:06}", ps / 1000000, ps % 1000000); }

void separate(std::string& text) { text += text.back() == '[' ? "\n" : ",\n"; }

void metadata(std::string& text, const trace::Trace& trace, const trace::Track& track) {
  separate(text);
  fmt::format_to(Output(text), R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})", track.rank + 1,
                 json_string(process_name(trace, track)));
  std::array<bool, program::kStreamCount> used{};
  for (const trace::Event& e : track.events) used.at(e.stream) = true;
  for (std::size_t s = 0; s < used.size(); ++s) {
    if (!used[s]) continue;
    separate(text);
    fmt::format_to(Output(text), R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})",
                   track.rank + 1, s + 1, json_string(program::to_string(static_cast<program::Stream>(s))));
  }
}

void slice(std::string& text, const trace::Track& track, const trace::Event& e, const OpLabel& label) {
  separate(text);
  fmt::format_to(Output(text), R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"cat":{},"args":{{"pass":{})",
                 track.rank + 1, e.stream + 1, microseconds(e.begin.ps), microseconds((e.end - e.begin).ps),
                 json_string(label.name), json_string(label.category), json_string(label.pass));
  if (label.layer) fmt::format_to(Output(text), R"(,"layer":{})", *label.layer);
  if (label.microbatch) fmt::format_to(Output(text), R"(,"microbatch":{})", *label.microbatch);
  if (e.transfer > e.begin) fmt::format_to(Output(text), R"(,"wait_us":{})", microseconds((e.transfer - e.begin).ps));
  text += "}}";
}

void counters(std::string& text, const trace::Track& track) {
  std::optional<std::array<std::int64_t, program::kMemoryClassCount>> last;
  for (const trace::MemorySample& sample : track.memory) {
    if (last == sample.class_bytes) continue;
    last = sample.class_bytes;
    separate(text);
    fmt::format_to(Output(text), R"({{"ph":"C","name":"memory","pid":{},"ts":{},"args":{{)", track.rank + 1,
                   microseconds(sample.time.ps));
    for (std::size_t c = 0; c < sample.class_bytes.size(); ++c) {
      fmt::format_to(Output(text), "{}{}:{}", c == 0 ? "" : ",",
                     json_string(program::to_string(static_cast<program::MemoryClass>(c))), sample.class_bytes[c]);
    }
    text += "}}";
  }
}

}  // namespace

std::string to_chrome_json(const trace::Trace& trace, const Labeler& label) {
  std::string text = R"({"traceEvents":[)";
  for (const trace::Track& track : trace.tracks) {
    metadata(text, trace, track);
    for (const trace::Event& e : track.events) slice(text, track, e, label(track.rank, e.id));
    counters(text, track);
  }
  text += "\n],\"displayTimeUnit\":\"ms\"}\n";
  return text;
}

}  // namespace stepcast::report
