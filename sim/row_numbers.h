// Numbers rows of numbers by first occurrence. Rows are compared whole; the hash only says where to look.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace stepcast::sim {

class RowNumbers {
 public:
  // The number of an equal row seen before, or the next one.
  std::uint32_t number(std::span<const std::uint32_t> row) {
    if (2 * (count() + 1) > slots_.size()) grow();
    const std::uint64_t hash = hash_of(row);
    std::size_t at = slot_of(hash);
    for (; slots_[at] != kEmpty; at = (at + 1) & (slots_.size() - 1)) {
      if (hashes_[slots_[at]] == hash && equal(slots_[at], row)) return slots_[at];
    }
    const auto next = static_cast<std::uint32_t>(count());
    slots_[at] = next;
    hashes_.push_back(hash);
    values_.insert(values_.end(), row.begin(), row.end());
    begin_.push_back(values_.size());
    return next;
  }

  std::size_t count() const { return hashes_.size(); }

  void clear() {
    std::fill(slots_.begin(), slots_.end(), kEmpty);
    hashes_.clear();
    values_.clear();
    begin_.assign(1, 0);
  }

 private:
  static constexpr std::uint32_t kEmpty = std::numeric_limits<std::uint32_t>::max();

  // FNV-1a over whole words, finished so that the low bits depend on all of them.
  static std::uint64_t hash_of(std::span<const std::uint32_t> row) {
    std::uint64_t h = 14695981039346656037ULL;
    for (const std::uint32_t value : row) h = (h ^ value) * 1099511628211ULL;
    h ^= h >> 32;
    return h * 0x9E3779B97F4A7C15ULL;
  }

  bool equal(std::uint32_t number, std::span<const std::uint32_t> row) const {
    const std::size_t begin = begin_[number];
    return begin_[number + 1] - begin == row.size() &&
           std::equal(row.begin(), row.end(), values_.begin() + static_cast<std::ptrdiff_t>(begin));
  }

  std::size_t slot_of(std::uint64_t hash) const { return (hash >> 20) & (slots_.size() - 1); }

  void grow() {
    slots_.assign(std::max<std::size_t>(64, 2 * slots_.size()), kEmpty);
    for (std::uint32_t i = 0; i < count(); ++i) {
      std::size_t at = slot_of(hashes_[i]);
      while (slots_[at] != kEmpty) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = i;
    }
  }

  std::vector<std::uint32_t> slots_;  // a power of two of them, at most half full
  std::vector<std::uint64_t> hashes_;
  std::vector<std::uint32_t> values_;
  std::vector<std::size_t> begin_{0};
};

}  // namespace stepcast::sim
