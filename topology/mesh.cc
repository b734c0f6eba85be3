// Mixed-radix arithmetic on ranks: a rank is sum of coordinate[i] * stride[i], stride[i] the product of faster sizes.
//
// Rank order and groups as in Megatron-Core's parallel_state.RankGenerator.
#include "topology/mesh.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/error.h"

namespace stepcast::topology {
namespace {

constexpr std::string_view kKnownAxes[] = {"tp", "cp", "ep", "dp", "pp"};
constexpr std::int64_t kMaxRanks = std::int64_t{1} << 24;

bool contains(std::span<const std::string> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> split(std::string_view order) {
  std::vector<std::string> names(1);
  for (const char c : order) {
    if (c == '-') {
      names.emplace_back();
    } else {
      names.back() += c;
    }
  }
  return names;
}

const Axis* find_axis(std::span<const Axis> axes, std::string_view name) {
  const auto found = std::find_if(axes.begin(), axes.end(), [&](const Axis& axis) { return axis.name == name; });
  return found == axes.end() ? nullptr : &*found;
}

// Names only: what the order says beside what it may say.
void check_order(const std::vector<std::string>& names, std::span<const Axis> sizes, ProblemList& problems) {
  const std::vector<std::string> help = {"an order names axes from the fastest on, as tp-cp-ep-dp-pp"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool known = std::find(std::begin(kKnownAxes), std::end(kKnownAxes), names[i]) != std::end(kKnownAxes);
    if (!known && find_axis(sizes, names[i]) == nullptr) {
      problems.add(ErrorKind::kInput, "rank order names the unknown axis \"" + names[i] + "\"", {}, help);
    }
    if (contains(std::span(names).first(i), names[i])) {
      problems.add(ErrorKind::kInput, "rank order names " + names[i] + " twice", {}, help);
    }
  }
}

void check_sizes(const std::vector<std::string>& names, std::span<const Axis> sizes, ProblemList& problems) {
  std::int64_t ranks = 1;
  for (const Axis& axis : sizes) {
    const std::string text = axis.name + " of size " + std::to_string(axis.size);
    if (axis.size < 1) problems.add(ErrorKind::kInput, text + ": sizes are at least 1");
    if (axis.size > 1 && !contains(names, axis.name)) {
      problems.add(ErrorKind::kInput, "rank order leaves out " + text, {}, {"only axes of size 1 may be left out"});
    }
    if (find_axis(sizes, axis.name) != &axis) problems.add(ErrorKind::kInput, "axis " + axis.name + " is given twice");
    // Once above the limit it stays above: the product must not wrap.
    if (axis.size > 1 && ranks <= kMaxRanks) ranks *= axis.size;
  }
  if (ranks > kMaxRanks) problems.add(ErrorKind::kInput, "the axes multiply to more than 2^24 ranks");
}

}  // namespace

DeviceMesh::DeviceMesh(std::vector<Axis> axes) : axes_(std::move(axes)) {
  for (const Axis& axis : axes_) {
    CHECK(axis.size >= 1, axis.name, axis.size);
    CHECK(find_axis(axes_, axis.name) == &axis, axis.name);
    size_ *= axis.size;
    CHECK(size_ <= std::numeric_limits<std::int32_t>::max(), size_);
  }
}

std::int32_t DeviceMesh::coordinate(std::int64_t rank, std::string_view axis) const {
  CHECK(rank >= 0 && rank < size_, rank, size_);
  std::int64_t rest = rank;
  for (const Axis& a : axes_) {
    if (a.name == axis) return static_cast<std::int32_t>(rest % a.size);
    rest /= a.size;
  }
  return 0;
}

MeshGroups DeviceMesh::flat_groups(std::span<const std::string> axes) const {
  // A rank is the first member of its group (coordinates on `axes` zero) plus an offset (all others zero). Both lists
  // ascend when the fastest axis is the innermost loop, hence groups come by first member and members in mesh order.
  std::vector<std::int32_t> firsts = {0};
  std::vector<std::int32_t> offsets = {0};
  std::int64_t stride = 1;
  for (const Axis& axis : axes_) {
    std::vector<std::int32_t>& list = contains(axes, axis.name) ? offsets : firsts;
    const std::size_t inner = list.size();
    list.resize(inner * static_cast<std::size_t>(axis.size));
    for (std::size_t i = inner; i < list.size(); ++i) list[i] = list[i - inner] + static_cast<std::int32_t>(stride);
    stride *= axis.size;
  }
  MeshGroups groups;
  groups.group_size = offsets.size();
  groups.members.resize(static_cast<std::size_t>(size_));
  std::int32_t* member = groups.members.data();
  for (const std::int32_t first : firsts) {
    for (const std::int32_t offset : offsets) *member++ = first + offset;
  }
  return groups;
}

DeviceMesh make_mesh(std::string_view order, std::span<const Axis> sizes) {
  const std::vector<std::string> names = split(order);
  ProblemList problems;
  check_order(names, sizes, problems);
  check_sizes(names, sizes, problems);
  problems.throw_if_any();

  std::vector<Axis> axes;
  for (const std::string& name : names) {
    const Axis* axis = find_axis(sizes, name);
    axes.push_back({name, axis == nullptr ? 1 : axis->size});
  }
  return DeviceMesh(std::move(axes));
}

}  // namespace stepcast::topology
