#include "kernels/cuda/batched_product.h"

#include <memory>
#include <type_traits>

#include "kernels/cuda/cuda_error.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {
namespace {

/// Most workspace of an algorithm: the size NVIDIA recommends on Hopper.
constexpr int64_t kMostWorkspaceBytes = int64_t{32} << 20;
/// Forms remembered at most; lengths of prompts make new ones.
constexpr size_t kMostChoices = 512;

template <auto kDestroy>
struct Destroyer {
  template <typename Handle>
  void operator()(Handle* handle) const {
    kDestroy(handle);
  }
};
using LayoutPtr = std::unique_ptr<std::remove_pointer_t<cublasLtMatrixLayout_t>,
                                  Destroyer<cublasLtMatrixLayoutDestroy>>;
using ProductPtr = std::unique_ptr<std::remove_pointer_t<cublasLtMatmulDesc_t>,
                                   Destroyer<cublasLtMatmulDescDestroy>>;
using PreferencePtr = std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>,
                                      Destroyer<cublasLtMatmulPreferenceDestroy>>;

/// Column-major `rows` x `columns` matrices.
absl::Status MakeLayout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t pitch,
                        int64_t batch, int64_t step, LayoutPtr* layout) {
  cublasLtMatrixLayout_t raw = nullptr;
  LTX_RETURN_IF_CUBLAS_ERROR(cublasLtMatrixLayoutCreate(&raw, type, rows, columns, pitch));
  layout->reset(raw);
  const auto count = static_cast<int32_t>(batch);
  LTX_RETURN_IF_CUBLAS_ERROR(cublasLtMatrixLayoutSetAttribute(
      raw, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)));
  LTX_RETURN_IF_CUBLAS_ERROR(cublasLtMatrixLayoutSetAttribute(
      raw, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof(step)));
  return absl::OkStatus();
}

/// cuBLASLt is column-major: it computes c^T = b^T a^T, the transposed matrices being the row-major
/// ones as they lie.
struct Description {
  ProductPtr product;
  LayoutPtr b;
  LayoutPtr a;
  LayoutPtr c;
};

absl::Status Describe(const BatchedProduct& p, Description* description) {
  cublasLtMatmulDesc_t raw = nullptr;
  LTX_RETURN_IF_CUBLAS_ERROR(cublasLtMatmulDescCreate(&raw, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  description->product.reset(raw);
  const cublasOperation_t first = p.transposed_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  LTX_RETURN_IF_CUBLAS_ERROR(
      cublasLtMatmulDescSetAttribute(raw, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof(first)));
  const cudaDataType_t operand = p.bf16 ? CUDA_R_16BF : CUDA_R_32F;
  const cudaDataType_t result = p.f32_result ? CUDA_R_32F : CUDA_R_16BF;
  const int64_t b_rows = p.transposed_b ? p.depth : p.columns;
  const int64_t b_columns = p.transposed_b ? p.columns : p.depth;
  LTX_RETURN_IF_ERROR(
      MakeLayout(operand, b_rows, b_columns, p.b_pitch, p.batch, p.b_step, &description->b));
  LTX_RETURN_IF_ERROR(
      MakeLayout(operand, p.depth, p.rows, p.a_pitch, p.batch, p.a_step, &description->a));
  return MakeLayout(result, p.columns, p.rows, p.c_pitch, p.batch, p.c_step, &description->c);
}

/// Bytes that the address of every matrix of a batch is a multiple of, at most 16.
int64_t Alignment(const void* data, int64_t step, int64_t pitch, int64_t element) {
  int64_t alignment = 16;
  for (const int64_t value :
       {static_cast<int64_t>(reinterpret_cast<uintptr_t>(data)), step * element, pitch * element}) {
    while (value % alignment != 0) alignment /= 2;
  }
  return alignment;
}

absl::Status SetAlignment(cublasLtMatmulPreference_t preference,
                          cublasLtMatmulPreferenceAttributes_t attribute, int64_t alignment) {
  const auto bytes = static_cast<uint32_t>(alignment);
  LTX_RETURN_IF_CUBLAS_ERROR(
      cublasLtMatmulPreferenceSetAttribute(preference, attribute, &bytes, sizeof(bytes)));
  return absl::OkStatus();
}

struct Alignments {
  int64_t a;
  int64_t b;
  int64_t c;
};

absl::Status Choose(cublasLtHandle_t handle, const Description& description,
                    const Alignments& alignments, cublasLtMatmulHeuristicResult_t* choice) {
  cublasLtMatmulPreference_t raw = nullptr;
  LTX_RETURN_IF_CUBLAS_ERROR(cublasLtMatmulPreferenceCreate(&raw));
  const PreferencePtr preference(raw);
  const auto bytes = static_cast<uint64_t>(kMostWorkspaceBytes);
  LTX_RETURN_IF_CUBLAS_ERROR(cublasLtMatmulPreferenceSetAttribute(
      raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes)));
  LTX_RETURN_IF_ERROR(SetAlignment(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignments.b));
  LTX_RETURN_IF_ERROR(SetAlignment(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignments.a));
  LTX_RETURN_IF_ERROR(SetAlignment(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignments.c));
  LTX_RETURN_IF_ERROR(SetAlignment(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignments.c));
  int count = 0;
  LTX_RETURN_IF_CUBLAS_ERROR(cublasLtMatmulAlgoGetHeuristic(
      handle, description.product.get(), description.b.get(), description.a.get(),
      description.c.get(), description.c.get(), raw, 1, choice, &count));
  if (count == 0) return absl::InternalError("cuBLASLt has no algorithm for a batched product");
  return absl::OkStatus();
}

}  // namespace

