// The functions of cuBLASLt that kernels/cuda/cublas_matmul.cc calls, on the CPU's memory, as cublasLt.h and the cuBLAS
// 13 documentation ("Using the cublasLt API", cublasLtMatmul) describe them: column-major matrices with leading
// dimensions, d = alpha op(a) op(b) + beta c, a bias for each row of d. It refuses what the documentation rules out; of
// 8-bit factors: other operations than T and N, extents that are not multiples of 16, addresses that are not multiples
// of 16, two factors of type e5m2.
#include "tests/kernels/fake_cublaslt.h"

#include <cublasLt.h>

#include <cmath>
#include <cstring>

#include "kernels/element.h"

namespace stepcast::kernels {

CublasLtCalls& cublaslt_calls() {
  static CublasLtCalls calls;
  return calls;
}

float e4m3_value(std::uint8_t bits) {
  const int exponent = (bits >> 3) & 15;
  const int mantissa = bits & 7;
  const float sign = (bits & 0x80U) != 0 ? -1.0F : 1.0F;
  if ((bits & 0x7fU) == 0x7fU) return std::nanf("");
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -9);
  return sign * std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
}

float e5m2_value(std::uint8_t bits) {
  const int exponent = (bits >> 2) & 31;
  const int mantissa = bits & 3;
  const float sign = (bits & 0x80U) != 0 ? -1.0F : 1.0F;
  if (exponent == 31) return mantissa == 0 ? sign * INFINITY : std::nanf("");
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -16);
  return sign * std::ldexp(static_cast<float>(4 + mantissa), exponent - 17);
}

