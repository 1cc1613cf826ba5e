#include "absl/status/status.h"
#include "kernels/cpu/cpu_device.h"

namespace ltx::cpu {

absl::StatusOr<Tensor> CpuDevice::RmsNorm(const Tensor& x, const Tensor& weight, float epsilon,
                                          bool one_plus_weight, Activation activation) {
  return absl::UnimplementedError("RmsNorm");
}

absl::StatusOr<Tensor> CpuDevice::RmsNormModulate(const Tensor& x, float epsilon,
                                                  const RowVectors& scale,
                                                  const RowVectors& shift) {
  return absl::UnimplementedError("RmsNormModulate");
}

absl::StatusOr<Tensor> CpuDevice::LayerNormModulate(const Tensor& x, float epsilon,
                                                    const RowVectors& scale,
                                                    const RowVectors& shift) {
  return absl::UnimplementedError("LayerNormModulate");
}

absl::StatusOr<Tensor> CpuDevice::Modulate(const Tensor& x, const RowVectors& scale,
                                           const RowVectors& shift, Activation activation) {
  return absl::UnimplementedError("Modulate");
}

absl::StatusOr<Tensor> CpuDevice::AddGated(const Tensor& x, const Tensor& y,
                                           const RowVectors& gate) {
  return absl::UnimplementedError("AddGated");
}

absl::StatusOr<Tensor> CpuDevice::GroupNorm(const Tensor& x, const Tensor& weight,
                                            const Tensor& bias, const GroupNormOptions& options) {
  return absl::UnimplementedError("GroupNorm");
}

}  // namespace ltx::cpu
