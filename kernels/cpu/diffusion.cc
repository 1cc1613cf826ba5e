#include "absl/status/status.h"
#include "kernels/cpu/cpu_device.h"

namespace ltx::cpu {

absl::StatusOr<Tensor> CpuDevice::Lerp(const Tensor& a, const Tensor& b, float weight) {
  return absl::UnimplementedError("Lerp");
}

absl::StatusOr<Tensor> CpuDevice::LerpTokens(const Tensor& a, const Tensor& b,
                                             const Tensor& weights) {
  return absl::UnimplementedError("LerpTokens");
}

absl::StatusOr<Tensor> CpuDevice::VelocityToDenoised(const Tensor& latent, const Tensor& velocity,
                                                     const Tensor& timesteps) {
  return absl::UnimplementedError("VelocityToDenoised");
}

absl::StatusOr<Tensor> CpuDevice::BlendClean(const Tensor& denoised, const Tensor& clean,
                                             const Tensor& mask) {
  return absl::UnimplementedError("BlendClean");
}

absl::StatusOr<Tensor> CpuDevice::EulerStep(const Tensor& x, const Tensor& denoised, float sigma,
                                            float sigma_next) {
  return absl::UnimplementedError("EulerStep");
}

absl::StatusOr<Tensor> CpuDevice::LinearCombination(float a, const Tensor& x, float b,
                                                    const Tensor& y, float c, const Tensor& z) {
  return absl::UnimplementedError("LinearCombination");
}

absl::StatusOr<bool> CpuDevice::AllFinite(const Tensor& x) {
  return absl::UnimplementedError("AllFinite");
}

}  // namespace ltx::cpu
