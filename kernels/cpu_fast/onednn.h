// What the fast kernels take from oneDNN: matmul primitives, compiled once per shape and kept, and single-precision
// products of strided blocks. oneDNN's own header is large; only onednn.cc includes it.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>

namespace stepcast::kernels::cpu_fast {

enum class Element : std::uint8_t { kF32, kBf16 };

// c [rows, columns] = a [rows, depth] b [depth, columns], all row-major and dense; a transposed operand is stored the
// other way round.
struct MatmulShape {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  bool a_transposed = false;
  bool b_transposed = false;
  Element source = Element::kF32;  // of a, b and bias
  Element result = Element::kF32;
  bool bias = false;
  bool accumulate = false;  // c += a b

  auto operator<=>(const MatmulShape&) const = default;
};

// The compiled primitives of one stream and their scratch memory. One thread at a time.
class MatmulCache {
 public:
  MatmulCache();
  ~MatmulCache();
  MatmulCache(const MatmulCache&) = delete;
  MatmulCache& operator=(const MatmulCache&) = delete;

  // False, with nothing written, where oneDNN has no implementation for this processor. `bias` may be null without one.
  bool multiply(const MatmulShape& shape, const void* a, const void* b, const void* bias, void* c);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A row-major block in a larger matrix: row r starts at data + r * stride.
template <class T>
struct Block {
  T* data = nullptr;
  std::int64_t stride = 0;
};

// What a product of blocks does to the operands and to what c holds: c = alpha * op(a) op(b) + beta * c.
struct BlockProduct {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  bool a_transposed = false;
  bool b_transposed = false;
  float alpha = 1;
  float beta = 0;
};

// Runs on the calling thread alone when that thread is one of a parallel_for.
void multiply_blocks(const BlockProduct& product, Block<const float> a, Block<const float> b, Block<float> c);

// Of the library that is loaded: "2.6.0".
std::string onednn_version();

}  // namespace stepcast::kernels::cpu_fast
