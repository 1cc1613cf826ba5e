#ifndef LTX_KERNELS_CPU_ATTENTION_PACKING_H_
#define LTX_KERNELS_CPU_ATTENTION_PACKING_H_

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/tile_product.h"
#include "kernels/cpu/vector.h"

namespace ltx::cpu {

/// Packing of key and value blocks into strips for AccumulateTile: strip n holds columns
/// [16 n, 16 n + 16) of the right operand, [depth, 16], columns that do not exist zero.

inline constexpr int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
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

/// Packs rows [0, count) of `width` elements as columns: strips [width, 16] of the transposed
/// block.
template <typename T>
void PackTransposed(const T* source, int64_t stride, int64_t count, int64_t width, float* strips) {
  for (int64_t row = 0; row < RoundUp(count, kStripColumns); row += kLanes) {
    const int64_t present = std::clamp<int64_t>(count - row, 0, kLanes);
    float* target = strips + row / kStripColumns * kStripColumns * width + row % kStripColumns;
    ForEachGroup(width, [&](int64_t k, auto lanes) {
      Vec block[kLanes];
      for (int64_t i = 0; i < kLanes; ++i) {
        block[i] = i < present ? lanes.Load(source + (row + i) * stride + k) : Zero();
      }
      Transpose(block);
      const int64_t depth = std::min(kLanes, width - k);
      for (int64_t i = 0; i < depth; ++i) Store(target + (k + i) * kStripColumns, block[i]);
    });
  }
}

/// Packs rows [0, count) of `width` elements as they are: strips [strip_depth, 16]. A row with
/// visible[row] = 0 becomes zeros, so that whatever it holds meets its weight of 0 harmlessly.
template <typename T>
void PackRows(const T* source, int64_t stride, int64_t count, int64_t width, int64_t strip_depth,
              const float* visible, float* strips) {
  for (int64_t row = 0; row < count; ++row) {
    float* target = strips + row * kStripColumns;
    const T* from = source + row * stride;
    const bool seen = visible[row] != 0.0f;
    ForEachGroup(width, [&](int64_t k, auto lanes) {
      Store(target + k / kStripColumns * kStripColumns * strip_depth + k % kStripColumns,
            seen ? lanes.Load(from + k) : Zero());
    });
    if (RoundUp(width, kLanes) % kStripColumns != 0) {
      Store(target + width / kStripColumns * kStripColumns * strip_depth + kLanes, Zero());
    }
  }
}

}  // namespace ltx::cpu

#endif  // LTX_KERNELS_CPU_ATTENTION_PACKING_H_
