#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/unimplemented.h"

namespace ltx::cuda {

absl::StatusOr<Tensor> CudaDevice::RmsNorm(const Tensor& /*x*/, const Tensor& /*weight*/,
                                           float /*epsilon*/, bool /*one_plus_weight*/,
                                           Activation /*activation*/) {
  return Unimplemented("RmsNorm");
}

absl::StatusOr<Tensor> CudaDevice::LayerNormModulate(const Tensor& /*x*/, float /*epsilon*/,
                                                     const RowVectors& /*scale*/,
                                                     const RowVectors& /*shift*/) {
  return Unimplemented("LayerNormModulate");
}

absl::StatusOr<Tensor> CudaDevice::Modulate(const Tensor& /*x*/, const RowVectors& /*scale*/,
                                            const RowVectors& /*shift*/,
                                            Activation /*activation*/) {
  return Unimplemented("Modulate");
}

absl::StatusOr<Tensor> CudaDevice::GroupNorm(const Tensor& /*x*/, const Tensor& /*weight*/,
                                             const Tensor& /*bias*/,
                                             const GroupNormOptions& /*options*/) {
  return Unimplemented("GroupNorm");
}

absl::StatusOr<std::vector<Tensor>> CudaDevice::ResidualNorm(
    Tensor* /*state*/, const ResidualUpdate& /*update*/, float /*epsilon*/,
    absl::Span<const NormReading> /*readings*/) {
  return Unimplemented("ResidualNorm");
}

}  // namespace ltx::cuda
