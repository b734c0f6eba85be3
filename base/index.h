// Distinct index types and the vectors they index, so that a buffer number never indexes a table of groups.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/check.h"

namespace stepcast {

template <class Tag>
struct Id {
  std::uint32_t value = 0;

  constexpr Id() = default;
  constexpr explicit Id(std::size_t v) : value(static_cast<std::uint32_t>(v)) {}
  auto operator<=>(const Id&) const = default;
};

// A vector indexed by one Id type.
template <class IdType, class T>
class Table {
 public:
  IdType push(T item) {
    items_.push_back(std::move(item));
    return IdType(items_.size() - 1);
  }
  T& operator[](IdType id) {
    CHECK(id.value < items_.size(), id.value, items_.size());
    return items_[id.value];
  }
  const T& operator[](IdType id) const {
    CHECK(id.value < items_.size(), id.value, items_.size());
    return items_[id.value];
  }
  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  void resize(std::size_t n) { items_.resize(n); }
  void reserve(std::size_t n) { items_.reserve(n); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  const std::vector<T>& items() const { return items_; }
  bool operator==(const Table&) const = default;

 private:
  std::vector<T> items_;
};

}  // namespace stepcast
