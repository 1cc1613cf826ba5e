#include "kernels/cuda/cuda_error.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace ltx::cuda {
namespace {

/// "cudaMalloc" of "cudaMalloc(&block, bytes)".
absl::string_view FunctionName(absl::string_view call) { return call.substr(0, call.find('(')); }

}  // namespace

absl::Status CudaStatus(cudaError_t error, absl::string_view call) {
  if (error == cudaSuccess) return absl::OkStatus();
  const std::string message = absl::StrCat(FunctionName(call), ": ", cudaGetErrorName(error), " (",
                                           cudaGetErrorString(error), ")");
  if (error == cudaErrorMemoryAllocation) return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

absl::Status CublasStatus(cublasStatus_t status, absl::string_view call) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string message = absl::StrCat(FunctionName(call), ": ", cublasLtGetStatusName(status),
                                           " (", cublasLtGetStatusString(status), ")");
  if (status == CUBLAS_STATUS_ALLOC_FAILED) return absl::ResourceExhaustedError(message);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return absl::UnimplementedError(message);
  return absl::InternalError(message);
}

}  // namespace ltx::cuda
