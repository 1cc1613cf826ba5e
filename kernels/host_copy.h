#ifndef LTX_KERNELS_HOST_COPY_H_
#define LTX_KERNELS_HOST_COPY_H_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/device.h"

namespace ltx {

/// Typed copies between host vectors and device tensors.

/// A tensor of `dtype` (f32 or bf16, rounded to nearest even) with these values.
absl::StatusOr<Tensor> TensorFromFloats(Device& device, absl::Span<const float> values,
                                        const Shape& shape, DType dtype = DType::kF32,
                                        MemoryOwner owner = MemoryOwner::kActivations);
/// The same for f64.
absl::StatusOr<Tensor> TensorFromDoubles(Device& device, absl::Span<const double> values,
                                         const Shape& shape,
                                         MemoryOwner owner = MemoryOwner::kActivations);
/// Fills `tensor` (f32 or bf16) with these values.
absl::Status UploadFloats(Device& device, absl::Span<const float> values, const Tensor& tensor);
absl::StatusOr<Tensor> TensorFromInts(Device& device, absl::Span<const int32_t> values,
                                      const Shape& shape,
                                      MemoryOwner owner = MemoryOwner::kActivations);
absl::StatusOr<Tensor> TensorFromBytes(Device& device, absl::Span<const uint8_t> values,
                                       const Shape& shape,
                                       MemoryOwner owner = MemoryOwner::kActivations);
/// A tensor of `dtype` (f32 or bf16) filled with zeros.
absl::StatusOr<Tensor> ZeroTensor(Device& device, const Shape& shape, DType dtype,
                                  MemoryOwner owner = MemoryOwner::kActivations);
/// A copy of a tensor under another owner, made by the device: for results of operations, which
/// count as activations, that are kept.
absl::StatusOr<Tensor> CopyForOwner(Device& device, const Tensor& tensor, MemoryOwner owner);
/// A result of operations as an operand of Device::PrepareLinear for `owner`: its copy for that
/// owner where the device keeps operands.
absl::StatusOr<Tensor> LinearOperand(Device& device, const Tensor& tensor, MemoryOwner owner);
/// The bytes of a tensor where the host can read them: in place if the host reaches its memory,
/// else a copy, after which the tensor is no longer held.
class HostBytes {
 public:
  /// RESOURCE_EXHAUSTED if the host has no memory for a copy.
  static absl::StatusOr<HostBytes> Of(Device& device, Tensor tensor);
  absl::Span<const uint8_t> bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(uint8_t* block) const { std::free(block); }
  };
  Tensor tensor_;
  std::unique_ptr<uint8_t, Free> copy_;
  absl::Span<const uint8_t> bytes_;
};
/// The bytes of a tensor of any dtype.
absl::StatusOr<std::vector<uint8_t>> ToBytes(Device& device, const Tensor& tensor);
/// The elements of an f32 or bf16 tensor, widened.
absl::StatusOr<std::vector<float>> ToFloats(Device& device, const Tensor& tensor);

}  // namespace ltx

#endif  // LTX_KERNELS_HOST_COPY_H_
