#include "engine/dit/rope_tables.h"

#include <cmath>
#include <limits>

#include "engine/dit/test_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::dit {
namespace {

constexpr double kHalfPi = 1.57079632679489661923;

RopeSpec VideoSpec() {
  RopeSpec spec;
  spec.width = 32;
  spec.heads = 4;
  spec.max_position = {20, 2048, 2048};
  return spec;
}

struct RopeValues {
  Shape shape;
  std::vector<float> cos;
  std::vector<float> sin;
};

absl::StatusOr<RopeValues> ComputeRopeValues(const RopeSpec& spec,
                                             const std::vector<float>& positions, int64_t batch,
                                             int64_t tokens) {
  const auto device = TestDevice();
  LTX_ASSIGN_OR_RETURN(const RopeTable table,
                       BuildRopeTable(*device, spec, positions, batch, tokens, DType::kF32));
  EXPECT_EQ(table.kind, spec.kind);
  EXPECT_EQ(table.sin.shape(), table.cos.shape());
  return RopeValues{table.cos.shape(), Values(*device, table.cos), Values(*device, table.sin)};
}

/// Two tokens, positions [1, 3, 2, 2].
std::vector<float> TwoTokens() { return {0, 1, 1, 3, 0, 32, 32, 64, 0, 32, 64, 96}; }

TEST(FrequencyGridTest, RunsFromHalfPiToThetaHalfPi) {
  for (const bool double_precision : {false, true}) {
    const std::vector<float> grid = FrequencyGrid(10000.0, 9, double_precision);
    EXPECT_FLOAT_EQ(grid.front(), static_cast<float>(kHalfPi));
    EXPECT_NEAR(grid.back(), 10000.0 * kHalfPi, 0.01);
    EXPECT_NEAR(grid[4], 100.0 * kHalfPi, 1e-3);
  }
}

TEST(FrequencyGridTest, ShortGrids) {
  EXPECT_TRUE(FrequencyGrid(10000.0, 0, true).empty());
  for (const bool double_precision : {false, true}) {
    const std::vector<float> grid = FrequencyGrid(10000.0, 1, double_precision);
    ASSERT_EQ(grid.size(), 1u);
    EXPECT_FLOAT_EQ(grid[0], static_cast<float>(kHalfPi));
  }
}

TEST(FrequencyGridTest, DoubleIsTheRoundedExactValue) {
  const std::vector<float> exact = FrequencyGrid(10000.0, 682, true);
  for (int k = 0; k < 682; ++k) {
    const double g = std::pow(10000.0, k / 681.0) * kHalfPi;
    EXPECT_NEAR(exact[k], g, 1e-7 * g) << k;
  }
  EXPECT_NE(exact, FrequencyGrid(10000.0, 682, false));
}

TEST(RopeTablesTest, SplitPadsInFrontOfTheFirstHeadAndInterleavesAxes) {
  const auto values = ComputeRopeValues(VideoSpec(), TwoTokens(), 1, 2);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->shape, (Shape{1, 4, 2, 4}));
  const std::vector<float> grid = FrequencyGrid(10000.0, 5, true);
  const float middle[2][3] = {{0.5f, 16, 16}, {2, 48, 80}};
  const float max_position[3] = {20, 2048, 2048};
  for (int n = 0; n < 2; ++n) {
    for (int flat = 0; flat < 16; ++flat) {
      const int place = ((flat / 4) * 2 + n) * 4 + flat % 4;
      if (flat == 0) {
        EXPECT_EQ(values->cos[place], 1.0f);
        EXPECT_EQ(values->sin[place], 0.0f);
        continue;
      }
      const int axis = (flat - 1) % 3;
      const float angle =
          grid[(flat - 1) / 3] * (2.0f * (middle[n][axis] / max_position[axis]) - 1.0f);
      EXPECT_FLOAT_EQ(values->cos[place], std::cos(angle)) << n << " " << flat;
      EXPECT_FLOAT_EQ(values->sin[place], std::sin(angle)) << n << " " << flat;
    }
  }
}

TEST(RopeTablesTest, InterleavedHoldsEveryValueTwiceBehindThePadding) {
  RopeSpec spec = VideoSpec();
  spec.kind = RopeTable::Kind::kInterleaved;
  const auto split = ComputeRopeValues(VideoSpec(), TwoTokens(), 1, 2);
  const auto values = ComputeRopeValues(spec, TwoTokens(), 1, 2);
  ASSERT_TRUE(values.ok() && split.ok());
  EXPECT_EQ(values->shape, (Shape{1, 2, 32}));
  for (int n = 0; n < 2; ++n) {
    for (int i = 0; i < 32; ++i) {
      // Two entries in front here, one half of a pair there.
      const int flat = i / 2;
      const int place = ((flat / 4) * 2 + n) * 4 + flat % 4;
      EXPECT_EQ(values->cos[n * 32 + i], split->cos[place]) << n << " " << i;
      EXPECT_EQ(values->sin[n * 32 + i], split->sin[place]) << n << " " << i;
    }
  }
}

TEST(RopeTablesTest, StartOrMiddleOfTheInterval) {
  RopeSpec spec;
  spec.width = 4;
  spec.heads = 1;
  spec.max_position = {20};
  const auto middle = ComputeRopeValues(spec, {4, 8}, 1, 1);
  spec.use_middle = false;
  const auto start = ComputeRopeValues(spec, {4, 8}, 1, 1);
  const auto at_six = ComputeRopeValues(spec, {6, 100}, 1, 1);
  ASSERT_TRUE(middle.ok() && start.ok() && at_six.ok());
  EXPECT_EQ(middle->cos, at_six->cos);
  EXPECT_NE(middle->cos, start->cos);
}

TEST(RopeTablesTest, BatchRowsHaveTheirOwnPositions) {
  RopeSpec spec;
  spec.width = 4;
  spec.heads = 1;
  spec.max_position = {20};
  const auto both = ComputeRopeValues(spec, {0, 1, 5, 6}, 2, 1);
  const auto second = ComputeRopeValues(spec, {5, 6}, 1, 1);
  ASSERT_TRUE(both.ok() && second.ok());
  EXPECT_EQ(std::vector<float>(both->cos.begin() + 2, both->cos.end()), second->cos);
}

TEST(RopeTablesTest, FirstAxisOfEveryBatchRow) {
  const std::vector<float> positions = {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16, 17, 18};
  EXPECT_EQ(FirstAxisPositions(positions, 2, 2, 2),
            (std::vector<float>{1, 2, 3, 4, 11, 12, 13, 14}));
}

TEST(RopeTablesTest, BadArgumentsAreNamed) {
  EXPECT_THAT(ComputeRopeValues(VideoSpec(), {0, 1}, 1, 2).status().message(),
              ::testing::HasSubstr("positions hold 2 values; [1, 3, 2, 2] needs 12"));
  std::vector<float> positions = TwoTokens();
  positions[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(ComputeRopeValues(VideoSpec(), positions, 1, 2).status().message(),
              ::testing::HasSubstr("positions[3] is nan"));
  RopeSpec odd = VideoSpec();
  odd.width = 36;
  odd.heads = 4;
  EXPECT_EQ(ComputeRopeValues(odd, TwoTokens(), 1, 2).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ltx::dit
