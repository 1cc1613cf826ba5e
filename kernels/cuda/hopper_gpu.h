#ifndef LTX_KERNELS_CUDA_HOPPER_GPU_H_
#define LTX_KERNELS_CUDA_HOPPER_GPU_H_

#include <cuda_runtime_api.h>

namespace ltx::cuda {

/// Whether this is a GPU that the kernels on tensor cores and clusters are written for: their
/// instructions (hopper.cuh) are those of compute capability 9.0 and of no other.
inline bool IsHopper(const cudaDeviceProp& gpu) { return gpu.major == 9 && gpu.minor == 0; }

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_HOPPER_GPU_H_
