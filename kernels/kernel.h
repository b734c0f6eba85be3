// What a kernel gets and how it is found: one function per op kind, chosen by an explicit table.
//
// A kernel reads and writes dense row-major tensors; shapes and operand order are those of program/ops/op.h. It
// allocates nothing that outlives it; what a backend keeps between ops is in its StreamState, one for each stream of a
// rank, so kernels of different streams may run at once.
#pragma once

#include <cstdint>
#include <span>

#include "program/ops/op.h"

namespace stepcast::kernels {

struct Tensor {
  void* data = nullptr;
  program::TensorType type;
};

// What a backend's kernels keep between the ops of one stream of one rank, such as compiled primitives. One thread at a
// time uses it.
class StreamState {
 public:
  StreamState() = default;
  virtual ~StreamState() = default;
  StreamState(const StreamState&) = delete;
  StreamState& operator=(const StreamState&) = delete;

  // A thread that is about to run kernels with this state calls it before the first one.
  virtual void begin_thread() {}
};

struct KernelContext {
  std::span<const Tensor> operands;  // as in Op::operands
  const program::Attributes* attributes = nullptr;
  program::OpKind kind = program::OpKind::kZeroFill;
  bool accumulate = false;        // the operand that may be written or accumulated (op.h: w|a) is accumulated
  std::int64_t index = 0;         // own index in the op's index role
  std::int64_t index_count = 1;   // size of that role's group
  std::int64_t sample_index = 0;  // own index in the op's sample role
  std::int64_t layer = 0;         // of the op's call; 0 where it has none
  std::int64_t microbatch = 0;    // of the op's call
  std::int64_t step = 1;          // 1-based optimizer step
  std::uint64_t seed = 0;         // of the Program
  StreamState* state = nullptr;   // of the backend; reference kernels need none
};

using Kernel = void (*)(const KernelContext&);

// The CPU reference kernel of a kind; nullptr for kinds exec runs itself (communication, join, host_read).
Kernel reference_kernel(program::OpKind kind);

}  // namespace stepcast::kernels
