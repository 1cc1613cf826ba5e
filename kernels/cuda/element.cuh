#ifndef LTX_KERNELS_CUDA_ELEMENT_CUH_
#define LTX_KERNELS_CUDA_ELEMENT_CUH_

#include <cstdint>

#include "kernels/cuda/device_math.cuh"

namespace ltx::cuda {

/// As many elements as one 16-byte access moves.
template <typename T>
using Pack = Packet<T, kPacketSize<T>>;

template <typename T>
__device__ __forceinline__ Pack<T> LoadPack(const T* source) {
  return *reinterpret_cast<const Pack<T>*>(source);
}
template <typename T>
__device__ __forceinline__ void StorePack(T* target, const Pack<T>& pack) {
  *reinterpret_cast<Pack<T>*>(target) = pack;
}

/// The elements of a pack as floats, and back, each rounded once.
template <typename T>
__device__ __forceinline__ void Unpack(const Pack<T>& pack, float (&values)[kPacketSize<T>]) {
#pragma unroll
  for (int i = 0; i < kPacketSize<T>; ++i) values[i] = ToFloat(pack.values[i]);
}
__device__ __forceinline__ Pack<float> MakePack(const float (&values)[4]) {
  return {{values[0], values[1], values[2], values[3]}};
}
__device__ __forceinline__ Pack<BF16> MakePack(const float (&values)[8]) {
  // One instruction rounds two.
  Pack<BF16> pack;
  auto* pairs = reinterpret_cast<__nv_bfloat162*>(pack.values);
#pragma unroll
  for (int i = 0; i < 4; ++i) pairs[i] = __floats2bfloat162_rn(values[2 * i], values[2 * i + 1]);
  return pack;
}

/// 1 / (1 + e^-x) on its way to an element of type T. The fast intrinsics' error, some 2^-21, is
/// far below bf16's rounding, and exact functions would cost more than the memory access.
template <typename T>
__device__ __forceinline__ float SigmoidAs(float x) {
  if constexpr (sizeof(T) == 2) {
    // __fdividef is 0 for divisors above 2^126: right here, where e^-x is that large.
    return __fdividef(1.0f, 1.0f + __expf(-x));
  } else {
    return Sigmoid(x);
  }
}

/// activation(x) on its way to an element of type T, the activation known at run time only.
template <typename T>
__device__ __forceinline__ float ActivateAs(float x, Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kSilu:
      return sizeof(T) == 2 ? x * SigmoidAs<T>(x) : Silu(x);
    case Activation::kGeluTanh:
      return GeluTanh(x);
    case Activation::kTanh:
      return tanhf(x);
    case Activation::kSigmoid:
      return SigmoidAs<T>(x);
    case Activation::kExp:
      return expf(x);
  }
  return x;
}

/// Sum over the `width` lanes (a power of two) that share lane / width.
template <typename Value>
__device__ __forceinline__ Value SumLanes(Value value, int width = 32) {
  for (int offset = width / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}

/// Largest value over a warp.
__device__ __forceinline__ float MaxLanes(float value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  }
  return value;
}

/// Sum over the `team` threads (a power of two, at most 1024) that share threadIdx.x / team.
/// `partial` has room for one float per warp. Every thread of the block must call it; safe to call
/// again at once with another `partial`.
__device__ __forceinline__ float SumTeam(float value, int team, float* partial) {
  value = SumLanes(value, team < 32 ? team : 32);
  if (team <= 32) return value;
  const int warp = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0) partial[warp] = value;
  __syncthreads();
  const int warps = team / 32;
  const int first = warp / warps * warps;
  float sum = 0.0f;
  for (int i = 0; i < warps; ++i) sum += partial[first + i];
  return sum;
}

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_ELEMENT_CUH_
