#include "kernels/cuda/open_cuda.h"

// The implementation of builds without CUDA.

namespace ltx::cuda {

absl::Status CheckCuda() {
  return absl::FailedPreconditionError(
      "this build has the CPU device only (build with --config=cuda for GPUs)");
}

absl::StatusOr<std::unique_ptr<Device>> OpenCuda(int /*ordinal*/) { return CheckCuda(); }

}  // namespace ltx::cuda