namespace {

struct FakeOperation {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t of_a = CUBLAS_OP_N;
  cublasOperation_t of_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  const float* a_scale = nullptr;
  const float* b_scale = nullptr;
};

struct FakeLayout {
  cudaDataType_t type;
  std::uint64_t rows, columns;
  std::int64_t leading;
};

struct FakePreference {
  std::uint64_t workspace = 0;
  std::uint32_t reduction_schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::uint32_t a_alignment = 256, b_alignment = 256, c_alignment = 256, d_alignment = 256;
};

const FakeOperation& at(cublasLtMatmulDesc_t handle) { return *reinterpret_cast<const FakeOperation*>(handle); }
const FakeLayout& at(cublasLtMatrixLayout_t handle) { return *reinterpret_cast<const FakeLayout*>(handle); }
const FakePreference& at(cublasLtMatmulPreference_t handle) { return *reinterpret_cast<const FakePreference*>(handle); }

template <class Fake, class Handle, class... Values>
cublasStatus_t make(Handle* handle, Values... values) {
  *handle = reinterpret_cast<Handle>(new Fake{values...});
  ++cublaslt_calls().alive;
  return CUBLAS_STATUS_SUCCESS;
}

template <class Fake, class Handle>
cublasStatus_t destroy(Handle handle) {
  delete reinterpret_cast<Fake*>(handle);
  --cublaslt_calls().alive;
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t assign(T& to, const void* from, std::size_t bytes) {
  if (from == nullptr || bytes != sizeof to) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

bool is_8_bit(cudaDataType_t type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }

float element(const FakeLayout& layout, const void* data, std::int64_t row, std::int64_t column) {
  const std::int64_t i = column * layout.leading + row;
  switch (layout.type) {
    case CUDA_R_32F:
      return static_cast<const float*>(data)[i];
    case CUDA_R_16BF:
      return to_float(static_cast<const Bf16*>(data)[i]);
    case CUDA_R_8F_E4M3:
      return e4m3_value(static_cast<const std::uint8_t*>(data)[i]);
    case CUDA_R_8F_E5M2:
      return e5m2_value(static_cast<const std::uint8_t*>(data)[i]);
    default:
      return std::nanf("");
  }
}

// Rows and columns of op(x).
struct Extent {
  std::uint64_t rows, columns;
};
Extent extent_of(const FakeLayout& layout, cublasOperation_t operation) {
  if (operation == CUBLAS_OP_N) return {layout.rows, layout.columns};
  return {layout.columns, layout.rows};
}

bool fits(const FakeOperation& operation, const FakeLayout& a, const FakeLayout& b, const FakeLayout& d) {
  const Extent left = extent_of(a, operation.of_a);
  const Extent right = extent_of(b, operation.of_b);
  for (const FakeLayout* layout : {&a, &b, &d}) {
    if (layout->leading < static_cast<std::int64_t>(layout->rows)) return false;
  }
  return left.columns == right.rows && left.rows == d.rows && right.columns == d.columns;
}

// The table of types of cublasLtMatmul for f32 sums, as far as it is used.
bool supports(const FakeOperation& operation, const FakeLayout& a, const FakeLayout& b, const FakeLayout& d,
              const FakePreference& preference) {
  if (operation.compute != CUBLAS_COMPUTE_32F || operation.scale != CUDA_R_32F) return false;
  if (!is_8_bit(a.type)) return a.type == b.type && (d.type == a.type || d.type == CUDA_R_32F);
  if (!is_8_bit(b.type) || (a.type == CUDA_R_8F_E5M2 && b.type == CUDA_R_8F_E5M2)) return false;
  if (d.type != CUDA_R_16BF && d.type != CUDA_R_32F) return false;
  if (operation.of_a != CUBLAS_OP_T || operation.of_b != CUBLAS_OP_N) return false;
  if (a.rows % 16 != 0 || a.columns % 16 != 0 || b.columns % 16 != 0) return false;
  return preference.a_alignment >= 16 && preference.b_alignment >= 16 && preference.d_alignment >= 16;
}

void store(const FakeLayout& layout, void* data, std::int64_t row, std::int64_t column, float value) {
  const std::int64_t i = column * layout.leading + row;
  if (layout.type == CUDA_R_16BF) {
    static_cast<Bf16*>(data)[i] = to_bf16(value);
  } else {
    static_cast<float*>(data)[i] = value;
  }
}

float product(const FakeOperation& operation, const FakeLayout& a, const void* a_data, const FakeLayout& b,
              const void* b_data, std::int64_t row, std::int64_t column) {
  const bool a_turned = operation.of_a != CUBLAS_OP_N;
  const bool b_turned = operation.of_b != CUBLAS_OP_N;
  float sum = 0;
  for (std::int64_t k = 0; k < static_cast<std::int64_t>(extent_of(a, operation.of_a).columns); ++k) {
    sum += element(a, a_data, a_turned ? k : row, a_turned ? row : k) *
           element(b, b_data, b_turned ? column : k, b_turned ? k : column);
  }
  if (operation.a_scale != nullptr) sum *= *operation.a_scale;
  if (operation.b_scale != nullptr) sum *= *operation.b_scale;
  return sum;
}

}  // namespace

// With C linkage these are the functions that cublasLt.h declares.
extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return make<int>(handle); }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return destroy<int>(handle); }
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE ? "invalid value" : "another status";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* handle, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  return make<FakeOperation>(handle, compute, scale);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t handle) { return destroy<FakeOperation>(handle); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  auto& operation = *reinterpret_cast<FakeOperation*>(handle);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return assign(operation.of_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return assign(operation.of_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return assign(operation.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return assign(operation.bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
      return assign(operation.a_scale, value, bytes);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
      return assign(operation.b_scale, value, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* handle, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t leading) {
  return make<FakeLayout>(handle, type, rows, columns, leading);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t handle) { return destroy<FakeLayout>(handle); }

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* handle) {
  return make<FakePreference>(handle);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t handle) {
  return destroy<FakePreference>(handle);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    std::size_t bytes) {
  auto& preference = *reinterpret_cast<FakePreference*>(handle);
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return assign(preference.workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return assign(preference.reduction_schemes, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return assign(preference.a_alignment, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return assign(preference.b_alignment, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return assign(preference.c_alignment, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return assign(preference.d_alignment, value, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int* count) {
  ++cublaslt_calls().heuristics;
  cublaslt_calls().reduction_schemes = at(preference).reduction_schemes;
  cublaslt_calls().workspace_bytes = at(preference).workspace;
  *count = 0;
  if (requested < 1 || !fits(at(operation), at(a), at(b), at(d))) return CUBLAS_STATUS_INVALID_VALUE;
  if (!supports(at(operation), at(a), at(b), at(d), at(preference))) return CUBLAS_STATUS_NOT_SUPPORTED;
  results[0] = {};
  results[0].state = CUBLAS_STATUS_SUCCESS;
  results[0].algo.data[0] = 1;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void*,
                              std::size_t workspace, cudaStream_t) {
  ++cublaslt_calls().matmuls;
  const FakeOperation& o = at(operation);
  const FakeLayout& to = at(d_layout);
  if (!fits(o, at(a_layout), at(b_layout), to) || algorithm == nullptr || algorithm->data[0] != 1 ||
      workspace < cublaslt_calls().workspace_bytes) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const float scale = *static_cast<const float*>(alpha);
  const float keep = *static_cast<const float*>(beta);
  const FakeLayout bias{to.type, to.rows, 1, static_cast<std::int64_t>(to.rows)};
  for (std::int64_t column = 0; column < static_cast<std::int64_t>(to.columns); ++column) {
    for (std::int64_t row = 0; row < static_cast<std::int64_t>(to.rows); ++row) {
      float value = scale * product(o, at(a_layout), a, at(b_layout), b, row, column);
      if (keep != 0) value += keep * element(at(c_layout), c, row, column);
      if (o.epilogue == CUBLASLT_EPILOGUE_BIAS) value += element(bias, o.bias, row, 0);
      store(to, d, row, column, value);
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"

}  // namespace stepcast::kernels