template <typename Description>
absl::StatusOr<BatchedProducts::Choice> BatchedProducts::ChoiceFor(CudaContext& context,
                                                                   const BatchedProduct& p,
                                                                   const Description& description) {
  const int64_t element = p.bf16 ? 2 : 4;
  const Alignments alignments = {Alignment(p.a, p.a_step, p.a_pitch, element),
                                 Alignment(p.b, p.b_step, p.b_pitch, element),
                                 Alignment(p.c, p.c_step, p.c_pitch, p.f32_result ? 4 : 2)};
  const int64_t form = (p.transposed_b ? 1 : 0) + (p.bf16 ? 2 : 0) + (p.f32_result ? 4 : 0) +
                       8 * (alignments.a + 32 * alignments.b + 1024 * alignments.c);
  const Key key = {p.rows,    p.columns, p.depth,  p.batch,  p.a_pitch, p.b_pitch,
                   p.c_pitch, p.a_step,  p.b_step, p.c_step, form};
  absl::MutexLock lock(&mutex_);
  auto found = choices_.find(key);
  if (found == choices_.end()) {
    if (choices_.size() >= kMostChoices) choices_.clear();
    cublasLtMatmulHeuristicResult_t result{};
    LTX_RETURN_IF_ERROR(Choose(context.cublas_lt(), description, alignments, &result));
    found = choices_.emplace(key, Choice{result.algo, static_cast<int64_t>(result.workspaceSize)})
                .first;
  }
  return found->second;
}

absl::StatusOr<int64_t> BatchedProducts::WorkspaceBytes(CudaContext& context,
                                                        const BatchedProduct& p) {
  Description description;
  LTX_RETURN_IF_ERROR(Describe(p, &description));
  LTX_ASSIGN_OR_RETURN(const Choice choice, ChoiceFor(context, p, description));
  return choice.workspace_bytes;
}

absl::Status BatchedProducts::Run(CudaContext& context, const BatchedProduct& p) {
  Description description;
  LTX_RETURN_IF_ERROR(Describe(p, &description));
  LTX_ASSIGN_OR_RETURN(const Choice choice, ChoiceFor(context, p, description));
  LTX_ASSIGN_OR_RETURN(const Tensor workspace, context.Workspace(choice.workspace_bytes));
  const float zero = 0.0f;
  LTX_RETURN_IF_CUBLAS_ERROR(
      cublasLtMatmul(context.cublas_lt(), description.product.get(), &p.factor, p.b,
                     description.b.get(), p.a, description.a.get(), &zero, p.c, description.c.get(),
                     p.c, description.c.get(), &choice.algorithm, workspace.raw(),
                     static_cast<size_t>(choice.workspace_bytes), context.stream()));
  return absl::OkStatus();
}

}  // namespace ltx::cuda
