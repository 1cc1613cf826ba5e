#include "kernels/tensor.h"

#include "absl/strings/str_cat.h"

namespace ltx {

absl::StatusOr<Tensor> Tensor::Reshape(const Shape& shape) const {
  if (shape.num_elements() != num_elements()) {
    return absl::InternalError(
        absl::StrCat("cannot reshape ", shape_.ToString(), " to ", shape.ToString()));
  }
  return Tensor(storage_, byte_offset_, shape, dtype_);
}

absl::StatusOr<Tensor> Tensor::Rows(int64_t begin, int64_t end) const {
  if (rank() < 1 || begin < 0 || end < begin || end > dim(0)) {
    return absl::InternalError(
        absl::StrCat("rows [", begin, ", ", end, ") of a tensor ", shape_.ToString()));
  }
  Shape shape = shape_;
  shape.set_dim(0, end - begin);
  const int64_t row_bytes = dim(0) == 0 ? 0 : num_bytes() / dim(0);
  return Tensor(storage_, byte_offset_ + begin * row_bytes, shape, dtype_);
}

}  // namespace ltx
