#ifndef LTX_KERNELS_CUDA_PHILOX_NORMALS_H_
#define LTX_KERNELS_CUDA_PHILOX_NORMALS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ltx::cuda {

/// Standard normals as PyTorch's CUDA generator draws them in one call.
struct PhiloxTask {
  enum class Format : uint8_t {
    kF32,
    kBF16,  ///< The f32 draws, rounded.
    kF64,
  };
  void* out = nullptr;
  int64_t count = 0;
  Format format = Format::kF32;
  uint64_t seed = 0;
  uint64_t offset = 0;  ///< Of the stream, a multiple of 4.
  /// Of the GPU that the stream stands for: together they bound PyTorch's grid, which decides the
  /// order of elements.
  int64_t multiprocessors = 0;
  int64_t threads_per_multiprocessor = 0;
};
cudaError_t LaunchPhiloxNormals(const PhiloxTask& task, cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_PHILOX_NORMALS_H_
