#ifndef LTX_KERNELS_CUDA_WINOGRAD_TRANSFORM_H_
#define LTX_KERNELS_CUDA_WINOGRAD_TRANSFORM_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/op_enums.h"

namespace ltx::cuda {

/// Winograd's minimal filtering F(2, 3) along time: two neighbouring outputs of three taps from
/// four products instead of six. With d the four inputs and g the taps,
///   m0 = (d0 - d2) g0            m1 = (d1 + d2) (g0 + g1 + g2) / 2
///   m3 = (d3 - d1) g2            m2 = (d2 - d1) (g0 - g1 + g2) / 2
///   y0 = m0 + m1 + m2            y1 = m1 - m2 + m3
/// Source: Lavin and Gray, "Fast algorithms for convolutional neural networks", 2015, section 4.1
/// (m3 has the other sign there).
inline constexpr int kWinogradProducts = 4;

/// The factors of m1 and m2, each rounded to bf16 once. To make them before each convolution costs
/// one reading of the weight; to keep them would cost two thirds of its memory.
inline constexpr int kWinogradSums = 2;

/// sums [2, taps, out_channels, channels] of a bf16 weight [3, taps, out_channels, channels].
struct WinogradWeightTask {
  const void* weight = nullptr;
  void* sums = nullptr;
  /// Elements of a block, taps * out_channels * channels: whole 16-byte packs. 0: nothing to do.
  int64_t block = 0;
};

/// out [pairs, 4, positions, channels]: the left factors of m0 ... m3 for the pairs of output
/// frames 2 (first_pair + i) and the next. The d are frames of bf16 x [frames, positions,
/// channels], as f32 values silu(norm(x)) where that is asked for; each factor is rounded once.
struct WinogradInputTask {
  const void* x = nullptr;
  void* out = nullptr;
  int64_t frames = 0;
  int64_t positions = 0;
  int64_t channels = 0;
  /// Of the convolution as a whole.
  int64_t output_frames = 0;
  int64_t pad_before = 0;
  PadMode pad_mode = PadMode::kZeros;
  int64_t first_pair = 0;
  int64_t pairs = 0;
  /// x * rsqrt(mean over channels of x^2 + epsilon).
  bool normalizes = false;
  float epsilon = 0.0f;
  bool silu = false;
};

/// True if channels come in whole 16-byte packs and a warp's registers hold those of a position.
bool FitsWinogradInput(int64_t channels);

/// Both at once, which are the same for a GPU: memory to be read and written.
cudaError_t LaunchWinogradTransforms(const WinogradInputTask& input,
                                     const WinogradWeightTask& weight, cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_WINOGRAD_TRANSFORM_H_
