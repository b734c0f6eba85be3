// Functions of contiguous rows of floats, vectorised. Sums are in double, as the reference kernels' are.
#pragma once

#include <cstdint>

#include "kernels/element.h"

namespace stepcast::kernels::cpu_fast {

void widen_row(const Bf16* from, std::int64_t n, float* to);
void narrow_row(const float* from, std::int64_t n, Bf16* to);

double sum_of(const float* x, std::int64_t n);
double sum_of_squares(const float* x, std::int64_t n);
double dot_of(const float* x, const float* y, std::int64_t n);
float largest_of(const float* x, std::int64_t n);  // n is at least 1

// y += x.
void add_row(const float* x, std::int64_t n, float* y);
// x *= factor.
void scale_row(float factor, std::int64_t n, float* x);

// Sum of exp(x - largest).
double sum_of_exponentials(const float* x, std::int64_t n, float largest);
// The same, and x becomes exp(x - largest).
double exponentiate(float* x, std::int64_t n, float largest);

}  // namespace stepcast::kernels::cpu_fast
