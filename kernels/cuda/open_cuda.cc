#include "kernels/cuda/open_cuda.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/gpu_checks.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {
namespace {

absl::StatusOr<CudaInstallation> AskRuntime() {
  CudaInstallation installation;
  LTX_RETURN_IF_CUDA_ERROR(cudaDriverGetVersion(&installation.driver_version));
  LTX_RETURN_IF_CUDA_ERROR(cudaRuntimeGetVersion(&installation.runtime_version));
  switch (const cudaError_t error = cudaGetDeviceCount(&installation.gpus)) {
    case cudaSuccess:
      break;
    case cudaErrorInsufficientDriver:
      installation.answer = CudaInstallation::Answer::kDriverTooOld;
      break;
    case cudaErrorNoDevice:
      installation.answer = CudaInstallation::Answer::kNoGpu;
      break;
    default:
      installation.answer = CudaInstallation::Answer::kFailed;
      installation.failure = cudaGetErrorString(error);
  }
  return installation;
}

absl::StatusOr<int> CountGpus() {
  LTX_ASSIGN_OR_RETURN(const CudaInstallation installation, AskRuntime());
  LTX_RETURN_IF_ERROR(CheckInstallation(installation));
  return installation.gpus;
}

}  // namespace

absl::Status CheckCuda() { return CountGpus().status(); }

absl::StatusOr<std::unique_ptr<Device>> OpenCuda(int ordinal) {
  LTX_ASSIGN_OR_RETURN(const int count, CountGpus());
  LTX_RETURN_IF_ERROR(CheckOrdinal(ordinal, count));
  CudaDeviceOptions options;
  options.ordinal = ordinal;
  LTX_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, CudaDevice::Create(options));
  return device;
}

}  // namespace ltx::cuda
