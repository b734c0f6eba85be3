// Streams and roles are named after the parallel dimension they serve.
#include "sim/exposed.h"

#include <string_view>

#include "base/check.h"

namespace stepcast::sim {
namespace {

using program::Stream;

// The kind of communication within a role that is named after one; roles that span several (model, world) have none.
std::optional<Exposed> exposed_in(std::string_view role) {
  if (role == "tp") return Exposed::kTp;
  if (role == "cp") return Exposed::kCp;
  if (role == "ep") return Exposed::kEp;
  if (role == "pp") return Exposed::kPp;
  if (role == "dp") return Exposed::kDp;
  return std::nullopt;
}

}  // namespace

std::optional<Exposed> exposed_on(Stream stream) {
  switch (stream) {
    case Stream::kCompute:
      return std::nullopt;
    case Stream::kTp:
      return Exposed::kTp;
    case Stream::kCp:
      return Exposed::kCp;
    case Stream::kEp:
      return Exposed::kEp;
    case Stream::kDp:
      return Exposed::kDp;
    case Stream::kGather:
      return Exposed::kGather;
    case Stream::kSendNext:
    case Stream::kRecvPrev:
    case Stream::kSendPrev:
    case Stream::kRecvNext:
      return Exposed::kPp;
    case Stream::kD2h:
    case Stream::kH2d:
      return Exposed::kCopy;
  }
  CHECK(false, static_cast<int>(stream));
  return std::nullopt;
}

Exposed exposed_by(const program::Program& p, const program::Op& op) {
  if (const std::optional<Exposed> kind = exposed_on(op.stream)) return *kind;
  const program::RoleId role = op.group ? *op.group : op.parts.front().role;
  return exposed_in(p.roles[role].name).value_or(program::is_p2p(op.kind) ? Exposed::kPp : Exposed::kDp);
}

}  // namespace stepcast::sim
