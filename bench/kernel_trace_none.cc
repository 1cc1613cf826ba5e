#include "bench/kernel_trace.h"

namespace ltx::bench {

absl::StatusOr<std::unique_ptr<KernelTrace>> StartKernelTrace() {
  return absl::UnimplementedError("this build has no CUDA, so there are no kernels to trace");
}

}  // namespace ltx::bench
