#ifndef LTX_KERNELS_CUDA_NORM_INTERLEAVE_H_
#define LTX_KERNELS_CUDA_NORM_INTERLEAVE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/interleave_parts.h"
#include "kernels/dtype.h"

namespace ltx::cuda {

/// NormInterleave of kernels/device.h: the parts' rows are read once for their mean squares and
/// once more, scaled, on their way into the result.
struct NormInterleaveTask {
  InterleaveParts parts;
  int count = 0;
  /// Of each part.
  int64_t rows = 0;
  int64_t width = 0;
  DType dtype = DType::kF32;
  float epsilon = 0.0f;
  /// Room for [count, rows].
  float* factors = nullptr;
  void* to = nullptr;
};
/// Whether the kernels do these sizes, where all addresses are aligned to 16 bytes.
bool CanNormInterleave(int64_t count, int64_t width, DType dtype);
/// False, and nothing is launched, if they do not do these sizes or addresses.
bool LaunchNormInterleave(const NormInterleaveTask& task, cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_NORM_INTERLEAVE_H_
