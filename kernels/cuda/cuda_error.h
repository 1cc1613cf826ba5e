#ifndef LTX_KERNELS_CUDA_CUDA_ERROR_H_
#define LTX_KERNELS_CUDA_CUDA_ERROR_H_

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ltx::cuda {

/// Failures of the CUDA runtime and of cuBLASLt as statuses that name the call, the code and what
/// the library says. RESOURCE_EXHAUSTED for cudaErrorMemoryAllocation and
/// CUBLAS_STATUS_ALLOC_FAILED, UNIMPLEMENTED for CUBLAS_STATUS_NOT_SUPPORTED, else INTERNAL.

absl::Status CudaStatus(cudaError_t error, absl::string_view call);
absl::Status CublasStatus(cublasStatus_t status, absl::string_view call);

}  // namespace ltx::cuda

/// Returns from the enclosing function unless the call succeeds.
#define LTX_RETURN_IF_CUDA_ERROR(call)                                              \
  do {                                                                              \
    if (const cudaError_t ltx_cuda_error = (call); ltx_cuda_error != cudaSuccess) { \
      return ::ltx::cuda::CudaStatus(ltx_cuda_error, #call);                        \
    }                                                                               \
  } while (false)

#define LTX_RETURN_IF_CUBLAS_ERROR(call)                          \
  do {                                                            \
    if (const cublasStatus_t ltx_cublas_status = (call);          \
        ltx_cublas_status != CUBLAS_STATUS_SUCCESS) {             \
      return ::ltx::cuda::CublasStatus(ltx_cublas_status, #call); \
    }                                                             \
  } while (false)

#endif  // LTX_KERNELS_CUDA_CUDA_ERROR_H_
