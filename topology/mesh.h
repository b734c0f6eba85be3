// The device mesh: ranks as points of a grid whose axes are the parallel dimensions, fastest axis first.
//
// Order "tp-cp-ep-dp-pp" (Megatron-Core's default): tp varies fastest. Axes of size 1 may be omitted from the order.
// A group of a set of axes is all ranks that agree on every other axis; members are in mesh order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::topology {

struct Axis {
  std::string name;  // tp, cp, ep, dp, pp
  std::int32_t size = 1;
};

// The groups over a set of axes, all of one size, side by side: group g is members[g * group_size ..].
struct MeshGroups {
  std::vector<std::int32_t> members;
  std::size_t group_size = 1;

  std::size_t count() const { return members.size() / group_size; }
  std::span<const std::int32_t> operator[](std::size_t group) const {
    return std::span(members).subspan(group * group_size, group_size);
  }
};

class DeviceMesh {
 public:
  // Axes fastest first. Sizes are at least 1.
  explicit DeviceMesh(std::vector<Axis> axes);

  std::int64_t size() const { return size_; }
  const std::vector<Axis>& axes() const { return axes_; }
  // Coordinate of `rank` on `axis`; 0 for an axis the mesh does not have.
  std::int32_t coordinate(std::int64_t rank, std::string_view axis) const;
  // The groups over `axes` (a partition of all ranks), ordered by their first member; members in mesh order.
  MeshGroups flat_groups(std::span<const std::string> axes) const;

 private:
  std::vector<Axis> axes_;
  std::int64_t size_ = 1;
};

// Splits "tp-cp-ep-dp-pp" and pairs it with sizes; throws Error naming unknown, repeated or missing axes (an axis of
// size above 1 that the order does not name).
DeviceMesh make_mesh(std::string_view order, std::span<const Axis> sizes);

}  // namespace stepcast::topology
