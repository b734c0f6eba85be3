// Keeps what the cost model answered; every answer is checked to be a length of time.
#include "sim/engine/price_cache.h"

#include "base/check.h"

namespace stepcast::sim {
namespace {

const Duration kUnknown(-1);

Duration checked(Duration d) {
  CHECK(d.ps >= 0, d.ps);
  return d;
}

}  // namespace

PriceCache::PriceCache(const program::Program& p, const CostModel& costs) : program_(p), costs_(costs) {
  std::size_t total = 0;
  first_.reserve(p.segments.size() + 1);
  for (const program::Segment& s : p.segments) {
    first_.push_back(total);
    total += s.ops.size();
  }
  first_.push_back(total);
  launch_.assign(total, kUnknown);
}

std::vector<program::TensorType> PriceCache::operand_types(program::SegmentId segment, std::uint32_t op) const {
  const program::Segment& s = program_.segments[segment];
  std::vector<program::TensorType> types;
  types.reserve(s.ops[op].operands.size());
  for (const program::Operand& o : s.ops[op].operands) types.push_back(s.type_of(o));
  return types;
}

Duration PriceCache::local(program::SegmentId segment, std::uint32_t op, DeviceClass device) {
  const auto known = local_.try_emplace(device);
  std::vector<Duration>& prices = known.first->second;
  if (known.second) prices.assign(first_.back(), kUnknown);
  Duration& price = prices[index_of(segment, op)];
  if (price == kUnknown) {
    price = checked(costs_.local_cost(program_.segments[segment].ops[op], operand_types(segment, op), device).time);
  }
  return price;
}

Duration PriceCache::collective(program::SegmentId segment, std::uint32_t op, PathClass path, std::int64_t members) {
  const auto [it, is_new] = collective_.try_emplace({index_of(segment, op), path, members}, kUnknown);
  if (is_new) {
    const program::Op& what = program_.segments[segment].ops[op];
    it->second = checked(costs_.collective_cost(what, operand_types(segment, op), path, members).time);
  }
  return it->second;
}

Duration PriceCache::message(Bytes bytes, PathClass path) {
  const auto [it, is_new] = message_.try_emplace({bytes.count, path}, kUnknown);
  if (is_new) it->second = checked(costs_.message_cost(bytes, path).time);
  return it->second;
}

Duration PriceCache::launch(program::SegmentId segment, std::uint32_t op) {
  Duration& price = launch_[index_of(segment, op)];
  if (price == kUnknown) price = checked(costs_.launch_time(program_.segments[segment].ops[op]));
  return price;
}

}  // namespace stepcast::sim
