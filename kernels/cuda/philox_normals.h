#ifndef LTX_KERNELS_CUDA_PHILOX_NORMALS_H_
#define LTX_KERNELS_CUDA_PHILOX_NORMALS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ltx::cuda {

/// The standard normals that PyTorch's CUDA generator draws in one call, as PhiloxDraw in
/// kernels/op_types.h describes them.
struct PhiloxTask {
  void* out = nullptr;
  bool f64 = false;  ///< Else f32.
  uint64_t seed = 0;
  uint64_t offset = 0;
  int64_t count = 0;
  int64_t multiprocessors = 0;
  int64_t threads_per_multiprocessor = 0;
};
cudaError_t LaunchPhiloxNormals(const PhiloxTask& task, cudaStream_t stream);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_PHILOX_NORMALS_H_
