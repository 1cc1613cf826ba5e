#include "kernels/cpu/tile_product.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <utility>

namespace ltx::cpu {
namespace {

template <typename Weight>
using TileKernel = void (*)(const float* panel, int64_t panel_pitch, const Weight* strips,
                            int64_t strip_stride, int64_t depth, float* tile, int64_t tile_pitch);

/// GCC lets a function use instructions beyond the file's options if it says so.
#define LTX_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

LTX_AVX512 inline __m512 LoadWide(const float* p) { return _mm512_loadu_ps(p); }
LTX_AVX512 inline __m512 LoadWide(const BFloat16* p) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  // The zero-masked forms with a full mask: GCC 12 warns about its own plain ones.
  constexpr __mmask16 kAll = 0xffff;
  const __m512i words = _mm512_maskz_cvtepu16_epi32(kAll, bits);
  return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAll, words, 16));
}

inline __m256 LoadHalf(const float* p) { return _mm256_loadu_ps(p); }
inline __m256 LoadHalf(const BFloat16* p) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

/// kRows x (16 kStrips) sums in registers.
template <typename Weight, int kRows, int kStrips>
LTX_AVX512 void Avx512Kernel(const float* panel, int64_t panel_pitch, const Weight* strips,
                             int64_t strip_stride, int64_t depth, float* tile, int64_t tile_pitch) {
  // Every third row has a pointer of its own; the rows between are one or two pitches on, which an
  // address can hold: so all of them fit the general registers.
  const float* base[(kRows + 2) / 3];
#pragma GCC unroll 8
  for (int64_t g = 0; g < (kRows + 2) / 3; ++g) base[g] = panel + 3 * g * panel_pitch;
  __m512 sums[kRows][kStrips];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int s = 0; s < kStrips; ++s) {
      sums[r][s] = _mm512_loadu_ps(tile + r * tile_pitch + s * kStripColumns);
    }
  }
  for (int64_t p = 0; p < depth; ++p) {
    __m512 weights[kStrips];
#pragma GCC unroll 4
    for (int s = 0; s < kStrips; ++s) {
      weights[s] = LoadWide(strips + s * strip_stride + p * kStripColumns);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const __m512 value = _mm512_set1_ps(base[r / 3][p + r % 3 * panel_pitch]);
#pragma GCC unroll 4
      for (int s = 0; s < kStrips; ++s) {
        sums[r][s] = _mm512_fmadd_ps(value, weights[s], sums[r][s]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int s = 0; s < kStrips; ++s) {
      _mm512_storeu_ps(tile + r * tile_pitch + s * kStripColumns, sums[r][s]);
    }
  }
}

/// kRows x 16 sums in registers.
template <typename Weight, int kRows>
void Avx2Kernel(const float* panel, int64_t panel_pitch, const Weight* strip,
                int64_t /*strip_stride*/, int64_t depth, float* tile, int64_t tile_pitch) {
  const float* base[(kRows + 2) / 3];
#pragma GCC unroll 8
  for (int64_t g = 0; g < (kRows + 2) / 3; ++g) base[g] = panel + 3 * g * panel_pitch;
  __m256 low[kRows];
  __m256 high[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    low[r] = _mm256_loadu_ps(tile + r * tile_pitch);
    high[r] = _mm256_loadu_ps(tile + r * tile_pitch + 8);
  }
  for (int64_t p = 0; p < depth; ++p) {
    const __m256 weight_low = LoadHalf(strip + p * kStripColumns);
    const __m256 weight_high = LoadHalf(strip + p * kStripColumns + 8);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m256 value = _mm256_broadcast_ss(base[r / 3] + p + r % 3 * panel_pitch);
      low[r] = _mm256_fmadd_ps(value, weight_low, low[r]);
      high[r] = _mm256_fmadd_ps(value, weight_high, high[r]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    _mm256_storeu_ps(tile + r * tile_pitch, low[r]);
    _mm256_storeu_ps(tile + r * tile_pitch + 8, high[r]);
  }
}

#undef LTX_AVX512

/// Rows in registers for one, two and three strips: 32 registers hold them, the weights and a
/// broadcast value; 8 sums are the least that hides the latency of two multiply-add units.
constexpr int kAvx512Rows[] = {14, 14, 9};
/// 16 registers: 12 sums, two weights, a value.
constexpr int kAvx2Rows = 6;

template <typename Weight, int kStrips, int... kRows>
constexpr auto Avx512Table(std::integer_sequence<int, kRows...> /*rows*/) {
  return std::array<TileKernel<Weight>, sizeof...(kRows)>{
      &Avx512Kernel<Weight, kRows + 1, kStrips>...};
}

template <typename Weight, int... kRows>
constexpr auto Avx2Table(std::integer_sequence<int, kRows...> /*rows*/) {
  return std::array<TileKernel<Weight>, sizeof...(kRows)>{&Avx2Kernel<Weight, kRows + 1>...};
}

/// All rows of `strip_count` strips that one kernel takes at a time; `kernels[n - 1]` does n rows.
template <typename Weight, size_t kTableRows>
void AllRows(const std::array<TileKernel<Weight>, kTableRows>& kernels, const float* panel,
             int64_t panel_pitch, int64_t rows, const Weight* strips, int64_t strip_stride,
             int64_t depth, float* tile, int64_t tile_pitch) {
  constexpr int64_t kMaxRows = kTableRows;
  // Even shares: a short last tile would have too few sums to hide their latency.
  for (int64_t row = 0; row < rows;) {
    const int64_t tiles = (rows - row + kMaxRows - 1) / kMaxRows;
    const int64_t count = (rows - row + tiles - 1) / tiles;
    kernels[count - 1](panel + row * panel_pitch, panel_pitch, strips, strip_stride, depth,
                       tile + row * tile_pitch, tile_pitch);
    row += count;
  }
}

template <typename Weight>
void Accumulate512(const float* panel, int64_t panel_pitch, int64_t rows, const Weight* strips,
                   int64_t strip_stride, int64_t strip_count, int64_t depth, float* tile,
                   int64_t tile_pitch) {
  static constexpr auto kOne =
      Avx512Table<Weight, 1>(std::make_integer_sequence<int, kAvx512Rows[0]>());
  static constexpr auto kTwo =
      Avx512Table<Weight, 2>(std::make_integer_sequence<int, kAvx512Rows[1]>());
  static constexpr auto kThree =
      Avx512Table<Weight, 3>(std::make_integer_sequence<int, kAvx512Rows[2]>());
  for (int64_t strip = 0; strip < strip_count;) {
    const int64_t left = strip_count - strip;
    const Weight* first = strips + strip * strip_stride;
    float* corner = tile + strip * kStripColumns;
    // Pairs, and one triple if the count is odd.
    if (left == 1) {
      AllRows(kOne, panel, panel_pitch, rows, first, strip_stride, depth, corner, tile_pitch);
      strip += 1;
    } else if (left == 3) {
      AllRows(kThree, panel, panel_pitch, rows, first, strip_stride, depth, corner, tile_pitch);
      strip += 3;
    } else {
      AllRows(kTwo, panel, panel_pitch, rows, first, strip_stride, depth, corner, tile_pitch);
      strip += 2;
    }
  }
}

template <typename Weight>
void Accumulate256(const float* panel, int64_t panel_pitch, int64_t rows, const Weight* strips,
                   int64_t strip_stride, int64_t strip_count, int64_t depth, float* tile,
                   int64_t tile_pitch) {
  static constexpr auto kOne = Avx2Table<Weight>(std::make_integer_sequence<int, kAvx2Rows>());
  for (int64_t strip = 0; strip < strip_count; ++strip) {
    AllRows(kOne, panel, panel_pitch, rows, strips + strip * strip_stride, strip_stride, depth,
            tile + strip * kStripColumns, tile_pitch);
  }
}

bool HasAvx512() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return has;
}

template <typename Weight>
void Accumulate(const float* panel, int64_t panel_pitch, int64_t rows, const Weight* strips,
                int64_t strip_stride, int64_t strip_count, int64_t depth, float* tile,
                int64_t tile_pitch) {
  if (HasAvx512()) {
    Accumulate512(panel, panel_pitch, rows, strips, strip_stride, strip_count, depth, tile,
                  tile_pitch);
  } else {
    Accumulate256(panel, panel_pitch, rows, strips, strip_stride, strip_count, depth, tile,
                  tile_pitch);
  }
}

}  // namespace

void AccumulateTile(const float* panel, int64_t panel_pitch, int64_t rows, const float* strips,
                    int64_t strip_stride, int64_t strip_count, int64_t depth, float* tile,
                    int64_t tile_pitch) {
  Accumulate(panel, panel_pitch, rows, strips, strip_stride, strip_count, depth, tile, tile_pitch);
}

void AccumulateTile(const float* panel, int64_t panel_pitch, int64_t rows, const BFloat16* strips,
                    int64_t strip_stride, int64_t strip_count, int64_t depth, float* tile,
                    int64_t tile_pitch) {
  Accumulate(panel, panel_pitch, rows, strips, strip_stride, strip_count, depth, tile, tile_pitch);
}

namespace internal {

void AccumulateTileAvx2(const float* panel, int64_t panel_pitch, int64_t rows, const float* strips,
                        int64_t strip_stride, int64_t strip_count, int64_t depth, float* tile,
                        int64_t tile_pitch) {
  Accumulate256(panel, panel_pitch, rows, strips, strip_stride, strip_count, depth, tile,
                tile_pitch);
}

}  // namespace internal

}  // namespace ltx::cpu
