// See communicator.h.
#include "exec/communicator.h"

#include <string>

#include "base/check.h"

namespace stepcast::exec {
namespace {

std::string counts_text(const std::vector<std::int64_t>& counts) {
  std::string text;
  for (const std::int64_t count : counts) text += (text.empty() ? "" : ",") + std::to_string(count);
  return text;
}

}  // namespace

std::string spec_text(const CollectiveSpec& spec) {
  std::string text = std::string(program::to_string(spec.kind)) + " " + std::string(program::to_string(spec.dtype));
  if (spec.kind == program::OpKind::kAllReduce || spec.kind == program::OpKind::kReduceScatter) {
    text += spec.reduce == program::Reduce::kSum ? " sum" : " max";
  }
  if (spec.kind == program::OpKind::kBroadcast) text += " from member " + std::to_string(spec.root);
  text += " of " + std::to_string(spec.elements) + " elements";
  if (!spec.counts.empty()) text += " (" + counts_text(spec.counts) + ")";
  return text;
}

void check_sizes(const CollectiveArrival& a, std::size_t member) {
  const bool gathers = a.spec.kind == program::OpKind::kAllGather;
  const bool scatters = a.spec.kind == program::OpKind::kReduceScatter;
  if (gathers || scatters) CHECK(member < a.spec.counts.size(), member, a.spec.counts.size());
  const std::int64_t in = gathers ? a.spec.counts[member] : a.spec.elements;
  std::int64_t out = scatters ? a.spec.counts[member] : a.spec.elements;
  if (a.spec.columns > 0) out = out / a.spec.columns * a.spec.row_columns;
  CHECK(a.in_elements == in && a.out_elements == out, a.in_elements, in, a.out_elements, out);
}

}  // namespace stepcast::exec
