#ifndef LTX_KERNELS_CUDA_CONV_TILE_H_
#define LTX_KERNELS_CUDA_CONV_TILE_H_

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "kernels/op_enums.h"

namespace ltx::cuda {

/// A bf16 convolution over [T, H, W] on Hopper's tensor cores, stride 1:
/// y = act(conv(x, weight) + bias + residual), sums in f32, one rounding.
struct ConvTileTask {
  const void* x = nullptr;       ///< [batch, input..., channels]
  const void* weight = nullptr;  ///< [taps, out_channels, channels], taps in the order of [T, H, W]
  const float* bias = nullptr;   ///< [out_channels]; null: none
  const void* residual = nullptr;  ///< Like y; null: none.
  void* y = nullptr;               ///< [batch, output..., out_channels]
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t out_channels = 0;
  std::array<int64_t, 3> input{};
  std::array<int64_t, 3> output{};
  std::array<int64_t, 3> kernel{};
  std::array<int64_t, 3> dilation{};
  std::array<int64_t, 3> pad_before{};
  /// H and W are padded with zeros.
  PadMode time_pad = PadMode::kZeros;
  Activation activation = Activation::kNone;
};

/// True if the kernel can run the task: no activation or SiLU; channels a multiple of 8, which
/// makes rows of whole 16-byte packs; a kernel whose reach leaves room for the input of a tile in
/// shared memory; indices of 32 bits. The GPU must have compute capability 9.0 exactly.
bool FitsConvTile(const ConvTileTask& task);

cudaError_t LaunchConvTile(const ConvTileTask& task, int multiprocessors, cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_CONV_TILE_H_
