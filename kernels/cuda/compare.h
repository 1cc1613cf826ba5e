#ifndef LTX_KERNELS_CUDA_COMPARE_H_
#define LTX_KERNELS_CUDA_COMPARE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ltx::cuda {

/// *flag becomes 1 if the two arrays of `bytes`, a multiple of 2, differ in any bit; the caller has
/// set it to 0.
void LaunchFindDifference(const void* a, const void* b, int64_t bytes, int32_t* flag,
                          cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_COMPARE_H_
