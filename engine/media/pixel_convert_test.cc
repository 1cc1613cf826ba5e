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

TEST(UnitToBytesTest, Truncates) {
  const std::vector<float> unit = {0.0f, 0.9999f, 1.0f, 2.0f, -1.0f, std::nanf("")};
  std::vector<uint8_t> bytes(6);
  UnitToBytes(unit, absl::MakeSpan(bytes));
  EXPECT_THAT(bytes, ElementsAre(0, 254, 255, 255, 0, 0));
}

std::vector<uint8_t> SolidI420(float r, float g, float b) {
  std::vector<float> rgb;
  for (int i = 0; i < 4; ++i) rgb.insert(rgb.end(), {r, g, b});
  std::vector<uint8_t> i420(6);
  EXPECT_TRUE(RgbToI420(rgb, 2, 2, absl::MakeSpan(i420)).ok());
  return i420;
}

TEST(RgbToI420Test, KnownColours) {
  EXPECT_THAT(SolidI420(0, 0, 0), ElementsAre(16, 16, 16, 16, 128, 128));
  EXPECT_THAT(SolidI420(1, 1, 1), ElementsAre(235, 235, 235, 235, 128, 128));
  // 0.2126 * 219 + 16 = 62.56; -0.1146 * 224 + 128 = 102.33; 0.5 * 224 + 128 = 240.
  EXPECT_THAT(SolidI420(1, 0, 0), ElementsAre(62, 62, 62, 62, 102, 240));
}

TEST(RgbToI420Test, NanAndOutOfRangeAreDefined) {
  EXPECT_THAT(SolidI420(std::nanf(""), 0, 0), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_EQ(SolidI420(9, 9, 9)[0], 255);
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
