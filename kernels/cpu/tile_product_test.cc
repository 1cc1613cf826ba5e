#include "kernels/cpu/tile_product.h"

#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace ltx::cpu {
namespace {

/// Shorter than the longest sum: rows overlap.
constexpr int64_t kPitch = 61;

struct Operands {
  std::vector<float> panel;
  std::vector<float> strips;
  std::vector<BFloat16> narrow;
  std::vector<float> tile;
};

Operands MakeOperands(int64_t rows, int64_t strip_count, int64_t depth) {
  std::mt19937 generator(7);
  std::normal_distribution<float> normal;
  Operands operands;
  operands.panel.resize(rows * kPitch + depth);
  operands.strips.resize(strip_count * depth * kStripColumns);
  operands.tile.resize(rows * strip_count * kStripColumns);
  for (auto* values : {&operands.panel, &operands.strips, &operands.tile}) {
    for (float& value : *values) value = normal(generator);
  }
  operands.narrow = std::vector<BFloat16>(operands.strips.begin(), operands.strips.end());
  return operands;
}

/// What the header promises, to the bit.
template <typename Weight>
std::vector<float> Expected(const Operands& operands, const std::vector<Weight>& strips,
                            int64_t rows, int64_t strip_count, int64_t depth) {
  std::vector<float> tile = operands.tile;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < strip_count * kStripColumns; ++column) {
      float& sum = tile[row * strip_count * kStripColumns + column];
      for (int64_t p = 0; p < depth; ++p) {
        const Weight weight =
            strips[(column / kStripColumns * depth + p) * kStripColumns + column % kStripColumns];
        sum = std::fma(operands.panel[row * kPitch + p], static_cast<float>(weight), sum);
      }
    }
  }
  return tile;
}

TEST(TileProductTest, EveryTailToTheBit) {
  for (const int64_t depth : {0, 1, 7, 256}) {
    for (const int64_t strip_count : {1, 2, 3, 4, 5, 7}) {
      for (const int64_t rows : {0, 1, 2, 5, 6, 8, 9, 10, 13, 14, 15, 29}) {
        SCOPED_TRACE(testing::Message() << rows << " rows " << strip_count << " strips " << depth);
        const Operands operands = MakeOperands(rows, strip_count, depth);
        const int64_t stride = depth * kStripColumns;
        const int64_t pitch = strip_count * kStripColumns;
        const std::vector<float> want =
            Expected(operands, operands.strips, rows, strip_count, depth);
        std::vector<float> tile = operands.tile;
        AccumulateTile(operands.panel.data(), kPitch, rows, operands.strips.data(), stride,
                       strip_count, depth, tile.data(), pitch);
        EXPECT_EQ(tile, want);
        tile = operands.tile;
        internal::AccumulateTileAvx2(operands.panel.data(), kPitch, rows, operands.strips.data(),
                                     stride, strip_count, depth, tile.data(), pitch);
        EXPECT_EQ(tile, want);
        tile = operands.tile;
        AccumulateTile(operands.panel.data(), kPitch, rows, operands.narrow.data(), stride,
                       strip_count, depth, tile.data(), pitch);
        EXPECT_EQ(tile, Expected(operands, operands.narrow, rows, strip_count, depth));
      }
    }
  }
}

}  // namespace
}  // namespace ltx::cpu
