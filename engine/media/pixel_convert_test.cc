#include "engine/media/pixel_convert.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::media {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

TEST(NormalizeBytesTest, MapsTheEndsToMinusOneAndOne) {
  const std::vector<uint8_t> bytes = {0, 255, 51};
  std::vector<float> values(3);
  NormalizeBytes(bytes, absl::MakeSpan(values));
  EXPECT_THAT(values, ElementsAre(-1.0f, 1.0f, FloatNear(-0.6f, 1e-6)));
}

TEST(DenormalizeUnitTest, ClampsAndZeroesNan) {
  const std::vector<float> values = {-3, -1, 0, 1, 3, std::nanf("")};
  std::vector<float> unit(6);
  DenormalizeUnit(values, absl::MakeSpan(unit));
  EXPECT_THAT(unit, ElementsAre(0.0f, 0.0f, 0.5f, 1.0f, 1.0f, 0.0f));
}

TEST(RgbToYuv420Test, FullRangeCentresChromaAt127AndAHalf) {
  Yuv420Planes planes;
  const std::vector<float> grey(12, 0.5f);
  ASSERT_TRUE(RgbToYuv420(grey, 2, 2, YuvMatrix::kBt2020, YuvRange::kFull, &planes).ok());
  EXPECT_THAT(planes.y, testing::Each(FloatNear(127.5f, 1e-4)));
  EXPECT_THAT(planes.cb, ElementsAre(FloatNear(127.5f, 1e-4)));
}

TEST(RgbToYuv420Test, ChromaIsTheMeanOfFourPixels) {
  std::vector<float> rgb(12, 0.0f);
  rgb[0] = 1.0f;  // One red pixel of four.
  Yuv420Planes planes;
  ASSERT_TRUE(RgbToYuv420(rgb, 2, 2, YuvMatrix::kBt709, YuvRange::kLimited, &planes).ok());
  EXPECT_THAT(planes.cr, ElementsAre(FloatNear(128.0f + 0.25f * 0.5f * 224.0f, 1e-4)));
}

TEST(RgbToYuv420Test, RefusesSizes) {
  Yuv420Planes planes;
  const std::vector<float> rgb(27);
  for (const auto& [width, height] :
       std::vector<std::pair<int, int>>{{3, 3}, {0, 2}, {-2, 2}, {2, 2}}) {
    EXPECT_EQ(
        RgbToYuv420(rgb, width, height, YuvMatrix::kBt709, YuvRange::kLimited, &planes).code(),
        absl::StatusCode::kInvalidArgument)
        << width << "x" << height;
  }
}

TEST(WaveformToPcm16Test, TruncatesTowardsZeroAndInterleaves) {
  const std::vector<float> waveform = {0.5f, -0.5f, 2.0f, /*right*/ -2.0f, 0.00001f, std::nanf("")};
  EXPECT_THAT(WaveformToPcm16(waveform), ElementsAre(16383, -32767, -16383, 0, 32767, 0));
}

}  // namespace
}  // namespace ltx::media
