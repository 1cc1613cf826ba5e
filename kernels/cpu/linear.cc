#include "kernels/cpu/cpu_device.h"

namespace ltx::cpu {

absl::StatusOr<LinearWeight> CpuDevice::PrepareLinear(const Tensor& weight, const Tensor& bias,
                                                      MemoryOwner owner) {
  return absl::UnimplementedError("cpu: PrepareLinear");
}

absl::StatusOr<Tensor> CpuDevice::Linear(const Tensor& x, const LinearWeight& weight,
                                         const LinearOptions& options) {
  return absl::UnimplementedError("cpu: Linear");
}

}  // namespace ltx::cpu
