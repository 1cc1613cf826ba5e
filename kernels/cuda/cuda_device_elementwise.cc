#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/operand_check.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {

absl::StatusOr<Tensor> CudaDevice::Apply(const Tensor& x, Activation activation) {
  LTX_RETURN_IF_ERROR(CheckFloat("Apply", x));
  LTX_ASSIGN_OR_RETURN(Tensor y, NewLike(x));
  LaunchApply(x.dtype(), activation, x.raw(), y.raw(), x.num_elements(), context_->stream());
  return Launched("Apply", y);
}

absl::StatusOr<Tensor> CudaDevice::LeakyRelu(const Tensor& x, float slope) {
  LTX_RETURN_IF_ERROR(CheckFloat("LeakyRelu", x));
  LTX_ASSIGN_OR_RETURN(Tensor y, NewLike(x));
  LaunchLeakyRelu(x.dtype(), slope, x.raw(), y.raw(), x.num_elements(), context_->stream());
  return Launched("LeakyRelu", y);
}

absl::StatusOr<Tensor> CudaDevice::Clamp(const Tensor& x, float low, float high) {
  LTX_RETURN_IF_ERROR(CheckFloat("Clamp", x));
  LTX_ASSIGN_OR_RETURN(Tensor y, NewLike(x));
  LaunchClamp(x.dtype(), low, high, x.raw(), y.raw(), x.num_elements(), context_->stream());
  return Launched("Clamp", y);
}

absl::StatusOr<Tensor> CudaDevice::SoftCap(const Tensor& x, float cap) {
  LTX_RETURN_IF_ERROR(CheckFloat("SoftCap", x));
  LTX_ASSIGN_OR_RETURN(Tensor y, NewLike(x));
  LaunchSoftCap(x.dtype(), cap, x.raw(), y.raw(), x.num_elements(), context_->stream());
  return Launched("SoftCap", y);
}

absl::StatusOr<Tensor> CudaDevice::LogFloor(const Tensor& x, float floor) {
  LTX_RETURN_IF_ERROR(CheckFloat("LogFloor", x));
  LTX_ASSIGN_OR_RETURN(Tensor y, NewLike(x));
  LaunchLogFloor(x.dtype(), floor, x.raw(), y.raw(), x.num_elements(), context_->stream());
  return Launched("LogFloor", y);
}

absl::StatusOr<Tensor> CudaDevice::Magnitude(const Tensor& x) {
  LTX_ASSIGN_OR_RETURN(const Shape shape, MagnitudeShape(x));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, x.dtype(), MemoryOwner::kActivations));
  LaunchMagnitude(x.dtype(), x.raw(), y.raw(), shape.num_rows(), shape.dim(-1), context_->stream());
  return Launched("Magnitude", y);
}

absl::StatusOr<Tensor> CudaDevice::Add(const Tensor& a, const Tensor& b) {
  LTX_RETURN_IF_ERROR(CheckSame("Add", a, b));
  LTX_ASSIGN_OR_RETURN(Tensor y, NewLike(a));
  LaunchAdd(a.dtype(), a.raw(), b.raw(), y.raw(), a.num_elements(), context_->stream());
  return Launched("Add", y);
}

absl::StatusOr<Tensor> CudaDevice::OuterSum(const Columns& a, const Tensor& b) {
  LTX_RETURN_IF_ERROR(CheckOuterSum(a, b));
  const int64_t outer = a.tensor.dim(0);
  LTX_ASSIGN_OR_RETURN(Tensor y,
                       Allocate({outer, b.dim(0), b.dim(1)}, b.dtype(), MemoryOwner::kActivations));
  const auto* const first = a.tensor.data<uint8_t>() + a.begin * SizeOf(b.dtype());
  LaunchOuterSum(b.dtype(), first, a.pitch(), b.raw(), y.raw(), outer, b.dim(0), b.dim(1),
                 context_->stream());
  return Launched("OuterSum", y);
}

absl::StatusOr<Tensor> CudaDevice::GeluTanhMul(const Tensor& gate, const Tensor& up) {
  LTX_RETURN_IF_ERROR(CheckSame("GeluTanhMul", gate, up));
  LTX_ASSIGN_OR_RETURN(Tensor y, NewLike(gate));
  LaunchGeluTanhMul(gate.dtype(), gate.raw(), up.raw(), y.raw(), gate.num_elements(),
                    context_->stream());
  return Launched("GeluTanhMul", y);
}

absl::StatusOr<Tensor> CudaDevice::Scale(const Tensor& x, float factor) {
  LTX_RETURN_IF_ERROR(CheckFloat("Scale", x));
  LTX_ASSIGN_OR_RETURN(Tensor y, NewLike(x));
  LaunchScale(x.dtype(), factor, x.raw(), y.raw(), x.num_elements(), context_->stream());
  return Launched("Scale", y);
}

absl::StatusOr<Tensor> CudaDevice::ScaleShiftChannels(const Tensor& x, const Tensor& scale,
                                                      const Tensor& shift) {
  constexpr absl::string_view kName = "ScaleShiftChannels";
  LTX_RETURN_IF_ERROR(CheckFloat(kName, x, 1));
  LTX_RETURN_IF_ERROR(CheckOptionalVector(kName, x, scale, x.dim(-1)));
  LTX_RETURN_IF_ERROR(CheckOptionalVector(kName, x, shift, x.dim(-1)));
  LTX_ASSIGN_OR_RETURN(Tensor y, NewLike(x));
  LaunchScaleShiftChannels(x.dtype(), x.raw(), scale.raw(), shift.raw(), y.raw(),
                           x.shape().num_rows(), x.dim(-1), context_->stream());
  return Launched(kName, y);
}

absl::StatusOr<Tensor> CudaDevice::NormalizeChannels(const Tensor& x, const Tensor& mean,
                                                     const Tensor& std) {
  constexpr absl::string_view kName = "NormalizeChannels";
  LTX_RETURN_IF_ERROR(CheckFloat(kName, x, 1));
  LTX_RETURN_IF_ERROR(CheckVector(kName, x, mean, x.dim(-1)));
  LTX_RETURN_IF_ERROR(CheckVector(kName, x, std, x.dim(-1)));
  LTX_ASSIGN_OR_RETURN(Tensor y, NewLike(x));
  LaunchNormalizeChannels(x.dtype(), x.raw(), mean.raw(), std.raw(), y.raw(), x.shape().num_rows(),
                          x.dim(-1), context_->stream());
  return Launched(kName, y);
}

absl::StatusOr<Tensor> CudaDevice::AddSpatialNoise(const Tensor& x, const Tensor& draw,
                                                   const Tensor& channel_scale) {
  LTX_RETURN_IF_ERROR(CheckSpatialNoise(x, draw, channel_scale));
  LTX_ASSIGN_OR_RETURN(Tensor y, NewLike(x));
  LaunchAddSpatialNoise(x.dtype(), x.raw(), draw.raw(), channel_scale.raw(), y.raw(),
                        x.shape().num_rows(), draw.num_elements(), x.dim(4), context_->stream());
  return Launched("AddSpatialNoise", y);
}

}  // namespace ltx::cuda
