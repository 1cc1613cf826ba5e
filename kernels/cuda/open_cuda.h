#ifndef LTX_KERNELS_CUDA_OPEN_CUDA_H_
#define LTX_KERNELS_CUDA_OPEN_CUDA_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"

namespace ltx::cuda {

/// The CUDA device as programs see it that may have been built without it.

/// FAILED_PRECONDITION, saying what is missing: CUDA in this build, a driver, one that is new
/// enough, or a GPU.
absl::Status CheckCuda();

/// Opens GPU `ordinal`. As CheckCuda; INVALID_ARGUMENT if there are not that many;
/// FAILED_PRECONDITION if it is too old.
absl::StatusOr<std::unique_ptr<Device>> OpenCuda(int ordinal);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_OPEN_CUDA_H_
