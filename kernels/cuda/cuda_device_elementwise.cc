#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/unimplemented.h"

namespace ltx::cuda {

absl::StatusOr<Tensor> CudaDevice::Apply(const Tensor& /*x*/, Activation /*activation*/) {
  return Unimplemented("Apply");
}

absl::StatusOr<Tensor> CudaDevice::LeakyRelu(const Tensor& /*x*/, float /*slope*/) {
  return Unimplemented("LeakyRelu");
}

absl::StatusOr<Tensor> CudaDevice::Clamp(const Tensor& /*x*/, float /*low*/, float /*high*/) {
  return Unimplemented("Clamp");
}

absl::StatusOr<Tensor> CudaDevice::SoftCap(const Tensor& /*x*/, float /*cap*/) {
  return Unimplemented("SoftCap");
}

absl::StatusOr<Tensor> CudaDevice::LogFloor(const Tensor& /*x*/, float /*floor*/) {
  return Unimplemented("LogFloor");
}

absl::StatusOr<Tensor> CudaDevice::Magnitude(const Tensor& /*x*/) {
  return Unimplemented("Magnitude");
}

absl::StatusOr<Tensor> CudaDevice::Add(const Tensor& /*a*/, const Tensor& /*b*/) {
  return Unimplemented("Add");
}

absl::StatusOr<Tensor> CudaDevice::GeluTanhMul(const Tensor& /*gate*/, const Tensor& /*up*/) {
  return Unimplemented("GeluTanhMul");
}

absl::StatusOr<Tensor> CudaDevice::Scale(const Tensor& /*x*/, float /*factor*/) {
  return Unimplemented("Scale");
}

absl::StatusOr<Tensor> CudaDevice::ScaleShiftChannels(const Tensor& /*x*/, const Tensor& /*scale*/,
                                                      const Tensor& /*shift*/) {
  return Unimplemented("ScaleShiftChannels");
}

absl::StatusOr<Tensor> CudaDevice::NormalizeChannels(const Tensor& /*x*/, const Tensor& /*mean*/,
                                                     const Tensor& /*std*/) {
  return Unimplemented("NormalizeChannels");
}

absl::StatusOr<Tensor> CudaDevice::BlendBatch(const Tensor& /*a*/, const Tensor& /*b*/,
                                              absl::Span<const float> /*weights*/) {
  return Unimplemented("BlendBatch");
}

absl::StatusOr<Tensor> CudaDevice::AddSpatialNoise(const Tensor& /*x*/, const Tensor& /*draw*/,
                                                   const Tensor& /*channel_scale*/) {
  return Unimplemented("AddSpatialNoise");
}

absl::StatusOr<Tensor> CudaDevice::OuterSum(const Tensor& /*a*/, const Tensor& /*b*/) {
  return Unimplemented("OuterSum");
}

}  // namespace ltx::cuda
