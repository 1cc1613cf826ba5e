#include "kernels/cpu/cpu_device.h"

namespace ltx::cpu {

absl::StatusOr<ConvWeight> CpuDevice::PrepareConv(const Tensor& weight, const Tensor& bias,
                                                  MemoryOwner owner) {
  return absl::UnimplementedError("cpu: PrepareConv");
}

absl::StatusOr<Tensor> CpuDevice::Conv(const Tensor& x, const ConvWeight& weight,
                                       const ConvOptions& options) {
  return absl::UnimplementedError("cpu: Conv");
}

absl::StatusOr<ConvWeight> CpuDevice::PrepareConvTranspose1d(const Tensor& weight,
                                                             const Tensor& bias,
                                                             MemoryOwner owner) {
  return absl::UnimplementedError("cpu: PrepareConvTranspose1d");
}

absl::StatusOr<Tensor> CpuDevice::ConvTranspose1d(const Tensor& x, const ConvWeight& weight,
                                                  int64_t stride, int64_t padding) {
  return absl::UnimplementedError("cpu: ConvTranspose1d");
}

}  // namespace ltx::cpu
