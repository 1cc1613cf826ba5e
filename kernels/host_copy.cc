#include "kernels/host_copy.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx {
namespace {

template <typename T>
absl::Span<const uint8_t> AsBytes(absl::Span<const T> values) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(values.data()),
                             values.size() * sizeof(T));
}

template <typename T>
absl::StatusOr<Tensor> FromHost(Device& device, absl::Span<const T> values, const Shape& shape,
                                DType dtype, MemoryOwner owner) {
  LTX_ASSIGN_OR_RETURN(Tensor tensor, device.Allocate(shape, dtype, owner));
  LTX_RETURN_IF_ERROR(device.Upload(AsBytes(values), tensor));
  return tensor;
}

}  // namespace

absl::Status UploadFloats(Device& device, absl::Span<const float> values, const Tensor& tensor) {
  if (tensor.dtype() == DType::kF32) return device.Upload(AsBytes(values), tensor);
  if (tensor.dtype() != DType::kBF16) {
    return absl::UnimplementedError(absl::StrCat("floats to ", DTypeName(tensor.dtype())));
  }
  const std::vector<BFloat16> rounded(values.begin(), values.end());
  return device.Upload(AsBytes(absl::MakeConstSpan(rounded)), tensor);
}

absl::StatusOr<Tensor> TensorFromFloats(Device& device, absl::Span<const float> values,
                                        const Shape& shape, DType dtype, MemoryOwner owner) {
  LTX_ASSIGN_OR_RETURN(Tensor tensor, device.Allocate(shape, dtype, owner));
  LTX_RETURN_IF_ERROR(UploadFloats(device, values, tensor));
  return tensor;
}

absl::StatusOr<Tensor> TensorFromDoubles(Device& device, absl::Span<const double> values,
                                         const Shape& shape, MemoryOwner owner) {
  return FromHost(device, values, shape, DType::kF64, owner);
}

absl::StatusOr<Tensor> TensorFromInts(Device& device, absl::Span<const int32_t> values,
                                      const Shape& shape, MemoryOwner owner) {
  return FromHost(device, values, shape, DType::kI32, owner);
}

absl::StatusOr<Tensor> TensorFromBytes(Device& device, absl::Span<const uint8_t> values,
                                       const Shape& shape, MemoryOwner owner) {
  return FromHost(device, values, shape, DType::kU8, owner);
}

absl::StatusOr<Tensor> ZeroTensor(Device& device, const Shape& shape, DType dtype,
                                  MemoryOwner owner) {
  return TensorFromFloats(device, std::vector<float>(shape.num_elements(), 0.0f), shape, dtype,
                          owner);
}

absl::StatusOr<Tensor> CopyForOwner(Device& device, const Tensor& tensor, MemoryOwner owner) {
  LTX_ASSIGN_OR_RETURN(Tensor copy, device.Allocate(tensor.shape(), tensor.dtype(), owner));
  LTX_RETURN_IF_ERROR(device.Copy(tensor, &copy));
  return copy;
}

absl::StatusOr<Tensor> LinearOperand(Device& device, const Tensor& tensor, MemoryOwner owner) {
  if (!device.keeps_linear_operands()) return tensor;
  return CopyForOwner(device, tensor, owner);
}

absl::StatusOr<HostBytes> HostBytes::Of(Device& device, Tensor tensor) {
  HostBytes host;
  const auto size = static_cast<size_t>(tensor.num_bytes());
  if (tensor.host_accessible()) {
    host.tensor_ = std::move(tensor);
    host.bytes_ = absl::MakeConstSpan(host.tensor_.data<uint8_t>(), size);
    return host;
  }
  // Not a vector: its zeros would be written by one core, and then overwritten.
  host.copy_.reset(static_cast<uint8_t*>(std::malloc(std::max<size_t>(size, 1))));
  if (host.copy_ == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no host memory for ", size, " bytes of ", device.name()));
  }
  const absl::Span<uint8_t> target(host.copy_.get(), size);
  LTX_RETURN_IF_ERROR(device.Download(tensor, target));
  host.bytes_ = target;
  return host;
}

absl::StatusOr<std::vector<uint8_t>> ToBytes(Device& device, const Tensor& tensor) {
  std::vector<uint8_t> bytes(tensor.num_bytes());
  LTX_RETURN_IF_ERROR(device.Download(tensor, absl::MakeSpan(bytes)));
  return bytes;
}

absl::StatusOr<std::vector<float>> ToFloats(Device& device, const Tensor& tensor) {
  std::vector<float> values(tensor.num_elements());
  if (tensor.dtype() == DType::kF32) {
    LTX_RETURN_IF_ERROR(device.Download(
        tensor, absl::MakeSpan(reinterpret_cast<uint8_t*>(values.data()), tensor.num_bytes())));
    return values;
  }
  if (tensor.dtype() != DType::kBF16) {
    return absl::UnimplementedError(absl::StrCat(DTypeName(tensor.dtype()), " to floats"));
  }
  std::vector<BFloat16> stored(tensor.num_elements());
  LTX_RETURN_IF_ERROR(device.Download(
      tensor, absl::MakeSpan(reinterpret_cast<uint8_t*>(stored.data()), tensor.num_bytes())));
  for (size_t i = 0; i < stored.size(); ++i) values[i] = static_cast<float>(stored[i]);
  return values;
}

}  // namespace ltx
