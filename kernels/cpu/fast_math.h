#ifndef LTX_KERNELS_CPU_FAST_MATH_H_
#define LTX_KERNELS_CPU_FAST_MATH_H_

#include <cmath>
#include <limits>

#include "kernels/cpu/vector.h"
#include "kernels/op_types.h"

namespace ltx::cpu {

/// Elementary functions of eight floats at a time: a few units in the last place over the whole
/// range, infinities and NaN as in the C library. The polynomials of exp and tanh are those of
/// Cephes (S. L. Moshier).

/// exp(r) for |r| <= ln(2) / 2.
inline Vec ExpReduced(Vec r) {
  Vec p = Broadcast(1.9875691500e-4f);
  p = MulAdd(p, r, Broadcast(1.3981999507e-3f));
  p = MulAdd(p, r, Broadcast(8.3334519073e-3f));
  p = MulAdd(p, r, Broadcast(4.1665795894e-2f));
  p = MulAdd(p, r, Broadcast(1.6666665459e-1f));
  p = MulAdd(p, r, Broadcast(5.0000001201e-1f));
  return MulAdd(p, r * r, r) + Broadcast(1.0f);
}

/// x = n ln 2 + r with integral n; ln 2 in two parts, so that n times the first is exact.
inline Vec ReduceByLn2(Vec x, Vec* n) {
  *n = _mm256_round_ps(x * Broadcast(1.44269504088896341f),
                       _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const Vec r = NegMulAdd(*n, Broadcast(0.693359375f), x);
  return NegMulAdd(*n, Broadcast(-2.12194440e-4f), r);
}

/// 2^n for integral n in [-126, 127].
inline Vec PowerOfTwo(__m256i n) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

/// e^x, denormal results included.
inline Vec Exp(Vec x) {
  // Beyond these the result is 0 or infinity. The operand order lets NaN through.
  const Vec clamped = _mm256_max_ps(Broadcast(-104.0f), _mm256_min_ps(Broadcast(89.0f), x));
  Vec n;
  const Vec y = ExpReduced(ReduceByLn2(clamped, &n));
  // Two factors: n reaches 128 and -150, which one exponent field does not hold.
  const __m256i whole = _mm256_cvtps_epi32(n);
  const __m256i half = _mm256_srai_epi32(whole, 1);
  return y * PowerOfTwo(half) * PowerOfTwo(_mm256_sub_epi32(whole, half));
}

/// e^x for x <= 0, results below the normal range flushed to zero: the weights of a softmax, where
/// they are beside a 1.
inline Vec ExpNonPositive(Vec x) {
  // ln(2^-126), rounded towards zero.
  const Vec lowest = Broadcast(-87.33654f);
  Vec n;
  const Vec y = ExpReduced(ReduceByLn2(_mm256_max_ps(lowest, x), &n));
  const Vec scaled = y * PowerOfTwo(_mm256_cvtps_epi32(n));
  return _mm256_andnot_ps(_mm256_cmp_ps(x, lowest, _CMP_LT_OQ), scaled);
}

/// 1 / (1 + e^-x).
inline Vec Sigmoid(Vec x) {
  const Vec e = Exp(_mm256_or_ps(Abs(x), SignBit()));
  return Select(x, e, Broadcast(1.0f)) / (e + Broadcast(1.0f));
}

/// x * sigmoid(t), for products that vanish long before the sigmoid does. Where e^t is below the
/// normal range they are zero: steps through denormals would cost the processor a hundred times the
/// rest, and large negative arguments are common.
inline Vec TimesSigmoid(Vec x, Vec t) {
  const Vec e = ExpNonPositive(_mm256_or_ps(Abs(t), SignBit()));
  return Select(t, x * e, x) / (e + Broadcast(1.0f));
}

/// x / (1 + e^-x).
inline Vec Silu(Vec x) { return TimesSigmoid(x, x); }

inline Vec Tanh(Vec x) {
  const Vec magnitude = Abs(x);
  const Vec s = x * x;
  Vec p = Broadcast(-5.70498872745e-3f);
  p = MulAdd(p, s, Broadcast(2.06390887954e-2f));
  p = MulAdd(p, s, Broadcast(-5.37397155531e-2f));
  p = MulAdd(p, s, Broadcast(1.33314422036e-1f));
  p = MulAdd(p, s, Broadcast(-3.33332819422e-1f));
  const Vec near_zero = MulAdd(p, s * x, x);
  const Vec far =
      Broadcast(1.0f) - Broadcast(2.0f) / (Exp(magnitude + magnitude) + Broadcast(1.0f));
  const Vec signed_far = _mm256_or_ps(far, _mm256_and_ps(x, SignBit()));
  return Select(_mm256_cmp_ps(magnitude, Broadcast(0.625f), _CMP_LT_OQ), near_zero, signed_far);
}

/// 0.5 x (1 + tanh(u)) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3): no cancellation for
/// negative x.
inline Vec GeluTanh(Vec x) {
  const Vec cubic = Broadcast(0.044715f) * x * x;
  const Vec twice_u = Broadcast(1.59576912160573071f) * MulAdd(cubic, x, x);
  return TimesSigmoid(x, twice_u);
}

/// Largest |x| for which Sin reduces exactly enough: n = x / pi stays below 2^15, so n times each
/// part of pi loses nothing that matters.
inline constexpr float kSinLimit = 65536.0f;

/// sin(x) for |x| <= kSinLimit.
inline Vec SinBounded(Vec x) {
  const Vec n = _mm256_round_ps(x * Broadcast(0.318309886183790672f),
                                _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  // pi in three parts; the first product cancels exactly against x.
  Vec r = NegMulAdd(n, Broadcast(0x1.921fb6p+1f), x);
  r = NegMulAdd(n, Broadcast(-0x1.777a5cp-24f), r);
  r = NegMulAdd(n, Broadcast(-0x1.ee59dap-49f), r);
  // (sin r - r) / r^3 in r^2, interpolated at Chebyshev nodes on [0, 1.6^2]: relative error of sin
  // below 2e-8.
  const Vec s = r * r;
  Vec p = Broadcast(-2.404443400e-08f);
  p = MulAdd(p, s, Broadcast(2.753489071e-06f));
  p = MulAdd(p, s, Broadcast(-1.984106493e-04f));
  p = MulAdd(p, s, Broadcast(8.333332837e-03f));
  p = MulAdd(p, s, Broadcast(-1.666666716e-01f));
  const Vec y = MulAdd(p, s * r, r);
  // Odd n: half a period on.
  const __m256i sign = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 31);
  return _mm256_xor_ps(y, _mm256_castsi256_ps(sign));
}

/// True if every lane is within kSinLimit (false for NaN).
inline bool WithinSinLimit(Vec x) {
  return _mm256_movemask_ps(_mm256_cmp_ps(Abs(x), Broadcast(kSinLimit), _CMP_LE_OQ)) == 0xff;
}

/// sin(x); arguments beyond kSinLimit, infinities and NaN go to the C library.
inline Vec Sin(Vec x) {
  if (__builtin_expect(static_cast<long>(WithinSinLimit(x)), 1) != 0) return SinBounded(x);
  alignas(32) float values[kLanes];
  _mm256_store_ps(values, x);
  for (float& value : values) value = std::sin(value);
  return _mm256_load_ps(values);
}

/// The activations as functors of eight floats.
struct IdentityFn {
  Vec operator()(Vec x) const { return x; }
};
struct SiluFn {
  Vec operator()(Vec x) const { return Silu(x); }
};
struct GeluTanhFn {
  Vec operator()(Vec x) const { return GeluTanh(x); }
};
struct TanhFn {
  Vec operator()(Vec x) const { return Tanh(x); }
};
struct SigmoidFn {
  Vec operator()(Vec x) const { return Sigmoid(x); }
};
struct ExpFn {
  Vec operator()(Vec x) const { return Exp(x); }
};

/// Calls body with the functor of `activation`, so that the choice is made outside the loops.
template <typename Body>
auto DispatchActivation(Activation activation, const Body& body) {
  switch (activation) {
    case Activation::kSilu:
      return body(SiluFn{});
    case Activation::kGeluTanh:
      return body(GeluTanhFn{});
    case Activation::kTanh:
      return body(TanhFn{});
    case Activation::kSigmoid:
      return body(SigmoidFn{});
    case Activation::kExp:
      return body(ExpFn{});
    case Activation::kNone:
      break;
  }
  return body(IdentityFn{});
}

}  // namespace ltx::cpu

#endif  // LTX_KERNELS_CPU_FAST_MATH_H_
