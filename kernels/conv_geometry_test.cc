#include "kernels/conv_geometry.h"

#include <vector>

#include "gtest/gtest.h"

namespace ltx {
namespace {

std::vector<int64_t> Sources(PadMode mode, int64_t extent, int64_t before, int64_t after) {
  std::vector<int64_t> sources;
  for (int64_t p = -before; p < extent + after; ++p) {
    sources.push_back(p >= 0 && p < extent ? p : PaddedSource(p, extent, mode));
  }
  return sources;
}

TEST(ConvGeometryTest, PaddingModes) {
  using Sequence = std::vector<int64_t>;
  EXPECT_EQ(Sources(PadMode::kZeros, 2, 2, 1), Sequence({-1, -1, 0, 1, -1}));
  EXPECT_EQ(Sources(PadMode::kReplicate, 2, 2, 3), Sequence({0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(Sources(PadMode::kReflect, 4, 3, 2), Sequence({3, 2, 1, 0, 1, 2, 3, 2, 1}));
  EXPECT_EQ(Sources(PadMode::kCircular, 3, 4, 2), Sequence({2, 0, 1, 2, 0, 1, 2, 0, 1}));
}

TEST(ConvGeometryTest, OutputExtents) {
  AxisGeometry geometry;
  geometry.stride = 2;
  geometry.dilation = 3;
  geometry.pad_before = 1;
  geometry.pad_after = 2;
  // (10 + 3 - 3 * 2 - 1) / 2 + 1
  EXPECT_EQ(MakeConvAxis(0, 10, 3, geometry)->output, 4);
  EXPECT_EQ(MakeConvAxis(0, 4, 3, geometry)->output, 1);
  EXPECT_EQ(MakeConvAxis(0, 0, 3, geometry)->output, 0);
  // Nothing but padding, yet enough for a tap.
  EXPECT_EQ(MakeConvAxis(0, 0, 1, geometry)->output, 2);
}

TEST(ConvGeometryTest, ImpossibleGeometriesAreRefused) {
  const auto code = [](int64_t input, int64_t kernel, const AxisGeometry& geometry) {
    return MakeConvAxis(1, input, kernel, geometry).status().code();
  };
  AxisGeometry geometry;
  EXPECT_EQ(code(2, 3, geometry), absl::StatusCode::kInternal);
  geometry.stride = 0;
  EXPECT_EQ(code(5, 3, geometry), absl::StatusCode::kInternal);
  geometry = AxisGeometry();
  geometry.dilation = -1;
  EXPECT_EQ(code(5, 3, geometry), absl::StatusCode::kInternal);
  geometry = AxisGeometry();
  geometry.pad_before = -1;
  EXPECT_EQ(code(5, 3, geometry), absl::StatusCode::kInternal);
  geometry.pad_before = 3;
  geometry.pad_mode = PadMode::kReflect;
  EXPECT_EQ(code(3, 3, geometry), absl::StatusCode::kInternal);
  EXPECT_EQ(code(4, 3, geometry), absl::StatusCode::kOk);
  geometry.pad_mode = PadMode::kReplicate;
  EXPECT_EQ(code(0, 3, geometry), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace ltx
