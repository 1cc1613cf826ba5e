#ifndef LTX_KERNELS_CUDA_CONV_GATHER_H_
#define LTX_KERNELS_CUDA_CONV_GATHER_H_

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "kernels/conv_axis.h"
#include "kernels/op_enums.h"

namespace ltx::cuda {

/// Any convolution over [T, H, W], by ordinary multiply-adds of f32:
/// y = act(conv(x, weight) + bias + residual), one rounding.
struct ConvGatherTask {
  const void* x = nullptr;         ///< [batch, input..., channels]
  const void* weight = nullptr;    ///< [taps, out_channels, channels]
  const float* bias = nullptr;     ///< [out_channels]; null: none
  const void* residual = nullptr;  ///< Like y; null: none.
  void* y = nullptr;               ///< [batch, output..., out_channels]
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t out_channels = 0;
  std::array<ConvAxis, 3> axes{};
  bool bf16 = false;
  Activation activation = Activation::kNone;
  /// For a transposed convolution over W its stride, and the output elements cut off in front:
  /// phase f writes the output at o * phases + f - crop, and its tap i is tap f + i * phases of
  /// `weight`, which has `phase_taps` of them. axes[2] describes one phase.
  int64_t phases = 1;
  int64_t crop = 0;
  int64_t phase_taps = 0;
  int64_t phase_output = 0;  ///< Output extent of W over all phases.
};
cudaError_t LaunchConvGather(const ConvGatherTask& task, cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_CONV_GATHER_H_
