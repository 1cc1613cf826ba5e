#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/unimplemented.h"

namespace ltx::cuda {

absl::StatusOr<Tensor> CudaDevice::Lerp(const Tensor& /*a*/, const Tensor& /*b*/,
                                        float /*weight*/) {
  return Unimplemented("Lerp");
}

absl::StatusOr<Tensor> CudaDevice::LerpTokens(const Tensor& /*a*/, const Tensor& /*b*/,
                                              const Tensor& /*weights*/) {
  return Unimplemented("LerpTokens");
}

absl::StatusOr<Tensor> CudaDevice::VelocityToDenoised(const Tensor& /*latent*/,
                                                      const Tensor& /*velocity*/,
                                                      const Tensor& /*timesteps*/) {
  return Unimplemented("VelocityToDenoised");
}

absl::StatusOr<Tensor> CudaDevice::BlendClean(const Tensor& /*denoised*/, const Tensor& /*clean*/,
                                              const Tensor& /*mask*/) {
  return Unimplemented("BlendClean");
}

absl::StatusOr<Tensor> CudaDevice::EulerStep(const Tensor& /*x*/, const Tensor& /*denoised*/,
                                             float /*sigma*/, float /*sigma_next*/) {
  return Unimplemented("EulerStep");
}

absl::StatusOr<Tensor> CudaDevice::LinearCombination(float /*a*/, const Tensor& /*x*/, float /*b*/,
                                                     const Tensor& /*y*/, float /*c*/,
                                                     const Tensor& /*z*/) {
  return Unimplemented("LinearCombination");
}

absl::StatusOr<bool> CudaDevice::AllFinite(const Tensor& /*x*/) {
  return Unimplemented("AllFinite");
}

}  // namespace ltx::cuda
