#ifndef LTX_KERNELS_CUDA_UNIMPLEMENTED_H_
#define LTX_KERNELS_CUDA_UNIMPLEMENTED_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace ltx::cuda {

/// What an operation answers that the CUDA device does not have yet.
inline absl::Status Unimplemented(absl::string_view operation) {
  return absl::UnimplementedError(absl::StrCat(operation, " is not there on the CUDA device yet"));
}

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_UNIMPLEMENTED_H_
