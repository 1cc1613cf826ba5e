#include <cuda_fp16.h>

#include <type_traits>

#include "kernels/cuda/cast.h"
#include "kernels/cuda/device_math.cuh"

namespace ltx::cuda {
namespace {

constexpr int kThreads = 256;

/// What an element is on the way to another type: float if that holds it exactly, else double or
/// the integer itself.
__device__ float Widened(float value) { return value; }
__device__ float Widened(BF16 value) { return __bfloat162float(value); }
__device__ float Widened(__half value) { return __half2float(value); }
__device__ float Widened(uint8_t value) { return value; }
__device__ float Widened(int8_t value) { return value; }
__device__ double Widened(double value) { return value; }
__device__ double Widened(int32_t value) { return value; }
__device__ int64_t Widened(int64_t value) { return value; }

template <typename Wide>
__device__ void Narrow(Wide value, float* to) {
  *to = static_cast<float>(value);
}
template <typename Wide>
__device__ void Narrow(Wide value, double* to) {
  *to = static_cast<double>(value);
}
__device__ void Narrow(float value, BF16* to) { *to = __float2bfloat16_rn(value); }
__device__ void Narrow(float value, __half* to) { *to = __float2half_rn(value); }
// Both round a double once.
__device__ void Narrow(double value, BF16* to) { *to = __double2bfloat16(value); }
__device__ void Narrow(double value, __half* to) { *to = __double2half(value); }

template <int kCount, typename From, typename To>
__global__ void __launch_bounds__(kThreads) CastKernel(const From* x, To* y, int64_t count) {
  const int64_t begin = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kCount;
  if (kCount > 1 && begin + kCount <= count) {
    const Packet<From, kCount> in = *reinterpret_cast<const Packet<From, kCount>*>(x + begin);
    Packet<To, kCount> out;
#pragma unroll
    for (int i = 0; i < kCount; ++i) Narrow(Widened(in.values[i]), &out.values[i]);
    *reinterpret_cast<Packet<To, kCount>*>(y + begin) = out;
    return;
  }
  for (int64_t i = begin; i < count && i < begin + kCount; ++i) Narrow(Widened(x[i]), &y[i]);
}

template <typename From, typename To>
bool Convert(const void* x, void* y, int64_t count, cudaStream_t stream) {
  if constexpr (std::is_same_v<From, int64_t> && sizeof(To) == 2) {
    return false;  // It would round twice.
  } else {
    if (count == 0) return true;
    constexpr int kCount = 16 / (sizeof(From) > sizeof(To) ? sizeof(From) : sizeof(To));
    const auto* from = static_cast<const From*>(x);
    auto* to = static_cast<To*>(y);
    const bool aligned = IsAligned16(x) && IsAligned16(y);
    const int64_t per_block = int64_t{kThreads} * (aligned ? kCount : 1);
    const auto blocks = static_cast<unsigned>((count + per_block - 1) / per_block);
    if (aligned) {
      CastKernel<kCount><<<blocks, kThreads, 0, stream>>>(from, to, count);
    } else {
      CastKernel<1><<<blocks, kThreads, 0, stream>>>(from, to, count);
    }
    return true;
  }
}

template <typename From>
bool ConvertFrom(const void* x, void* y, DType to, int64_t count, cudaStream_t stream) {
  switch (to) {
    case DType::kF32:
      return Convert<From, float>(x, y, count, stream);
    case DType::kF64:
      return Convert<From, double>(x, y, count, stream);
    case DType::kBF16:
      return Convert<From, BF16>(x, y, count, stream);
    case DType::kF16:
      return Convert<From, __half>(x, y, count, stream);
    default:
      return false;
  }
}

}  // namespace

bool LaunchCast(const void* x, DType from, void* y, DType to, int64_t count, cudaStream_t stream) {
  switch (from) {
    case DType::kF32:
      return ConvertFrom<float>(x, y, to, count, stream);
    case DType::kF64:
      return ConvertFrom<double>(x, y, to, count, stream);
    case DType::kBF16:
      return ConvertFrom<BF16>(x, y, to, count, stream);
    case DType::kF16:
      return ConvertFrom<__half>(x, y, to, count, stream);
    case DType::kU8:
    case DType::kBool:
      return ConvertFrom<uint8_t>(x, y, to, count, stream);
    case DType::kI8:
      return ConvertFrom<int8_t>(x, y, to, count, stream);
    case DType::kI32:
      return ConvertFrom<int32_t>(x, y, to, count, stream);
    case DType::kI64:
      return ConvertFrom<int64_t>(x, y, to, count, stream);
    default:
      return false;
  }
}

}  // namespace ltx::cuda
