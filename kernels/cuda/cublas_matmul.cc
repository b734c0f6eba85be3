// See cublas_matmul.h. Names follow cuBLASLt here: A, B and D of d = op(A) op(B) are our b, a and c.
#include "kernels/cuda/cublas_matmul.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace stepcast::kernels::cuda {
namespace {

void require(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(ErrorKind::kExecution, std::string(call) + ": " + cublasLtGetStatusString(status));
}

cudaDataType_t type_of(Element element) {
  switch (element) {
    case Element::kF32:
      return CUDA_R_32F;
    case Element::kBf16:
      return CUDA_R_16BF;
    case Element::kE4m3:
      return CUDA_R_8F_E4M3;
    case Element::kE5m2:
      return CUDA_R_8F_E5M2;
  }
  CHECK(false, static_cast<int>(element));
  return CUDA_R_32F;
}

bool is_8_bit(Element element) { return element == Element::kE4m3 || element == Element::kE5m2; }

std::uint32_t alignment_of(const void* address) {
  const auto value = reinterpret_cast<std::uintptr_t>(address) | 256U;  // of null: 256
  return static_cast<std::uint32_t>(value & (~value + 1));
}

// A descriptor of cuBLASLt, destroyed with its owner.
template <class Handle, cublasStatus_t (*kDestroy)(Handle)>
struct Destroy {
  using pointer = Handle;
  void operator()(Handle handle) const { kDestroy(handle); }
};
template <class Handle, cublasStatus_t (*kDestroy)(Handle)>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<Handle, kDestroy>>;

using Operation = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

template <class T>
void set(const Operation& operation, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  require(cublasLtMatmulDescSetAttribute(operation.get(), attribute, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute");
}

template <class T>
void set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
  require(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute");
}

// Of a dense row-major [rows, width]: as column-major it has `width` rows.
Layout layout_of(Element element, std::int64_t rows, std::int64_t width) {
  cublasLtMatrixLayout_t layout = nullptr;
  require(cublasLtMatrixLayoutCreate(&layout, type_of(element), static_cast<std::uint64_t>(width),
                                     static_cast<std::uint64_t>(rows), width),
          "cublasLtMatrixLayoutCreate");
  return Layout(layout);
}

Operation operation_of(const MatmulShape& shape) {
  cublasLtMatmulDesc_t made = nullptr;
  require(cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  Operation operation(made);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSA, shape.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSB, shape.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  // One value for each row of the column-major d, which is a column of c.
  if (shape.bias) set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  return operation;
}

// What differs from call to call.
void point_to(const Operation& operation, const MatmulShape& shape, const MatmulOperands& operands) {
  if (shape.bias) set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
  if (!is_8_bit(shape.a)) return;
  set(operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, static_cast<const void*>(operands.b_scale));
  set(operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, static_cast<const void*>(operands.a_scale));
}

}  // namespace

struct CublasMatmuls::Plan {
  Operation operation;
  Layout a, b, d;
  cublasLtMatmulAlgo_t algorithm;
};

CublasMatmuls::CublasMatmuls(cudaStream_t stream, std::span<std::byte> workspace)
    : stream_(stream), workspace_(workspace) {
  require(cublasLtCreate(&handle_), "cublasLtCreate");
}

CublasMatmuls::~CublasMatmuls() { cublasLtDestroy(handle_); }

std::unique_ptr<CublasMatmuls::Plan> CublasMatmuls::plan_of(const Key& key, const MatmulOperands& operands) const {
  const MatmulShape& shape = key.shape;
  if (shape.bias && shape.result != shape.a) return nullptr;  // the epilogue's bias is of d's type
  auto plan = std::make_unique<Plan>();
  plan->operation = operation_of(shape);
  point_to(plan->operation, shape, operands);
  plan->a = shape.b_transposed ? layout_of(shape.b, shape.columns, shape.depth)
                               : layout_of(shape.b, shape.depth, shape.columns);
  plan->b =
      shape.a_transposed ? layout_of(shape.a, shape.depth, shape.rows) : layout_of(shape.a, shape.rows, shape.depth);
  plan->d = layout_of(shape.result, shape.rows, shape.columns);

  cublasLtMatmulPreference_t made = nullptr;
  require(cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate");
  const Preference preference(made);
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(workspace_.size()));
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.b_alignment);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.a_alignment);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.c_alignment);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.c_alignment);
  cublasLtMatmulHeuristicResult_t found = {};
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle_, plan->operation.get(), plan->a.get(), plan->b.get(), plan->d.get(),
                                     plan->d.get(), preference.get(), 1, &found, &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return nullptr;
  require(status, "cublasLtMatmulAlgoGetHeuristic");
  if (count == 0 || found.state != CUBLAS_STATUS_SUCCESS) return nullptr;
  plan->algorithm = found.algo;
  return plan;
}

bool CublasMatmuls::multiply(const MatmulShape& shape, const MatmulOperands& operands) {
  CHECK(!shape.is_empty(), shape.rows, shape.columns, shape.depth);
  CHECK(is_8_bit(shape.a) == is_8_bit(shape.b) && !is_8_bit(shape.result), static_cast<int>(shape.a));
  CHECK(!is_8_bit(shape.a) || (!shape.a_transposed && shape.b_transposed && !shape.bias), shape.a_transposed);
  CHECK(!is_8_bit(shape.a) || (operands.a_scale != nullptr && operands.b_scale != nullptr));
  const Key key{shape, alignment_of(operands.a), alignment_of(operands.b), alignment_of(operands.c),
                alignment_of(operands.bias)};
  auto at = plans_.find(key);
  if (at == plans_.end()) at = plans_.emplace(key, plan_of(key, operands)).first;
  if (at->second == nullptr) return false;
  const Plan& plan = *at->second;
  point_to(plan.operation, shape, operands);
  const float one = 1;
  const float beta = shape.accumulate ? 1 : 0;
  require(cublasLtMatmul(handle_, plan.operation.get(), &one, operands.b, plan.a.get(), operands.a, plan.b.get(), &beta,
                         operands.c, plan.d.get(), operands.c, plan.d.get(), &plan.algorithm, workspace_.data(),
                         workspace_.size(), stream_),
          "cublasLtMatmul");
  return true;
}

}  // namespace stepcast::kernels::cuda
