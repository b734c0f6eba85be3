// Single tensor elements of any type as numbers: reads, and writes that round as the type demands (kernels/element.h).
#pragma once

#include <cstdint>

#include "program/types.h"

namespace stepcast::exec {

// Element `index` of a dense array of `dtype` at `data`.
double load_element(const void* data, program::DType dtype, std::int64_t index);
// Rounds to binary32 first unless the type is f64; an i32 is truncated.
void store_element(void* data, program::DType dtype, std::int64_t index, double value);

}  // namespace stepcast::exec
