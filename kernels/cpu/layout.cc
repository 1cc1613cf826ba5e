#include "kernels/cpu/cpu_device.h"

namespace ltx::cpu {

absl::StatusOr<Tensor> CpuDevice::Cast(const Tensor& x, DType dtype) {
  return absl::UnimplementedError("cpu: Cast");
}

absl::StatusOr<Tensor> CpuDevice::Permute(const Tensor& x, absl::Span<const int> order) {
  return absl::UnimplementedError("cpu: Permute");
}

absl::StatusOr<Tensor> CpuDevice::Slice(const Tensor& x, int axis, int64_t begin, int64_t end) {
  return absl::UnimplementedError("cpu: Slice");
}

absl::StatusOr<Tensor> CpuDevice::Concat(absl::Span<const Tensor> parts, int axis) {
  return absl::UnimplementedError("cpu: Concat");
}

absl::StatusOr<Tensor> CpuDevice::Pad(const Tensor& x, int axis, int64_t before, int64_t after,
                                      PadMode mode) {
  return absl::UnimplementedError("cpu: Pad");
}

absl::StatusOr<Tensor> CpuDevice::GatherRows(const Tensor& table,
                                             absl::Span<const int32_t> indices) {
  return absl::UnimplementedError("cpu: GatherRows");
}

absl::StatusOr<Tensor> CpuDevice::Interleave(absl::Span<const Tensor> parts) {
  return absl::UnimplementedError("cpu: Interleave");
}

absl::StatusOr<Tensor> CpuDevice::DepthToSpace(const Tensor& x, const std::array<int, 3>& factors,
                                               bool drop_first_frame) {
  return absl::UnimplementedError("cpu: DepthToSpace");
}

absl::StatusOr<Tensor> CpuDevice::UpsampleNearest2x(const Tensor& x) {
  return absl::UnimplementedError("cpu: UpsampleNearest2x");
}

}  // namespace ltx::cpu
