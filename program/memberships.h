// Which groups a rank is in, by role. There may be hundreds of thousands of ranks and every step asks them, so that a
// row of up to eight roles lies in the rank itself and an entry is eight bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "program/types.h"

namespace stepcast::program {

struct Membership {
  GroupId group;
  std::uint32_t index = 0;  // own position in the group's members
  bool operator==(const Membership&) const = default;
};

// A Membership or none, used as std::optional is.
class MaybeMembership {
 public:
  static constexpr std::uint32_t kNoGroup = std::numeric_limits<std::uint32_t>::max();

  constexpr MaybeMembership() { reset(); }
  constexpr MaybeMembership(std::nullopt_t) { reset(); }       // NOLINT(google-explicit-constructor)
  constexpr MaybeMembership(Membership m) : membership_(m) {}  // NOLINT(google-explicit-constructor)
  constexpr bool has_value() const { return membership_.group.value != kNoGroup; }
  constexpr explicit operator bool() const { return has_value(); }
  constexpr const Membership& operator*() const { return membership_; }
  constexpr const Membership* operator->() const { return &membership_; }
  constexpr Membership* operator->() { return &membership_; }
  constexpr void reset() {
    membership_.group.value = kNoGroup;
    membership_.index = 0;
  }
  bool operator==(const MaybeMembership&) const = default;

 private:
  Membership membership_;
};

// A vector of MaybeMembership, indexed by the number of the role.
class Memberships {
 public:
  Memberships() = default;
  Memberships(std::initializer_list<MaybeMembership> list) {
    for (const MaybeMembership& m : list) push_back(m);
  }
  Memberships(const Memberships& other) : size_(other.size_), row_(other.row_) {
    if (other.more_) more_ = std::make_unique<std::vector<MaybeMembership>>(*other.more_);
  }
  Memberships(Memberships&& other) noexcept
      : size_(std::exchange(other.size_, 0U)), row_(other.row_), more_(std::move(other.more_)) {}
  Memberships& operator=(Memberships other) noexcept {
    size_ = other.size_;
    row_ = other.row_;
    more_ = std::move(other.more_);
    return *this;
  }
  ~Memberships() = default;

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const MaybeMembership* begin() const { return more_ ? more_->data() : row_.data(); }
  const MaybeMembership* end() const { return begin() + size_; }
  MaybeMembership* begin() { return more_ ? more_->data() : row_.data(); }
  MaybeMembership* end() { return begin() + size_; }
  const MaybeMembership& operator[](std::size_t role) const { return begin()[role]; }
  MaybeMembership& operator[](std::size_t role) { return begin()[role]; }
  // New entries are none.
  void resize(std::size_t n) {
    if (n > kInRow && !more_) more_ = std::make_unique<std::vector<MaybeMembership>>(row_.begin(), row_.end());
    if (more_) more_->resize(std::max(n, kInRow));
    if (n < size_) std::fill(begin() + n, end(), MaybeMembership());
    size_ = static_cast<std::uint32_t>(n);
  }
  void assign(std::size_t n, MaybeMembership m) {
    resize(n);
    std::fill(begin(), end(), m);
  }
  void push_back(MaybeMembership m) {
    resize(size() + 1);
    (*this)[size() - 1] = m;
  }
  bool operator==(const Memberships& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  static constexpr std::size_t kInRow = 8;

  std::uint32_t size_ = 0;
  std::array<MaybeMembership, kInRow> row_;
  std::unique_ptr<std::vector<MaybeMembership>> more_;  // all entries, once there are more than a row takes
};

}  // namespace stepcast::program
