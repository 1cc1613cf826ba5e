#include "absl/status/status.h"
#include "kernels/cpu/cpu_device.h"

namespace ltx::cpu {

absl::StatusOr<Tensor> CpuDevice::NormRope(const Tensor& x, const NormRopeOptions& options) {
  return absl::UnimplementedError("NormRope");
}

absl::StatusOr<Tensor> CpuDevice::Rope(const Tensor& x, int64_t heads, const RopeTable& rope) {
  return absl::UnimplementedError("Rope");
}

absl::StatusOr<Tensor> CpuDevice::Attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                            const AttentionOptions& options) {
  return absl::UnimplementedError("Attention");
}

absl::StatusOr<Tensor> CpuDevice::HeadGate(const Tensor& x, const Tensor& logits) {
  return absl::UnimplementedError("HeadGate");
}

}  // namespace ltx::cpu
