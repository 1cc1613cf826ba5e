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

absl::StatusOr<Tensor> CudaDevice::Attention(const Tensor& /*q*/, const Tensor& /*k*/,
                                             const Tensor& /*v*/,
                                             const AttentionOptions& /*options*/) {
  return Unimplemented("Attention");
}

absl::StatusOr<Tensor> CudaDevice::HeadGate(const Tensor& /*x*/, const Tensor& /*logits*/) {
  return Unimplemented("HeadGate");
}

}  // namespace ltx::cuda
