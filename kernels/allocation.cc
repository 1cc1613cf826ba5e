#include "kernels/allocation.h"

#include "absl/strings/str_cat.h"

namespace ltx {

absl::StatusOr<int64_t> TensorBytes(const Shape& shape, DType dtype) {
  int64_t bytes = SizeOf(dtype);
  for (const int64_t extent : shape.dims()) {
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes)) {
      return absl::InternalError(
          absl::StrCat("no tensor can have shape ", shape.ToString(), " of ", DTypeName(dtype)));
    }
  }
  return bytes;
}

absl::Status OutOfMemoryError(absl::string_view device, int64_t bytes, MemoryOwner owner,
                              const MemoryLedger& ledger) {
  return absl::ResourceExhaustedError(absl::StrCat(device, ": no memory for ", bytes, " bytes of ",
                                                   MemoryOwnerName(owner), " (",
                                                   ledger.Read().total.live_bytes, " bytes live)"));
}

absl::Status CheckTransfer(absl::string_view direction, const Tensor& tensor, size_t bytes) {
  const int64_t needed = tensor.defined() ? tensor.num_bytes() : 0;
  if (tensor.defined() && static_cast<int64_t>(bytes) == needed) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(direction, " of ", bytes, " host bytes, but the tensor has ", needed));
}

absl::Status CheckCopy(const Tensor& from, const Tensor& to) {
  if (from.defined() && to.defined() && from.shape() == to.shape() && from.dtype() == to.dtype()) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat("copy of ", from.shape().ToString(), " ",
                                          DTypeName(from.dtype()), " over ", to.shape().ToString(),
                                          " ", DTypeName(to.dtype())));
}

}  // namespace ltx
