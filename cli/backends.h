// The kernels that `run` executes ranks with. Programs differ in the libraries they link: `stepcast` has the reference
// kernels only, `stepcast-rank` has oneDNN's too.
#pragma once

#include <memory>

#include "kernels/kernel.h"

namespace stepcast::cli {

// How a main was called, and what it links.
struct Launch {
  int argc = 0;
  char** argv = nullptr;
  // Of `--backend cpu`; null in a program that does not link them.
  kernels::Kernel (*cpu_kernel_of)(program::OpKind) = nullptr;
  std::unique_ptr<kernels::StreamState> (*cpu_state)(int threads) = nullptr;
};

// Becomes the program `stepcast-rank` beside this one, with the same arguments; returns only by an Error
// (kEnvironment), when there is none.
[[noreturn]] void become_rank_program(const Launch& launch);

}  // namespace stepcast::cli
