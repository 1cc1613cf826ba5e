#include "kernels/conv_geometry.h"

#include <algorithm>
#include <utility>
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

TEST(ConvGeometryTest, PhasesOfATransposedConvolutionReadWhatTheySum) {
  for (const int64_t stride : {1, 2, 3, 5}) {
    for (const int64_t kernel : {1, 2, 3, 4, 7}) {
      for (const int64_t padding : {0, 1, 2, 4}) {
        const int64_t input = 6;
        const auto made = MakeTransposedConv(input, kernel, stride, padding);
        ASSERT_TRUE(made.ok()) << made.status();
        const ConvAxis& phase = made->phase;
        ASSERT_EQ(made->length, std::max<int64_t>(0, (input - 1) * stride - 2 * padding + kernel));
        EXPECT_GE(phase.output * stride - made->crop, made->length);
        for (int64_t u = 0; u < made->length; ++u) {
          // Scattering: x[p] times tap k stands at p * stride + k - padding.
          std::vector<std::pair<int64_t, int64_t>> expected;
          for (int64_t k = kernel - 1; k >= 0; --k) {
            const int64_t at = u + padding - k;
            if (at >= 0 && at % stride == 0 && at / stride < input) {
              expected.push_back({at / stride, k});
            }
          }
          std::vector<std::pair<int64_t, int64_t>> gathered;
          const int64_t f = (u + made->crop) % stride;
          for (int64_t i = phase.kernel - 1; i >= 0; --i) {
            const int64_t from = phase.Position((u + made->crop) / stride, i);
            const int64_t k = f + i * stride;
            if (k < kernel && from >= 0 && from < input) gathered.push_back({from, k});
          }
          EXPECT_EQ(gathered, expected) << "output " << u << " stride " << stride << " kernel "
                                        << kernel << " padding " << padding;
        }
      }
    }
  }
  EXPECT_EQ(MakeTransposedConv(0, 4, 2, 0)->length, 0);
  EXPECT_EQ(MakeTransposedConv(4, 4, 0, 0).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(MakeTransposedConv(4, 4, 2, -1).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace ltx
