#ifndef LTX_KERNELS_CUDA_NORM_INTERLEAVE_H_
#define LTX_KERNELS_CUDA_NORM_INTERLEAVE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/interleave_parts.h"
#include "kernels/dtype.h"

namespace ltx::cuda {

/// NormInterleave of kernels/device.h on Hopper, in one pass over memory.
struct NormInterleaveTask {
  InterleaveParts parts;
  int count = 0;
  /// Of each part.
  int64_t rows = 0;
  int64_t width = 0;
  DType dtype = DType::kF32;
  float epsilon = 0.0f;
  void* to = nullptr;
};
/// Whether the kernel does these sizes: a row of all parts must fit the shared memory of a cluster.
bool SuitsNormInterleave(int64_t count, int64_t rows, int64_t width, DType dtype);
/// The parts' addresses must be multiples of 4 bytes, that of the result one of 16.
cudaError_t LaunchNormInterleave(const NormInterleaveTask& task, cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_NORM_INTERLEAVE_H_
