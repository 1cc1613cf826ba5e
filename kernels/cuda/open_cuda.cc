#include "kernels/cuda/open_cuda.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {
namespace {

absl::StatusOr<int> CountGpus() {
  int driver = 0;
  int runtime = 0;
  LTX_RETURN_IF_CUDA_ERROR(cudaDriverGetVersion(&driver));
  LTX_RETURN_IF_CUDA_ERROR(cudaRuntimeGetVersion(&runtime));
  if (driver == 0) {
    return absl::FailedPreconditionError("no NVIDIA driver on this machine (no libcuda.so.1)");
  }
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorInsufficientDriver) {
    return absl::FailedPreconditionError(
        absl::StrCat("the NVIDIA driver is too old: it knows CUDA ", CudaVersionText(driver),
                     ", this build needs CUDA ", CudaVersionText(runtime)));
  }
  if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0)) {
    return absl::FailedPreconditionError("the NVIDIA driver finds no GPU it may use");
  }
  if (error != cudaSuccess) {
    return absl::FailedPreconditionError(
        absl::StrCat("the NVIDIA driver does not work: ", cudaGetErrorString(error)));
  }
  return count;
}

}  // namespace

absl::Status CheckCuda() { return CountGpus().status(); }

absl::StatusOr<std::unique_ptr<Device>> OpenCuda(int ordinal) {
  LTX_ASSIGN_OR_RETURN(const int count, CountGpus());
  if (ordinal < 0 || ordinal >= count) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no GPU ", ordinal, "; this machine has cuda:0",
                     count == 1 ? "" : absl::StrCat(" to cuda:", count - 1)));
  }
  CudaDeviceOptions options;
  options.ordinal = ordinal;
  LTX_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, CudaDevice::Create(options));
  return device;
}

}  // namespace ltx::cuda
