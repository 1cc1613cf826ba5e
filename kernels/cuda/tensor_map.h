#ifndef LTX_KERNELS_CUDA_TENSOR_MAP_H_
#define LTX_KERNELS_CUDA_TENSOR_MAP_H_

#include <cuda.h>

#include <cstdint>
#include <initializer_list>

namespace ltx::cuda {

/// An axis of a bf16 tensor as the copy engine sees it. The innermost axis comes first and has
/// stride 1.
struct TensorMapAxis {
  int64_t extent = 1;
  /// Elements from one index to the next, a multiple of 8: the engine moves 16-byte packs.
  int64_t stride = 1;
  /// Indices that one copy moves, at most 256.
  int box = 1;
};

/// Makes a map of up to five axes whose boxes lie in shared memory with the 128-byte swizzle. What
/// is read outside of the tensor is zero, what is written there is dropped. False if the driver
/// refuses it or is too old to have such maps.
bool EncodeTensorMap(const void* data, std::initializer_list<TensorMapAxis> axes, CUtensorMap* map);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_TENSOR_MAP_H_
