// The fast CPU kernels: the same functions of the same operands as the reference kernels (cpu/reference.h), within
// rounding, at the speed of this processor. Matmuls and the products in attention are oneDNN's, other loops are written
// to be vectorised.
//
// Rules of types and statistics are the reference's; sums differ in order. Results depend on the processor, and on the
// number of threads where oneDNN's do; with both given they are the same bytes every time.
#pragma once

#include <memory>
#include <string>

#include "kernels/kernel.h"

namespace stepcast::kernels {

// The kernel of a kind: the fast one where there is one, else the reference's; nullptr for kinds exec runs itself. Fast
// kernels hand f64 operands to the reference, and shapes that oneDNN does not implement on this processor. They need a
// KernelContext::state made by fast_state().
Kernel fast_kernel(program::OpKind kind);

// Whether `kind` has a kernel of its own here.
bool has_fast_kernel(program::OpKind kind);

// The state of one stream, whose kernels run on `threads` threads (1 or more).
std::unique_ptr<StreamState> fast_state(int threads);

// The library behind them with its version: "oneDNN 2.6.0".
std::string fast_library();

}  // namespace stepcast::kernels
