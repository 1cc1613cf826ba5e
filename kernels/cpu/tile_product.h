#ifndef LTX_KERNELS_CPU_TILE_PRODUCT_H_
#define LTX_KERNELS_CPU_TILE_PRODUCT_H_

#include <cstdint>

#include "kernels/dtype.h"

namespace ltx::cpu {

/// The inner kernel of convolutions: small dense products on packed operands in cache.
///
/// A strip is 16 columns of a weight, one vector of 16 floats (or bf16) per row of the reduction.
/// A panel holds rows of the left operand, kPanelPitch floats apart.
inline constexpr int64_t kStripColumns = 16;

/// Longest reduction of one call: a strip of it, 16 KiB, stays in the first-level cache.
inline constexpr int64_t kPanelDepth = 256;
/// A cache line more than the depth: rows of a panel then fall into different cache sets.
inline constexpr int64_t kPanelPitch = kPanelDepth + 16;

/// tile[row][column] += sum over p < depth of panel[row][p] * strips[column / 16][p][column % 16],
/// for `rows` rows and `strip_count` strips.
///
/// Sums run over p in order with fused multiply-adds, so the result does not depend on the
/// instruction set, on the rows around a row, or on how a reduction is cut into calls. Uses
/// AVX-512 where the processor has it, else AVX2.
///
/// `strip_stride` is the distance of strips in elements, `tile_pitch` that of rows of the tile in
/// floats (at least 16 * strip_count).
void AccumulateTile(const float* panel, int64_t rows, const float* strips, int64_t strip_stride,
                    int64_t strip_count, int64_t depth, float* tile, int64_t tile_pitch);
void AccumulateTile(const float* panel, int64_t rows, const BFloat16* strips, int64_t strip_stride,
                    int64_t strip_count, int64_t depth, float* tile, int64_t tile_pitch);

namespace internal {

/// The form without AVX-512, for tests.
void AccumulateTileAvx2(const float* panel, int64_t rows, const float* strips, int64_t strip_stride,
                        int64_t strip_count, int64_t depth, float* tile, int64_t tile_pitch);

}  // namespace internal

}  // namespace ltx::cpu

#endif  // LTX_KERNELS_CPU_TILE_PRODUCT_H_
