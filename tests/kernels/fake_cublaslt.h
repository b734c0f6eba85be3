// What the functions of fake_cublaslt.cc were asked for.
#pragma once

#include <cstdint>

namespace stepcast::kernels {

struct CublasLtCalls {
  int heuristics = 0;
  int matmuls = 0;
  int alive = 0;                        // handles, descriptors, layouts and preferences that nobody has destroyed
  std::uint32_t reduction_schemes = 0;  // of the last heuristic, as the mask it was given
  std::uint64_t workspace_bytes = 0;    // of the last heuristic
};

CublasLtCalls& cublaslt_calls();

// The value of an 8-bit float: e4m3 (bias 7, no infinities) or e5m2 (bias 15, as IEEE), of OCP's OFP8 (rev. 1.0, 2023,
// table 1).
float e4m3_value(std::uint8_t bits);
float e5m2_value(std::uint8_t bits);

}  // namespace stepcast::kernels
