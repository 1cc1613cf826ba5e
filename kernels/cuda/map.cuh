#ifndef LTX_KERNELS_CUDA_MAP_CUH_
#define LTX_KERNELS_CUDA_MAP_CUH_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/device_math.cuh"

namespace ltx::cuda {

/// Elementwise kernels: y[i] = f(x0[i], x1[i], ...) with one access of 16 bytes per operand and
/// thread where all addresses allow it.

inline constexpr int kMapThreads = 256;

template <typename T, int kInputs>
struct MapInputs {
  const T* of[kInputs];
};

template <int kCount, typename T, int kInputs, typename Function>
__global__ void __launch_bounds__(kMapThreads)
    MapKernel(MapInputs<T, kInputs> inputs, T* y, int64_t count, Function f) {
  const int64_t begin = (int64_t{blockIdx.x} * kMapThreads + threadIdx.x) * kCount;
  if (begin >= count) return;
  float v[kInputs];
  if (kCount > 1 && begin + kCount <= count) {
    Packet<T, kCount> in[kInputs];
#pragma unroll
    for (int k = 0; k < kInputs; ++k) {
      in[k] = *reinterpret_cast<const Packet<T, kCount>*>(inputs.of[k] + begin);
    }
    Packet<T, kCount> out;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
#pragma unroll
      for (int k = 0; k < kInputs; ++k) v[k] = ToFloat(in[k].values[i]);
      out.values[i] = FromFloat<T>(f(v, begin + i));
    }
    *reinterpret_cast<Packet<T, kCount>*>(y + begin) = out;
    return;
  }
  for (int64_t i = begin; i < count && i < begin + kCount; ++i) {
    for (int k = 0; k < kInputs; ++k) v[k] = ToFloat(inputs.of[k][i]);
    y[i] = FromFloat<T>(f(v, i));
  }
}

/// f(const float* v, int64_t index) -> float.
template <typename T, int kInputs, typename Function>
void LaunchMap(const MapInputs<T, kInputs>& inputs, T* y, int64_t count, const Function& f,
               cudaStream_t stream) {
  if (count == 0) return;
  bool aligned = IsAligned16(y);
  for (const T* input : inputs.of) aligned = aligned && IsAligned16(input);
  const int64_t per_block = int64_t{kMapThreads} * (aligned ? kPacketSize<T> : 1);
  const auto blocks = static_cast<unsigned>((count + per_block - 1) / per_block);
  if (aligned) {
    MapKernel<kPacketSize<T>><<<blocks, kMapThreads, 0, stream>>>(inputs, y, count, f);
  } else {
    MapKernel<1><<<blocks, kMapThreads, 0, stream>>>(inputs, y, count, f);
  }
}

/// Untyped forms, for f32 and bf16.
template <typename Function>
void LaunchMap(DType dtype, const void* x, void* y, int64_t count, const Function& f,
               cudaStream_t stream) {
  DispatchElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    LaunchMap(MapInputs<T, 1>{{static_cast<const T*>(x)}}, static_cast<T*>(y), count, f, stream);
  });
}
template <typename Function>
void LaunchMap(DType dtype, const void* a, const void* b, void* y, int64_t count, const Function& f,
               cudaStream_t stream) {
  DispatchElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    LaunchMap(MapInputs<T, 2>{{static_cast<const T*>(a), static_cast<const T*>(b)}},
              static_cast<T*>(y), count, f, stream);
  });
}

/// index / divisor, and what is left, without a 64-bit division where 32 bits do.
struct Division {
  int64_t quotient;
  int64_t remainder;
};
__device__ inline Division Divide(int64_t index, int64_t divisor) {
  if (((index | divisor) >> 32) == 0) {
    const auto i = static_cast<uint32_t>(index);
    const auto d = static_cast<uint32_t>(divisor);
    return {i / d, i % d};
  }
  return {index / divisor, index % divisor};
}

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_MAP_CUH_
