#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/unimplemented.h"

namespace ltx::cuda {

absl::StatusOr<Tensor> CudaDevice::WeightedSum(absl::Span<const WeightedTerm> /*terms*/,
                                               DType /*dtype*/) {
  return Unimplemented("WeightedSum");
}

absl::StatusOr<Tensor> CudaDevice::Guide(const Tensor& /*cond*/, const Tensor& /*uncond*/,
                                         const Tensor& /*perturbed*/, const Tensor& /*isolated*/,
                                         const GuidanceScales& /*scales*/) {
  return Unimplemented("Guide");
}

absl::StatusOr<std::vector<double>> CudaDevice::BatchDot(const Tensor& /*a*/, const Tensor& /*b*/) {
  return Unimplemented("BatchDot");
}

}  // namespace ltx::cuda
