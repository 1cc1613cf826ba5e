#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/unimplemented.h"

namespace ltx::cuda {

absl::StatusOr<Tensor> CudaDevice::NormRope(const Tensor& /*x*/,
                                            const NormRopeOptions& /*options*/) {
  return Unimplemented("NormRope");
}

absl::StatusOr<Tensor> CudaDevice::Rope(const Tensor& /*x*/, int64_t /*heads*/,
                                        const RopeTable& /*rope*/) {
  return Unimplemented("Rope");
}

absl::StatusOr<Tensor> CudaDevice::Attention(const Columns& /*q*/, const Columns& /*k*/,
                                             const Columns& /*v*/,
                                             const AttentionOptions& /*options*/) {
  return Unimplemented("Attention");
}

absl::Status CudaDevice::HeadGate(Tensor* /*x*/, const Columns& /*logits*/) {
  return Unimplemented("HeadGate");
}

absl::Status CudaDevice::NormRopeInPlace(absl::Span<const NormRopePart> /*parts*/) {
  return Unimplemented("NormRopeInPlace");
}

}  // namespace ltx::cuda
