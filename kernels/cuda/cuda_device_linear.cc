#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/unimplemented.h"

namespace ltx::cuda {

absl::StatusOr<LinearWeight> CudaDevice::PrepareLinear(const Tensor& /*weight*/,
                                                       const Tensor& /*bias*/,
                                                       MemoryOwner /*owner*/) {
  return Unimplemented("PrepareLinear");
}

absl::StatusOr<Tensor> CudaDevice::Linear(const Tensor& /*x*/, const LinearWeight& /*weight*/,
                                          const LinearOptions& /*options*/) {
  return Unimplemented("Linear");
}

}  // namespace ltx::cuda
