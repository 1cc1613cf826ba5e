#ifndef LTX_KERNELS_CUDA_SNAKE_KERNELS_H_
#define LTX_KERNELS_CUDA_SNAKE_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ltx::cuda {

/// Device::AntiAliasedSnake. x and y [batch, length, channels] f32, filters [12], alpha and
/// inverse_beta [channels].
struct SnakeTask {
  const float* x = nullptr;
  float* y = nullptr;
  const float* up = nullptr;
  const float* down = nullptr;
  const float* alpha = nullptr;
  const float* inverse_beta = nullptr;
  int64_t batch = 0;
  int64_t length = 0;
  int64_t channels = 0;
};
cudaError_t LaunchSnake(const SnakeTask& task, cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_SNAKE_KERNELS_H_
