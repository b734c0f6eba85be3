// Paths and roles.
#include "program/program.h"

#include <string_view>

#include "base/check.h"

namespace stepcast::program {

namespace {

// Buckets belong to the step, not to a microbatch of it.
bool is_layer(const Tag& tag) {
  return tag.microbatch.has_value() || (tag.pass != Pass::kComm && tag.pass != Pass::kOptimizer);
}

}  // namespace

std::string op_path(const Program& p, const RankProgram& r, std::uint32_t call, std::uint32_t op) {
  CHECK(call < r.calls.size(), call, r.calls.size());
  const Call& c = r.calls[call];
  const Segment& segment = p.segments[c.segment];
  CHECK(op < segment.ops.size(), op, segment.ops.size());
  std::string path(to_string(c.tag.pass));
  if (c.tag.chunk) path += ".c" + std::to_string(*c.tag.chunk);
  if (c.tag.microbatch) path += ".m" + std::to_string(*c.tag.microbatch);
  if (c.tag.layer) path += (is_layer(c.tag) ? ".L" : ".b") + std::to_string(*c.tag.layer);
  if (!segment.label.empty()) path += "." + segment.label;
  if (!segment.ops[op].name.empty()) path += "." + segment.ops[op].name;
  return path;
}

std::optional<RoleId> find_role(const Program& p, std::string_view name) {
  for (std::size_t i = 0; i < p.roles.size(); ++i) {
    if (p.roles[RoleId(i)].name == name) return RoleId(i);
  }
  return std::nullopt;
}

}  // namespace stepcast::program
