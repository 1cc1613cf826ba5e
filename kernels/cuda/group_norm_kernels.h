#ifndef LTX_KERNELS_CUDA_GROUP_NORM_KERNELS_H_
#define LTX_KERNELS_CUDA_GROUP_NORM_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/op_enums.h"

namespace ltx::cuda {

/// y = act((x - mean) / sqrt(variance + epsilon) * weight + bias), mean and variance over the
/// channels of a group and all positions of a batch row. x and y [batch, positions, channels],
/// weight and bias [channels]; f32, or all bf16 if `bf16`.
struct GroupNormTask {
  const void* x = nullptr;
  void* y = nullptr;
  const void* weight = nullptr;
  const void* bias = nullptr;
  int64_t batch = 0;
  int64_t positions = 0;
  int64_t channels = 0;
  int64_t groups = 1;
  bool bf16 = false;
  float epsilon = 0.0f;
  Activation activation = Activation::kNone;
};

/// Scratch that LaunchGroupNorm needs.
int64_t GroupNormWorkspaceBytes(const GroupNormTask& task);
cudaError_t LaunchGroupNorm(const GroupNormTask& task, void* workspace, cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_GROUP_NORM_KERNELS_H_
