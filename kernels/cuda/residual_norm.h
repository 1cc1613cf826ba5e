#ifndef LTX_KERNELS_CUDA_RESIDUAL_NORM_H_
#define LTX_KERNELS_CUDA_RESIDUAL_NORM_H_

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "kernels/cuda/row_kernels.h"

namespace ltx::cuda {

/// x += update * gate for the rows [first, last), in place, then y = x * inverse * (1 + scale) +
/// shift for each reading, with inverse = 1 / sqrt(mean(x^2) + epsilon) of the rounded sum. A null
/// gate, scale or shift stands for a factor of 1 or a term of 0. All operands are dense, and f32 or
/// all bf16 if `bf16`.
struct ResidualNormTask {
  /// A state is read by self-, text and both cross-modal attentions and the feed-forward, never by
  /// more than three of them at once.
  static constexpr int kMaxReadings = 4;
  struct Reading {
    void* y = nullptr;
    RowVectorsView scale;
    RowVectorsView shift;
  };
  void* x = nullptr;
  int64_t rows = 0;
  int64_t width = 0;
  bool bf16 = false;
  float epsilon = 0.0f;
  /// Row `first` of x meets row 0 of the update, and token 0 of the gate.
  const void* update = nullptr;
  int64_t first = 0;
  int64_t last = 0;
  RowVectorsView gate;
  int readings = 0;
  std::array<Reading, kMaxReadings> reading;
};
cudaError_t LaunchResidualNorm(const ResidualNormTask& task, cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_RESIDUAL_NORM_H_
