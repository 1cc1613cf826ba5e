#include "absl/status/status.h"
#include "kernels/cpu/cpu_device.h"

namespace ltx::cpu {

absl::StatusOr<Tensor> CpuDevice::Apply(const Tensor& x, Activation activation) {
  return absl::UnimplementedError("Apply");
}

absl::StatusOr<Tensor> CpuDevice::LeakyRelu(const Tensor& x, float slope) {
  return absl::UnimplementedError("LeakyRelu");
}

absl::StatusOr<Tensor> CpuDevice::Clamp(const Tensor& x, float low, float high) {
  return absl::UnimplementedError("Clamp");
}

absl::StatusOr<Tensor> CpuDevice::SoftCap(const Tensor& x, float cap) {
  return absl::UnimplementedError("SoftCap");
}

absl::StatusOr<Tensor> CpuDevice::LogFloor(const Tensor& x, float floor) {
  return absl::UnimplementedError("LogFloor");
}

absl::StatusOr<Tensor> CpuDevice::Magnitude(const Tensor& x) {
  return absl::UnimplementedError("Magnitude");
}

absl::StatusOr<Tensor> CpuDevice::Add(const Tensor& a, const Tensor& b) {
  return absl::UnimplementedError("Add");
}

absl::StatusOr<Tensor> CpuDevice::GeluTanhMul(const Tensor& gate, const Tensor& up) {
  return absl::UnimplementedError("GeluTanhMul");
}

absl::StatusOr<Tensor> CpuDevice::Scale(const Tensor& x, float factor) {
  return absl::UnimplementedError("Scale");
}

absl::StatusOr<Tensor> CpuDevice::ScaleShiftChannels(const Tensor& x, const Tensor& scale,
                                                     const Tensor& shift) {
  return absl::UnimplementedError("ScaleShiftChannels");
}

absl::StatusOr<Tensor> CpuDevice::NormalizeChannels(const Tensor& x, const Tensor& mean,
                                                    const Tensor& std) {
  return absl::UnimplementedError("NormalizeChannels");
}

absl::StatusOr<Tensor> CpuDevice::BlendBatch(const Tensor& a, const Tensor& b,
                                             absl::Span<const float> weights) {
  return absl::UnimplementedError("BlendBatch");
}

absl::StatusOr<Tensor> CpuDevice::AddSpatialNoise(const Tensor& x, const Tensor& draw,
                                                  const Tensor& channel_scale) {
  return absl::UnimplementedError("AddSpatialNoise");
}

absl::StatusOr<Tensor> CpuDevice::AntiAliasedSnake(const Tensor& x, const Tensor& up,
                                                   const Tensor& down, const Tensor& alpha,
                                                   const Tensor& inverse_beta) {
  return absl::UnimplementedError("AntiAliasedSnake");
}

}  // namespace ltx::cpu
