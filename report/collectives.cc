// A segment's collectives are listed once and added for every call of it.
#include "report/collectives.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/check.h"
#include "program/ops/rules.h"

namespace stepcast::report {
namespace {

// Group, op, bytes negated: the map's order is that of the list.
using Key = std::tuple<std::string, std::string, std::int64_t>;

std::vector<Key> collectives_of(const program::Program& p, const program::Segment& segment) {
  std::vector<Key> keys;
  for (const program::Op& op : segment.ops) {
    if (!program::is_collective(op.kind)) continue;
    CHECK(op.group.has_value(), op.name);
    std::vector<program::TensorType> operands;
    for (const program::Operand& o : op.operands) operands.push_back(segment.type_of(o));
    keys.emplace_back(p.roles[*op.group].name, program::to_string(op.kind),
                      -program::work_of(op, operands).message.count);
  }
  return keys;
}

}  // namespace

std::vector<CollectiveCount> count_collectives(const program::Program& p, const sim::Prediction& prediction) {
  std::vector<std::vector<Key>> by_segment;
  for (const program::Segment& segment : p.segments) by_segment.push_back(collectives_of(p, segment));
  std::map<Key, std::int64_t> most;
  for (const sim::ClassResult& c : prediction.classes) {
    std::map<Key, std::int64_t> counts;
    for (const program::Call& call : p.rank_programs[p.ranks[c.representative].program].calls) {
      for (const Key& key : by_segment.at(call.segment.value)) ++counts[key];
    }
    for (const auto& [key, count] : counts) most[key] = std::max(most[key], count);
  }
  std::vector<CollectiveCount> list;
  for (const auto& [key, count] : most) list.push_back({std::get<0>(key), std::get<1>(key), -std::get<2>(key), count});
  return list;
}

}  // namespace stepcast::report
