#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/diffusion.h"
#include "kernels/operand_check.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {

absl::StatusOr<Tensor> CudaDevice::Lerp(const Tensor& a, const Tensor& b, float weight) {
  LTX_RETURN_IF_ERROR(CheckSame("Lerp", a, b));
  LTX_ASSIGN_OR_RETURN(Tensor y, NewLike(a));
  LaunchLerp(a.dtype(), a.raw(), b.raw(), weight, y.raw(), a.num_elements(), context_->stream());
  return Launched("Lerp", y);
}

absl::StatusOr<Tensor> CudaDevice::LerpTokens(const Tensor& a, const Tensor& b,
                                              const Tensor& weights) {
  LTX_RETURN_IF_ERROR(CheckTokens("LerpTokens", a, b, weights));
  LTX_ASSIGN_OR_RETURN(Tensor y, NewLike(a));
  LaunchLerpTokens(a.dtype(), a.raw(), b.raw(), weights.data<float>(), y.raw(),
                   a.shape().num_rows(), a.dim(-1), context_->stream());
  return Launched("LerpTokens", y);
}

absl::StatusOr<Tensor> CudaDevice::VelocityToDenoised(const Tensor& latent, const Tensor& velocity,
                                                      const Tensor& timesteps) {
  LTX_RETURN_IF_ERROR(CheckTokens("VelocityToDenoised", latent, velocity, timesteps));
  LTX_ASSIGN_OR_RETURN(Tensor y, NewLike(latent));
  LaunchVelocityToDenoised(latent.dtype(), latent.raw(), velocity.raw(), timesteps.data<float>(),
                           y.raw(), latent.shape().num_rows(), latent.dim(-1), context_->stream());
  return Launched("VelocityToDenoised", y);
}

absl::StatusOr<Tensor> CudaDevice::BlendClean(const Tensor& denoised, const Tensor& clean,
                                              const Tensor& mask) {
  LTX_RETURN_IF_ERROR(CheckTokens("BlendClean", denoised, clean, mask));
  LTX_ASSIGN_OR_RETURN(Tensor y, NewLike(denoised));
  LaunchBlendClean(denoised.dtype(), denoised.raw(), clean.raw(), mask.data<float>(), y.raw(),
                   denoised.shape().num_rows(), denoised.dim(-1), context_->stream());
  return Launched("BlendClean", y);
}

absl::StatusOr<Tensor> CudaDevice::EulerStep(const Tensor& x, const Tensor& denoised, float sigma,
                                             float sigma_next) {
  LTX_RETURN_IF_ERROR(CheckSame("EulerStep", x, denoised));
  if (sigma == 0.0f) return OperandError("EulerStep", "sigma must not be 0", {&x, &denoised});
  LTX_ASSIGN_OR_RETURN(Tensor y, NewLike(x));
  LaunchEulerStep(x.dtype(), x.raw(), denoised.raw(), sigma, sigma_next, y.raw(), x.num_elements(),
                  context_->stream());
  return Launched("EulerStep", y);
}

absl::StatusOr<Tensor> CudaDevice::LinearCombination(float a, const Tensor& x, float b,
                                                     const Tensor& y, float c, const Tensor& z) {
  LTX_RETURN_IF_ERROR(CheckSame("LinearCombination", x, y));
  if (z.defined()) LTX_RETURN_IF_ERROR(CheckSame("LinearCombination", x, z));
  LTX_ASSIGN_OR_RETURN(Tensor result, NewLike(x));
  LaunchLinearCombination(x.dtype(), a, x.raw(), b, y.raw(), c, z.raw(), result.raw(),
                          x.num_elements(), context_->stream());
  return Launched("LinearCombination", result);
}

absl::StatusOr<bool> CudaDevice::AllFinite(const Tensor& x) {
  LTX_RETURN_IF_ERROR(CheckFloat("AllFinite", x));
  LTX_ASSIGN_OR_RETURN(const Tensor flag, Allocate({1}, DType::kI32, MemoryOwner::kWorkspace));
  LTX_RETURN_IF_CUDA_ERROR(
      cudaMemsetAsync(flag.raw(), 0, static_cast<size_t>(flag.num_bytes()), context_->stream()));
  LaunchFindNonFinite(x.dtype(), x.raw(), x.num_elements(), flag.data<int32_t>(),
                      context_->stream());
  LTX_RETURN_IF_ERROR(context_->CheckLaunch("AllFinite"));
  int32_t found = 0;
  LTX_RETURN_IF_ERROR(
      Download(flag, absl::MakeSpan(reinterpret_cast<uint8_t*>(&found), sizeof(found))));
  return found == 0;
}

}  // namespace ltx::cuda
