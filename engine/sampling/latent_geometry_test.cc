#include "engine/sampling/latent_geometry.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace ltx::sampling {
namespace {

TEST(LatentGeometryTest, CountsOfPublishedSizes) {
  EXPECT_EQ(LatentExtentsOf(121, 512, 768).tokens(), 6144);
  EXPECT_EQ(LatentExtentsOf(121, 1024, 1536).tokens(), 24576);
  EXPECT_EQ(LatentExtentsOf(121, 1088, 1920).tokens(), 32640);
  EXPECT_EQ(LatentExtentsOf(241, 1088, 1920).tokens(), 63240);
  EXPECT_EQ(LatentExtentsOf(1, 32, 32).tokens(), 1);
  EXPECT_EQ(PixelFramesOf(16), 121);
}

TEST(LatentGeometryTest, AudioCountRoundsHalfToEven) {
  EXPECT_EQ(AudioLatentFrames(121 / 24.0), 126);
  EXPECT_EQ(AudioLatentFrames(17 / 24.0), 18);
  EXPECT_EQ(AudioLatentFrames(0.02), 0);
  EXPECT_EQ(AudioLatentFrames(0.98), 24);
  EXPECT_EQ(AudioLatentFrames(1.02), 26);
}

TEST(LatentGeometryTest, DurationsStayInsideTheirRange) {
  EXPECT_EQ(*FramesForDuration(1.0, 24.0, 1, 1024), 17);
  EXPECT_EQ(*FramesForDuration(0.2, 24.0, 24, 480), 25);
  EXPECT_EQ(*FramesForDuration(40.0, 24.0, 24, 480), 473);
  // No grid point between the bounds: the cap wins.
  EXPECT_EQ(*FramesForDuration(1.0, 24.0, 18, 20), 20);
  EXPECT_EQ(*FramesForDuration(1e300, 24.0, 1, 1024), 1017);
  EXPECT_FALSE(FramesForDuration(std::numeric_limits<double>::quiet_NaN(), 24.0, 1, 9).ok());
  EXPECT_FALSE(FramesForDuration(1.0, 0.0, 1, 9).ok());
  EXPECT_FALSE(FramesForDuration(1.0, 24.0, 9, 1).ok());
  EXPECT_FALSE(SnapFramesDown(0).ok());
}

TEST(LatentGeometryTest, KeyframesLieInsideTheClip) {
  EXPECT_EQ(*EvenKeyframePositions(3, 121), (std::vector<int64_t>{30, 60, 90}));
  EXPECT_TRUE(EvenKeyframePositions(0, 1)->empty());
  EXPECT_EQ(*EvenKeyframePositions(1, 3), (std::vector<int64_t>{1}));
  EXPECT_FALSE(EvenKeyframePositions(1, 2).ok());
  EXPECT_FALSE(EvenKeyframePositions(-1, 9).ok());
  EXPECT_FALSE(EvenKeyframePositions(std::numeric_limits<int64_t>::max(), 9).ok());
}

TEST(LatentGeometryTest, FirstLatentFrameCoversOnePixelFrame) {
  const std::vector<float> p = VideoPositions({3, 1, 2}, 24.0);
  ASSERT_EQ(p.size(), 3u * 6 * 2);
  // Times of the tokens of frames 0, 1 and 2.
  EXPECT_FLOAT_EQ(p[0], 0.0f);
  EXPECT_FLOAT_EQ(p[1], 1.0f / 24);
  EXPECT_FLOAT_EQ(p[4], 1.0f / 24);
  EXPECT_FLOAT_EQ(p[5], 9.0f / 24);
  EXPECT_FLOAT_EQ(p[8], 9.0f / 24);
  EXPECT_FLOAT_EQ(p[9], 17.0f / 24);
  // Columns of the first two tokens.
  EXPECT_FLOAT_EQ(p[24], 0.0f);
  EXPECT_FLOAT_EQ(p[25], 32.0f);
  EXPECT_FLOAT_EQ(p[26], 32.0f);
  EXPECT_FLOAT_EQ(p[27], 64.0f);
  EXPECT_EQ(FirstFrameMask({3, 1, 2}, 2), (std::vector<float>{1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace ltx::sampling
