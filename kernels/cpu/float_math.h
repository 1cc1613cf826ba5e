#ifndef LTX_KERNELS_CPU_FLOAT_MATH_H_
#define LTX_KERNELS_CPU_FLOAT_MATH_H_

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/dtype.h"
#include "kernels/op_types.h"

namespace ltx::cpu {

/// Float functions without branches or calls, so that loops over them vectorise. Errors are given
/// in units in the last place (ulp) of the result, measured over all magnitudes.

inline float LoadFloat(const float* p) { return *p; }
inline float LoadFloat(const BFloat16* p) { return static_cast<float>(*p); }
inline void StoreFloat(float value, float* p) { *p = value; }
inline void StoreFloat(float value, BFloat16* p) { *p = BFloat16(value); }

namespace internal {

inline float FloatOfBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline uint32_t BitsOfFloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

}  // namespace internal

/// e^x within 2 ulp; +inf above 88.72, 0 below -104, denormals kept.
inline float Exp(float x) {
  // Beyond these the result is inf or 0 whatever x is; inside, 2^n below stays in range.
  float c = x > 89.0f ? 89.0f : x;
  c = c < -104.0f ? -104.0f : c;
  // Adding 1.5 * 2^23 leaves round(x / ln 2) in the low mantissa bits.
  constexpr float kRound = 12582912.0f;
  const float t = std::fma(c, 1.44269504088896341f, kRound);
  const float n = t - kRound;
  // ln 2 in two parts: the first has few enough bits for n * part to be exact.
  float r = std::fma(n, -0.693145751953125f, c);
  r = std::fma(n, -1.42860677e-6f, r);
  // Taylor coefficients, |r| <= 0.3466: the next term is below 2^-27.
  float p = 1.0f / 5040;
  p = std::fma(p, r, 1.0f / 720);
  p = std::fma(p, r, 1.0f / 120);
  p = std::fma(p, r, 1.0f / 24);
  p = std::fma(p, r, 1.0f / 6);
  p = std::fma(p, r, 0.5f);
  p = std::fma(p, r, 1.0f);
  p = std::fma(p, r, 1.0f);
  // 2^n in two factors, since n reaches 128 and -150.
  const int32_t whole =
      static_cast<int32_t>(internal::BitsOfFloat(t) - internal::BitsOfFloat(kRound));
  const int32_t half = whole >> 1;
  const float a = internal::FloatOfBits(static_cast<uint32_t>(half + 127) << 23);
  const float b = internal::FloatOfBits(static_cast<uint32_t>(whole - half + 127) << 23);
  return p * a * b;
}

/// 1 / (1 + e^-x) within 3 ulp.
inline float Sigmoid(float x) { return 1.0f / (1.0f + Exp(-x)); }

/// tanh x within 3 ulp.
inline float Tanh(float x) {
  const float magnitude = std::fabs(x);
  // Near zero 1 - 2 / (e^2x + 1) cancels; there an odd polynomial (Cephes tanhf) does.
  const float s = x * x;
  float p = -5.70498872745e-3f;
  p = std::fma(p, s, 2.06390887954e-2f);
  p = std::fma(p, s, -5.37397155531e-2f);
  p = std::fma(p, s, 1.33314422036e-1f);
  p = std::fma(p, s, -3.33332819422e-1f);
  const float near = std::fma(p * s, x, x);
  const float far = 1.0f - 2.0f / (Exp(2.0f * magnitude) + 1.0f);
  return magnitude < 0.625f ? near : std::copysign(far, x);
}

inline float Silu(float x) { return x / (1.0f + Exp(-x)); }

/// 0.5 x (1 + tanh u) with u = sqrt(2/pi) (x + 0.044715 x^3), evaluated as x * sigmoid(2u), which
/// does not cancel for negative x.
inline float GeluTanh(float x) {
  const float u = 0.7978845608028654f * std::fma(0.044715f * x * x, x, x);
  return x / (1.0f + Exp(-2.0f * u));
}

template <Activation kActivation>
inline float Activate(float x) {
  if constexpr (kActivation == Activation::kSilu) return Silu(x);
  if constexpr (kActivation == Activation::kGeluTanh) return GeluTanh(x);
  if constexpr (kActivation == Activation::kTanh) return Tanh(x);
  if constexpr (kActivation == Activation::kSigmoid) return Sigmoid(x);
  if constexpr (kActivation == Activation::kExp) return Exp(x);
  return x;
}

template <Activation kActivation>
struct ActivationTag {
  static constexpr Activation value = kActivation;
};

/// Calls f(ActivationTag<a>()) with the run-time value as a template argument.
template <typename F>
auto WithActivation(Activation activation, const F& f) {
  switch (activation) {
    case Activation::kSilu:
      return f(ActivationTag<Activation::kSilu>());
    case Activation::kGeluTanh:
      return f(ActivationTag<Activation::kGeluTanh>());
    case Activation::kTanh:
      return f(ActivationTag<Activation::kTanh>());
    case Activation::kSigmoid:
      return f(ActivationTag<Activation::kSigmoid>());
    case Activation::kExp:
      return f(ActivationTag<Activation::kExp>());
    case Activation::kNone:
      break;
  }
  return f(ActivationTag<Activation::kNone>());
}

}  // namespace ltx::cpu

#endif  // LTX_KERNELS_CPU_FLOAT_MATH_H_
