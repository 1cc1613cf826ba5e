#ifndef LTX_KERNELS_ALLOCATION_H_
#define LTX_KERNELS_ALLOCATION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/memory_ledger.h"
#include "kernels/tensor.h"

namespace ltx {

/// What every device's Allocate, Upload, Download and Copy check and say.

/// Bytes of a tensor; INTERNAL if an extent is negative or the product overflows.
absl::StatusOr<int64_t> TensorBytes(const Shape& shape, DType dtype);

/// RESOURCE_EXHAUSTED with device, need, owner and live bytes.
absl::Status OutOfMemoryError(absl::string_view device, int64_t bytes, MemoryOwner owner,
                              const MemoryLedger& ledger);

/// INTERNAL unless `tensor` is given and holds `bytes`; `direction` is "upload" or "download".
absl::Status CheckTransfer(absl::string_view direction, const Tensor& tensor, size_t bytes);

/// INTERNAL unless `to` is given and has the shape and dtype of `from`.
absl::Status CheckCopy(const Tensor& from, const Tensor& to);

}  // namespace ltx

#endif  // LTX_KERNELS_ALLOCATION_H_
