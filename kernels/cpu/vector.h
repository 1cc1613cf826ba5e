#ifndef LTX_KERNELS_CPU_VECTOR_H_
#define LTX_KERNELS_CPU_VECTOR_H_

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/dtype.h"

namespace ltx::cpu {

/// Eight floats in an AVX register, loaded from and rounded to f32 or bf16 memory of any alignment.
/// The compiler's operators +, -, *, / work on it and round each step; MulAdd fuses.
using Vec = __m256;
inline constexpr int64_t kLanes = 8;

inline Vec Broadcast(float value) { return _mm256_set1_ps(value); }
inline Vec Zero() { return _mm256_setzero_ps(); }
/// a * b + c, rounded once.
inline Vec MulAdd(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
/// c - a * b, rounded once.
inline Vec NegMulAdd(Vec a, Vec b, Vec c) { return _mm256_fnmadd_ps(a, b, c); }
/// `chosen` where the sign bit of `mask` is set, else `other`.
inline Vec Select(Vec mask, Vec chosen, Vec other) { return _mm256_blendv_ps(other, chosen, mask); }
inline Vec SignBit() { return _mm256_set1_ps(-0.0f); }
inline Vec Abs(Vec x) { return _mm256_andnot_ps(SignBit(), x); }

inline Vec Load(const float* source) { return _mm256_loadu_ps(source); }
inline void Store(float* target, Vec value) { _mm256_storeu_ps(target, value); }

inline Vec WidenBFloat16(__m128i bits) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

/// Eight bfloat16 values, rounded to nearest even, NaN kept: the vector form of BFloat16(float).
inline __m128i NarrowToBFloat16(Vec value) {
  const __m256i word = _mm256_castps_si256(value);
  const __m256i upper = _mm256_srli_epi32(word, 16);
  const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_srli_epi32(
      _mm256_add_epi32(word, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
  const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
  const __m256i bits = _mm256_blendv_epi8(rounded, quiet, nan);
  // The pack works on 128-bit halves; the permutation joins their low quarters.
  const __m256i packed = _mm256_packus_epi32(bits, bits);
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08));
}

inline Vec Load(const BFloat16* source) {
  return WidenBFloat16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source)));
}
inline void Store(BFloat16* target, Vec value) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(target), NarrowToBFloat16(value));
}

/// Mask for the first `count` (1 to 7) lanes.
inline __m256i LaneMask(int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/// The first `count` (1 to 7) elements; the other lanes are zero and untouched in memory.
inline Vec LoadPart(const float* source, int64_t count) {
  return _mm256_maskload_ps(source, LaneMask(count));
}
inline Vec LoadPart(const BFloat16* source, int64_t count) {
  alignas(16) uint16_t bits[kLanes] = {};
  std::memcpy(bits, source, static_cast<size_t>(count) * sizeof(uint16_t));
  return WidenBFloat16(_mm_load_si128(reinterpret_cast<const __m128i*>(bits)));
}
inline void StorePart(float* target, Vec value, int64_t count) {
  _mm256_maskstore_ps(target, LaneMask(count), value);
}
inline void StorePart(BFloat16* target, Vec value, int64_t count) {
  alignas(16) uint16_t bits[kLanes];
  _mm_store_si128(reinterpret_cast<__m128i*>(bits), NarrowToBFloat16(value));
  std::memcpy(target, bits, static_cast<size_t>(count) * sizeof(uint16_t));
}

/// Eight elements at a time.
struct FullLanes {
  template <typename T>
  Vec Load(const T* source) const {
    return cpu::Load(source);
  }
  template <typename T>
  void Store(T* target, Vec value) const {
    cpu::Store(target, value);
  }
  /// `value` with the lanes beyond the end replaced by `neutral`.
  Vec Fill(Vec value, Vec /*neutral*/) const { return value; }
};

/// The last, incomplete group of a row.
struct PartLanes {
  int64_t count;
  template <typename T>
  Vec Load(const T* source) const {
    return LoadPart(source, count);
  }
  template <typename T>
  void Store(T* target, Vec value) const {
    StorePart(target, value, count);
  }
  Vec Fill(Vec value, Vec neutral) const {
    return _mm256_blendv_ps(neutral, value, _mm256_castsi256_ps(LaneMask(count)));
  }
};

/// Calls body(offset, lanes) over [0, count) in groups of eight; `lanes` loads and stores the
/// group. Every element goes through the same instructions wherever it lies.
template <typename Body>
inline void ForEachGroup(int64_t count, const Body& body) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) body(i, FullLanes{});
  if (i < count) body(i, PartLanes{count - i});
}

inline float SumLanes(Vec value) {
  const __m128 half = _mm_add_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps(value, 1));
  const __m128 quarter = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(quarter, _mm_movehdup_ps(quarter)));
}
inline float MaxLanes(Vec value) {
  const __m128 half = _mm_max_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps(value, 1));
  const __m128 quarter = _mm_max_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_max_ss(quarter, _mm_movehdup_ps(quarter)));
}

/// Swaps the two elements of every pair.
inline Vec SwapPairs(Vec value) { return _mm256_permute_ps(value, 0xb1); }

}  // namespace ltx::cpu

#endif  // LTX_KERNELS_CPU_VECTOR_H_
