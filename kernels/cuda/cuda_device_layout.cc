#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/unimplemented.h"

namespace ltx::cuda {

absl::StatusOr<Tensor> CudaDevice::Cast(const Tensor& /*x*/, DType /*dtype*/) {
  return Unimplemented("Cast");
}

absl::StatusOr<Tensor> CudaDevice::Permute(const Tensor& /*x*/, absl::Span<const int> /*order*/) {
  return Unimplemented("Permute");
}

absl::StatusOr<Tensor> CudaDevice::Slice(const Tensor& /*x*/, int /*axis*/, int64_t /*begin*/,
                                         int64_t /*end*/) {
  return Unimplemented("Slice");
}

absl::StatusOr<Tensor> CudaDevice::Concat(absl::Span<const Tensor> /*parts*/, int /*axis*/) {
  return Unimplemented("Concat");
}

absl::StatusOr<Tensor> CudaDevice::Pad(const Tensor& /*x*/, int /*axis*/, int64_t /*before*/,
                                       int64_t /*after*/, PadMode /*mode*/) {
  return Unimplemented("Pad");
}

absl::StatusOr<Tensor> CudaDevice::GatherRows(const Tensor& /*table*/,
                                              absl::Span<const int32_t> /*indices*/) {
  return Unimplemented("GatherRows");
}

absl::StatusOr<Tensor> CudaDevice::Interleave(absl::Span<const Tensor> /*parts*/) {
  return Unimplemented("Interleave");
}

absl::StatusOr<Tensor> CudaDevice::DepthToSpace(const Tensor& /*x*/,
                                                const std::array<int, 3>& /*factors*/,
                                                bool /*drop_first_frame*/) {
  return Unimplemented("DepthToSpace");
}

absl::StatusOr<Tensor> CudaDevice::UpsampleNearest2x(const Tensor& /*x*/) {
  return Unimplemented("UpsampleNearest2x");
}

}  // namespace ltx::cuda
