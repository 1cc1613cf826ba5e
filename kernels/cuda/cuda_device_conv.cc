#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/unimplemented.h"

namespace ltx::cuda {

absl::StatusOr<ConvWeight> CudaDevice::PrepareConv(const Tensor& /*weight*/, const Tensor& /*bias*/,
                                                   MemoryOwner /*owner*/) {
  return Unimplemented("PrepareConv");
}

absl::StatusOr<Tensor> CudaDevice::Conv(const Tensor& /*x*/, const ConvWeight& /*weight*/,
                                        const ConvOptions& /*options*/) {
  return Unimplemented("Conv");
}

absl::StatusOr<ConvWeight> CudaDevice::PrepareConvTranspose1d(const Tensor& /*weight*/,
                                                              const Tensor& /*bias*/,
                                                              MemoryOwner /*owner*/) {
  return Unimplemented("PrepareConvTranspose1d");
}

absl::StatusOr<Tensor> CudaDevice::ConvTranspose1d(const Tensor& /*x*/,
                                                   const ConvWeight& /*weight*/, int64_t /*stride*/,
                                                   int64_t /*padding*/) {
  return Unimplemented("ConvTranspose1d");
}

}  // namespace ltx::cuda
