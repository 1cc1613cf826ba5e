#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/unimplemented.h"

namespace ltx::cuda {

absl::StatusOr<Tensor> CudaDevice::AntiAliasedSnake(const Tensor& /*x*/, const Tensor& /*up*/,
                                                    const Tensor& /*down*/, const Tensor& /*alpha*/,
                                                    const Tensor& /*inverse_beta*/) {
  return Unimplemented("AntiAliasedSnake");
}

}  // namespace ltx::cuda
