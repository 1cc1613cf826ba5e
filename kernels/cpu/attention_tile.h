#ifndef LTX_KERNELS_CPU_ATTENTION_TILE_H_
#define LTX_KERNELS_CPU_ATTENTION_TILE_H_

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/vector.h"

namespace ltx::cpu {

/// Small matrix products in cache, on which attention is built: C (+)= A B with B packed in panels
/// of kPanel columns, one after the other, each [depth, kPanel].

/// Columns of a panel. Six rows times two vectors of sums, two vectors of B and one broadcast of A
/// fill fifteen of the sixteen AVX registers.
inline constexpr int64_t kPanel = 2 * kLanes;
inline constexpr int64_t kRowsInRegisters = 6;

inline constexpr int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// c[r, 0..8 kVectors) (+)= sum over k of a[r, k] panel[k, .] for kRows rows.
template <int kRows, int kVectors>
inline void MultiplyRows(const float* a, int64_t a_stride, const float* panel, int64_t depth,
                         float* c, int64_t c_stride, bool accumulate) {
  Vec sums[kRows][kVectors];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = accumulate ? Load(c + r * c_stride + v * kLanes) : Zero();
    }
  }
  for (int64_t k = 0; k < depth; ++k) {
    Vec b[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) b[v] = Load(panel + k * kPanel + v * kLanes);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const Vec value = Broadcast(a[r * a_stride + k]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[r][v] = MulAdd(value, b[v], sums[r][v]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) Store(c + r * c_stride + v * kLanes, sums[r][v]);
  }
}

/// All `rows` rows against one panel.
template <int kVectors>
void MultiplyPanel(const float* a, int64_t a_stride, int64_t rows, const float* panel,
                   int64_t depth, float* c, int64_t c_stride, bool accumulate) {
  int64_t r = 0;
  for (; r + kRowsInRegisters <= rows; r += kRowsInRegisters) {
    MultiplyRows<kRowsInRegisters, kVectors>(a + r * a_stride, a_stride, panel, depth,
                                             c + r * c_stride, c_stride, accumulate);
  }
  const float* rest = a + r * a_stride;
  float* target = c + r * c_stride;
  switch (rows - r) {
    case 5:
      return MultiplyRows<5, kVectors>(rest, a_stride, panel, depth, target, c_stride, accumulate);
    case 4:
      return MultiplyRows<4, kVectors>(rest, a_stride, panel, depth, target, c_stride, accumulate);
    case 3:
      return MultiplyRows<3, kVectors>(rest, a_stride, panel, depth, target, c_stride, accumulate);
    case 2:
      return MultiplyRows<2, kVectors>(rest, a_stride, panel, depth, target, c_stride, accumulate);
    case 1:
      return MultiplyRows<1, kVectors>(rest, a_stride, panel, depth, target, c_stride, accumulate);
    default:
      return;
  }
}

/// C [rows, columns] (+)= A [rows, depth] B [depth, columns]. Columns of C up to the next multiple
/// of eight are written too; `panel_depth` is the depth the panels were packed with.
inline void MultiplyPacked(const float* a, int64_t a_stride, int64_t rows, const float* panels,
                           int64_t panel_depth, int64_t depth, int64_t columns, float* c,
                           int64_t c_stride, bool accumulate) {
  for (int64_t column = 0; column < columns; column += kPanel) {
    const float* panel = panels + column * panel_depth;
    if (columns - column > kLanes) {
      MultiplyPanel<2>(a, a_stride, rows, panel, depth, c + column, c_stride, accumulate);
    } else {
      MultiplyPanel<1>(a, a_stride, rows, panel, depth, c + column, c_stride, accumulate);
    }
  }
}

/// Transposes eight vectors in registers.
inline void Transpose(Vec (&rows)[kLanes]) {
  Vec pairs[kLanes];
  for (int i = 0; i < 4; ++i) {
    pairs[2 * i] = _mm256_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
    pairs[2 * i + 1] = _mm256_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
  }
  Vec quads[kLanes];
  for (int i = 0; i < 2; ++i) {
    const Vec* p = pairs + 4 * i;
    Vec* q = quads + 4 * i;
    q[0] = _mm256_shuffle_ps(p[0], p[2], 0x44);
    q[1] = _mm256_shuffle_ps(p[0], p[2], 0xee);
    q[2] = _mm256_shuffle_ps(p[1], p[3], 0x44);
    q[3] = _mm256_shuffle_ps(p[1], p[3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x20);
    rows[i + 4] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x31);
  }
}

/// Packs `count` rows of `width` elements as columns: panels [width, kPanel] of the transposed
/// block, columns zero up to a multiple of eight.
template <typename T>
void PackTransposed(const T* source, int64_t stride, int64_t count, int64_t width, float* panels) {
  for (int64_t row = 0; row < count; row += kLanes) {
    const int64_t present = std::min(kLanes, count - row);
    float* target = panels + row / kPanel * kPanel * width + row % kPanel;
    ForEachGroup(width, [&](int64_t k, auto lanes) {
      Vec block[kLanes];
      for (int64_t i = 0; i < kLanes; ++i) {
        block[i] = i < present ? lanes.Load(source + (row + i) * stride + k) : Zero();
      }
      Transpose(block);
      const int64_t depth = std::min(kLanes, width - k);
      for (int64_t i = 0; i < depth; ++i) Store(target + (k + i) * kPanel, block[i]);
    });
  }
}

/// Packs `count` rows of `width` elements as they are: panels [panel_depth, kPanel], missing
/// columns zero. A row with visible[row] = 0 becomes zeros, so that whatever it holds meets its
/// weight of 0 harmlessly.
template <typename T>
void PackRows(const T* source, int64_t stride, int64_t count, int64_t width, int64_t panel_depth,
              const float* visible, float* panels) {
  for (int64_t row = 0; row < count; ++row) {
    ForEachGroup(width, [&](int64_t k, auto lanes) {
      float* target = panels + k / kPanel * kPanel * panel_depth + row * kPanel + k % kPanel;
      Store(target, visible[row] == 0.0f ? Zero() : lanes.Load(source + row * stride + k));
    });
  }
}

}  // namespace ltx::cpu

#endif  // LTX_KERNELS_CPU_ATTENTION_TILE_H_
