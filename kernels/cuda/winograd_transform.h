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

/// Kernel blocks of a prepared weight: g0, g1, g2, so that it serves direct convolutions too, then
/// the two sums. Each is rounded to bf16 once.
inline constexpr int kWinogradBlocks = 5;

/// Fills the last two blocks of a bf16 weight [5, taps, out_channels, channels] from its first
/// three.
struct WinogradWeightTask {
  void* weight = nullptr;
  int64_t block = 0;  ///< Elements: taps * out_channels * channels.
};
cudaError_t LaunchWinogradWeight(const WinogradWeightTask& task, cudaStream_t stream);

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

cudaError_t LaunchWinogradInput(const WinogradInputTask& task, cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_WINOGRAD_TRANSFORM_H_
