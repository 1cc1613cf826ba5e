#ifndef LTX_KERNELS_CUDA_DEVICE_MATH_CUH_
#define LTX_KERNELS_CUDA_DEVICE_MATH_CUH_

#include <cuda_bf16.h>

#include <cstdint>

#include "kernels/dtype.h"
#include "kernels/op_enums.h"

namespace ltx::cuda {

/// What kernels share: elements, packets of them, and the pointwise functions.

using BF16 = __nv_bfloat16;

__device__ inline float ToFloat(float value) { return value; }
__device__ inline float ToFloat(BF16 value) { return __bfloat162float(value); }

/// Rounds to nearest even.
template <typename T>
__device__ T FromFloat(float value);
template <>
__device__ inline float FromFloat<float>(float value) {
  return value;
}
template <>
__device__ inline BF16 FromFloat<BF16>(float value) {
  return __float2bfloat16_rn(value);
}

/// `kCount` neighbouring elements, moved by one access if their address is a multiple of the size.
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Packet {
  T values[kCount];
};

/// Elements of one 16-byte access, the widest there is.
template <typename T>
inline constexpr int kPacketSize = 16 / static_cast<int>(sizeof(T));

inline bool IsAligned16(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % 16 == 0;
}

/// The activations of kernels/op_enums.h, in forms that neither overflow nor cancel.
__device__ inline float Sigmoid(float x) {
  const float e = expf(-fabsf(x));
  return (x < 0.0f ? e : 1.0f) / (e + 1.0f);
}

__device__ inline float Silu(float x) {
  const float e = expf(-fabsf(x));
  return (x < 0.0f ? x * e : x) / (e + 1.0f);
}

/// 0.5 x (1 + tanh(u)) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3).
__device__ inline float GeluTanh(float x) {
  const float cubic = 0.044715f * x * x;
  const float twice_u = 1.59576912160573071f * fmaf(cubic, x, x);
  const float e = expf(-fabsf(twice_u));
  return (twice_u < 0.0f ? x * e : x) / (e + 1.0f);
}

template <Activation kActivation>
__device__ inline float Activate(float x) {
  if constexpr (kActivation == Activation::kSilu) return Silu(x);
  if constexpr (kActivation == Activation::kGeluTanh) return GeluTanh(x);
  if constexpr (kActivation == Activation::kTanh) return tanhf(x);
  if constexpr (kActivation == Activation::kSigmoid) return Sigmoid(x);
  if constexpr (kActivation == Activation::kExp) return expf(x);
  return x;
}

/// A compile-time constant as an argument.
template <Activation kValue>
struct ActivationConstant {
  static constexpr Activation value = kValue;
};

/// Host side: calls body(ActivationConstant<a>{}), so that a kernel is instantiated for each.
template <typename Body>
void DispatchActivation(Activation activation, const Body& body) {
  switch (activation) {
    case Activation::kNone:
      return body(ActivationConstant<Activation::kNone>{});
    case Activation::kSilu:
      return body(ActivationConstant<Activation::kSilu>{});
    case Activation::kGeluTanh:
      return body(ActivationConstant<Activation::kGeluTanh>{});
    case Activation::kTanh:
      return body(ActivationConstant<Activation::kTanh>{});
    case Activation::kSigmoid:
      return body(ActivationConstant<Activation::kSigmoid>{});
    case Activation::kExp:
      return body(ActivationConstant<Activation::kExp>{});
  }
}

/// Host side: calls body with a zero of the element type of an f32 or bf16 tensor.
template <typename Body>
void DispatchElement(DType dtype, const Body& body) {
  if (dtype == DType::kBF16) return body(BF16{});
  body(float{});
}

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_DEVICE_MATH_CUH_
