// The small vocabulary of the Program: element types, shapes, memory classes, streams, ids.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "base/index.h"
#include "base/units.h"

namespace stepcast::program {

// kF64 exists for finite-difference checks of the kernels; plans use the others. kU8 holds dropout masks.
//
// What matmuls read under a recipe of 8 or 4 bits (plan/quantisation.h): kF8 is E4M3 or E5M2 with one scale a tensor,
// kept elsewhere. The others hold the scales of their blocks: kF8Block 4 bytes for 128 elements, kMxF8 one for 32
// (OCP Microscaling 1.0), kNvF4 one for 16 elements of half a byte (E2M1). A number is part of fingerprints: new types
// come last.
enum class DType : std::uint8_t { kF32, kBf16, kF64, kI32, kU8, kF16, kF8, kF8Block, kMxF8, kNvF4 };
inline constexpr int kDTypeCount = 10;

// So many elements are stored together in so many bytes, a begun block as a whole one.
struct StorageBlock {
  std::int64_t elements = 1;
  std::int64_t bytes = 4;
};
constexpr StorageBlock storage_block(DType t) {
  switch (t) {
    case DType::kF64:
      return {1, 8};
    case DType::kBf16:
    case DType::kF16:
      return {1, 2};
    case DType::kU8:
    case DType::kF8:
      return {1, 1};
    case DType::kF8Block:
      return {128, 132};
    case DType::kMxF8:
      return {32, 33};
    case DType::kNvF4:
      return {16, 9};
    case DType::kF32:
    case DType::kI32:
      break;
  }
  return {1, 4};
}
// Of an element; of a block where elements share a scale.
constexpr std::int64_t size_of(DType t) { return storage_block(t).bytes; }
// Types that only matmuls read, and what quantises for them or moves it.
constexpr bool is_quantised(DType t) { return t >= DType::kF8; }

enum class Space : std::uint8_t { kDevice, kHost };

// What a byte is for. Gathered parameters are weights; received inputs and logits are activations; comm is staging
// only.
enum class MemoryClass : std::uint8_t { kWeights, kGradients, kOptimizer, kActivations, kComm };
inline constexpr int kMemoryClassCount = 5;

// In-order queues of a rank. P2p has one stream per neighbour and direction.
enum class Stream : std::uint8_t {
  kCompute,
  kTp,
  kCp,
  kEp,
  kDp,
  kGather,
  kSendNext,
  kRecvPrev,
  kSendPrev,
  kRecvNext,
  kD2h,
  kH2d,
};
inline constexpr int kStreamCount = 12;

enum class Access : std::uint8_t { kRead, kWrite, kAccumulate };  // accumulate reads and writes in place

// Kind of pass a call belongs to: forward, input gradient, weight gradient, recomputed forward, communication,
// optimizer.
enum class Pass : std::uint8_t { kForward, kInputGrad, kWeightGrad, kRecompute, kComm, kOptimizer };
inline constexpr int kPassCount = 6;

struct BufferTag;
struct ViewTag;
struct SegmentTag;
struct RankProgramTag;
struct RankTag;
struct RoleTag;
struct GroupTag;
struct ParameterTag;
struct SymbolTag;
using BufferId = Id<BufferTag>;  // within a RankProgram
using ViewId = Id<ViewTag>;      // within a RankProgram
using SegmentId = Id<SegmentTag>;
using RankProgramId = Id<RankProgramTag>;
using RankId = Id<RankTag>;
using RoleId = Id<RoleTag>;
using GroupId = Id<GroupTag>;
using ParameterId = Id<ParameterTag>;
using SymbolId = Id<SymbolTag>;

// One extent of a shape: a bound and, where the size is data-dependent, the symbol that will hold the value (<= bound).
struct Dim {
  std::int64_t bound = 0;
  std::optional<SymbolId> symbol;

  constexpr Dim() = default;
  constexpr Dim(std::int64_t n) : bound(n) {}  // NOLINT(google-explicit-constructor): a plain size is a Dim
  bool operator==(const Dim&) const = default;
};

// Up to three extents, row-major. No extent means a scalar of one element.
struct Shape {
  std::array<Dim, 3> dims;
  std::uint8_t rank = 0;

  Shape() = default;
  Shape(std::initializer_list<Dim> list);
  // Elements at the bound.
  std::int64_t elements() const;
  std::int64_t extent(int axis) const;  // bound of that axis, 1 beyond the rank
  bool operator==(const Shape&) const = default;
};

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;

  std::int64_t bytes() const {
    const StorageBlock block = storage_block(dtype);
    if (block.elements == 1) return shape.elements() * block.bytes;
    return (shape.elements() + block.elements - 1) / block.elements * block.bytes;
  }
  bool operator==(const TensorType&) const = default;
};

std::string_view to_string(DType t);
std::string_view to_string(Space s);
std::string_view to_string(MemoryClass c);
std::string_view to_string(Stream s);
std::string_view to_string(Access a);
std::string_view to_string(Pass p);  // F I W R comm opt

}  // namespace stepcast::program
