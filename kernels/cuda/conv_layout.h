#ifndef LTX_KERNELS_CUDA_CONV_LAYOUT_H_
#define LTX_KERNELS_CUDA_CONV_LAYOUT_H_

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "kernels/op_enums.h"

namespace ltx::cuda {

/// out [taps, out_channels, channels] = weight, whose element (out channel, channel, tap) lies at
/// n * out_stride + c * in_stride + tap; f32, or both bf16.
struct PackConvWeightTask {
  const void* weight = nullptr;
  void* out = nullptr;
  int64_t taps = 0;
  int64_t out_channels = 0;
  int64_t channels = 0;
  int64_t out_stride = 0;
  int64_t in_stride = 0;
  bool bf16 = false;
};
cudaError_t LaunchPackConvWeight(const PackConvWeightTask& task, cudaStream_t stream);

/// out [images, before_h + H + after_h, before_w + W + after_w, C] = bf16 x [images, H, W, C] with
/// what the padding mode of each axis puts around it. C must be a multiple of 8.
struct PadImagesTask {
  const void* x = nullptr;
  void* out = nullptr;
  int64_t images = 0;
  int64_t channels = 0;
  std::array<int64_t, 2> input{};
  std::array<int64_t, 2> output{};
  std::array<int64_t, 2> before{};
  std::array<PadMode, 2> mode{};
};
cudaError_t LaunchPadImages(const PadImagesTask& task, cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_CONV_LAYOUT_H_
