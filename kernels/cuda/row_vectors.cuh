#ifndef LTX_KERNELS_CUDA_ROW_VECTORS_CUH_
#define LTX_KERNELS_CUDA_ROW_VECTORS_CUH_

#include <cstdint>

#include "kernels/cuda/row_kernels.h"

namespace ltx::cuda {

/// The vector of a token; there must be vectors.
template <typename T>
__device__ __forceinline__ const T* RowOf(const RowVectorsView& view, int64_t token) {
  int64_t row = 0;
  if (view.index != nullptr) {
    row = min(max(int64_t{view.index[token]}, int64_t{0}), view.count - 1);
  } else if (view.tokens_per_row != 0) {
    row = token / view.tokens_per_row;
  }
  return static_cast<const T*>(view.rows) + row * view.stride;
}

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_ROW_VECTORS_CUH_
