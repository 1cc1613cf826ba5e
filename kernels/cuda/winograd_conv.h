#ifndef LTX_KERNELS_CUDA_WINOGRAD_CONV_H_
#define LTX_KERNELS_CUDA_WINOGRAD_CONV_H_

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

namespace ltx::cuda {

/// A bf16 convolution with a kernel of 3 x 3 x 3 at stride 1 on Hopper's tensor cores, by
/// Winograd's filtering along time (kernels/cuda/winograd_transform.h): two thirds of the products
/// of the direct form. H and W are padded with one line of zeros on each side, time as the
/// transform did. y = conv(x, weight) + bias + residual, sums in f32, one rounding; then channels
/// may move to positions as Device::DepthToSpace says. One batch row; a task makes some of the
/// frames.
struct WinogradConvTask {
  const void* factors = nullptr;  ///< [pairs, 4, height, width, channels], from the transform
  const void* weight = nullptr;   ///< [3, 9, out_channels, channels]
  const void* sums = nullptr;     ///< [2, 9, out_channels, channels], from the weight's transform
  const float* bias = nullptr;    ///< [out_channels]; null: none
  /// Like y, whose memory it may be; null: none. Only without depth-to-space.
  const void* residual = nullptr;
  /// [frames, height, width, out_channels], or what depth-to-space makes of that.
  void* y = nullptr;
  int64_t channels = 0;
  int64_t out_channels = 0;
  int64_t frames = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t first_pair = 0;
  int64_t pairs = 0;
  std::array<int, 3> depth_to_space{1, 1, 1};
  bool drop_first_frame = false;
};

/// True if rows are made of whole 16-byte packs before and after depth-to-space, the factors are at
/// most 2 each, no dimension is empty and indices have 32 bits. The GPU must have compute
/// capability 9.0 exactly.
bool FitsWinogradConv(const WinogradConvTask& task);

/// Rounds that the GPU's processors make over the tiles of `pairs` pairs: the time of a task in
/// units of its size.
int64_t WinogradRounds(const WinogradConvTask& task, int64_t pairs, int multiprocessors);

cudaError_t LaunchWinogradConv(const WinogradConvTask& task, int multiprocessors,
                               cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_WINOGRAD_CONV_H_
