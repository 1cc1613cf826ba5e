#ifndef LTX_KERNELS_CPU_TILE_PRODUCT_H_
#define LTX_KERNELS_CPU_TILE_PRODUCT_H_

#include <cstdint>

#include "kernels/dtype.h"

namespace ltx::cpu {

/// The inner kernel of convolutions: small dense products on packed operands in cache.
///
/// A strip is 16 columns of a weight, one vector of 16 floats (or bf16) per row of the reduction.
/// A panel is the left operand: rows at a fixed distance, which may overlap.
inline constexpr int64_t kStripColumns = 16;

/// For panels that are gathered: the longest reduction, so that a strip of that much weight, 16
/// KiB, stays in the first-level cache; and their pitch, a cache line more than the depth, so that
/// rows fall into different cache sets.
inline constexpr int64_t kPanelDepth = 256;
inline constexpr int64_t kPanelPitch = kPanelDepth + 16;

/// tile[row][column] += sum over p < depth of panel[row][p] * strips[column / 16][p][column % 16],
/// for `rows` rows and `strip_count` strips.
///
/// Sums run over p in order with fused multiply-adds, so the result does not depend on the
/// instruction set, on the rows around a row, or on how a reduction is cut into calls. Uses
/// AVX-512 where the processor has it, else AVX2.
///
/// Pitches are the distances of rows in floats; that of the tile is at least 16 * strip_count.
/// `strip_stride` is the distance of strips in elements.
void AccumulateTile(const float* panel, int64_t panel_pitch, int64_t rows, const float* strips,
                    int64_t strip_stride, int64_t strip_count, int64_t depth, float* tile,
                    int64_t tile_pitch);
void AccumulateTile(const float* panel, int64_t panel_pitch, int64_t rows, const BFloat16* strips,
                    int64_t strip_stride, int64_t strip_count, int64_t depth, float* tile,
                    int64_t tile_pitch);

/// The same on a panel of pitch kPanelPitch.
template <typename Weight>
void AccumulateTile(const float* panel, int64_t rows, const Weight* strips, int64_t strip_stride,
                    int64_t strip_count, int64_t depth, float* tile, int64_t tile_pitch) {
  AccumulateTile(panel, kPanelPitch, rows, strips, strip_stride, strip_count, depth, tile,
                 tile_pitch);
}

namespace internal {

/// The form without AVX-512, for tests.
void AccumulateTileAvx2(const float* panel, int64_t panel_pitch, int64_t rows, const float* strips,
                        int64_t strip_stride, int64_t strip_count, int64_t depth, float* tile,
                        int64_t tile_pitch);

}  // namespace internal

}  // namespace ltx::cpu

#endif  // LTX_KERNELS_CPU_TILE_PRODUCT_H_
