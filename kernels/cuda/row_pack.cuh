#ifndef LTX_KERNELS_CUDA_ROW_PACK_CUH_
#define LTX_KERNELS_CUDA_ROW_PACK_CUH_

#include "kernels/cuda/element.cuh"
#include "kernels/cuda/norm_rope_task.h"

// What the norms of rows do with packs.

namespace ltx::cuda {

template <typename T>
__device__ __forceinline__ float SumOfSquares(const Pack<T>& pack) {
  float value[kPacketSize<T>];
  Unpack(pack, value);
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kPacketSize<T>; ++i) sum += value[i] * value[i];
  return sum;
}

/// values <- pack * inverse * (base + weight).
template <typename T>
__device__ __forceinline__ void ScalePack(const Pack<T>& pack, float inverse, const T* weight,
                                          float base, float* values) {
  if (weight == nullptr) {
#pragma unroll
    for (int i = 0; i < kPacketSize<T>; ++i) values[i] = ToFloat(pack.values[i]) * inverse;
    return;
  }
  const Pack<T> factors = LoadPack(weight);
#pragma unroll
  for (int i = 0; i < kPacketSize<T>; ++i) {
    values[i] = ToFloat(pack.values[i]) * inverse * (base + ToFloat(factors.values[i]));
  }
}

/// Whether packs of `count` elements of the tables are read by one access each.
inline bool IsPacked(const RopeView& rope, int64_t count) {
  return rope.kind == RopeView::Kind::kNone ||
         (IsAligned16(rope.cos) && IsAligned16(rope.sin) && rope.batch_stride % count == 0 &&
          rope.head_stride % count == 0 && rope.token_stride % count == 0);
}

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_ROW_PACK_CUH_
