// Shared pieces of the JSON outputs.
#include "report/json.h"

#include <fmt/format.h>

namespace stepcast::report {

std::string to_text(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

namespace {

std::string_view kind_text(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kSubject:
      return "subject";
    case ErrorKind::kUsage:
      return "usage";
    case ErrorKind::kInput:
      return "input";
    case ErrorKind::kUnsupported:
      return "unsupported";
    case ErrorKind::kEnvironment:
      return "environment";
    case ErrorKind::kExecution:
      return "execution";
  }
  return "";
}

}  // namespace

Json problems_json(const std::vector<Problem>& problems) {
  Json list = Json::array();
  for (const Problem& p : problems) {
    list.push_back({{"kind", kind_text(p.kind)},
                    {"message", p.message},
                    {"file", p.where.file},
                    {"line", p.where.line},
                    {"field", p.where.field},
                    {"help", p.help}});
  }
  return list;
}

Json class_bytes_json(const program::ClassBytes& bytes) {
  Json json = Json::object();
  for (std::size_t c = 0; c < bytes.size(); ++c) {
    json[std::string(program::to_string(static_cast<program::MemoryClass>(c)))] = bytes[c];
  }
  return json;
}

}  // namespace stepcast::report
