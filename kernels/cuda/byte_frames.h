#ifndef LTX_KERNELS_CUDA_BYTE_FRAMES_H_
#define LTX_KERNELS_CUDA_BYTE_FRAMES_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ltx::cuda {

/// frames f32 [count, height, width, 3] -> rgb [count, height, width, 3] and i420
/// [count, height * 3/2, width], as Device::ToByteFrames says. Even extents.
void LaunchByteFrames(const float* frames, int64_t count, int64_t height, int64_t width,
                      uint8_t* rgb, uint8_t* i420, cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_BYTE_FRAMES_H_
