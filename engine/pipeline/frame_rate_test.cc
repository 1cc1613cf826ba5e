#include "engine/pipeline/frame_rate.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "engine/pipeline/error_details.h"

namespace ltx::pipeline {
namespace {

std::string Rational(double value) {
  const auto rate = FrameRate::FromDouble(value);
  return rate.ok() ? rate->ToString() : std::string(rate.status().message());
}

TEST(FrameRateTest, RecognisesTheFractionMeant) {
  EXPECT_EQ(Rational(24.0), "24");
  EXPECT_EQ(Rational(25.0), "25");
  EXPECT_EQ(Rational(23.976), "24000/1001");
  EXPECT_EQ(Rational(24000.0 / 1001.0), "24000/1001");
  EXPECT_EQ(Rational(29.97), "30000/1001");
  EXPECT_EQ(Rational(59.94), "60000/1001");
  EXPECT_EQ(Rational(119.88), "120000/1001");
  EXPECT_EQ(Rational(12.5), "25/2");
  EXPECT_EQ(Rational(16.666667), "50/3");
  EXPECT_EQ(Rational(1.0), "1");
  EXPECT_EQ(Rational(240.0), "240");
}

TEST(FrameRateTest, StaysWithinAMillionthOfAnyNumber) {
  for (double value = 1.0; value < 240.0; value += 0.7310585786) {
    const auto rate = FrameRate::FromDouble(value);
    ASSERT_TRUE(rate.ok()) << rate.status();
    // The NTSC rule may move a number by its own tolerance.
    EXPECT_NEAR(rate->value(), value, rate->denominator() == 1001 ? 1e-3 : 1e-6 * value);
  }
}

TEST(FrameRateTest, RefusesWhatIsNoRate) {
  for (const double value :
       {0.0, -24.0, 0.999, 240.001, 1e300, std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN()}) {
    const auto rate = FrameRate::FromDouble(value);
    ASSERT_FALSE(rate.ok()) << value;
    EXPECT_EQ(rate.status().code(), absl::StatusCode::kInvalidArgument);
    const auto detail = GetErrorDetail(rate.status());
    ASSERT_TRUE(detail.has_value());
    EXPECT_EQ(detail->reason, kReasonFrameRate);
    EXPECT_EQ(detail->field, "frame_rate");
  }
}

TEST(FrameRateTest, ReducesFractions) {
  EXPECT_EQ(FrameRate::FromRational(48, 2)->ToString(), "24");
  EXPECT_EQ(FrameRate::FromRational(48000, 2002)->ToString(), "24000/1001");
  EXPECT_FALSE(FrameRate::FromRational(24, 0).ok());
  EXPECT_FALSE(FrameRate::FromRational(-24, -1).ok());
  EXPECT_FALSE(FrameRate::FromRational(int64_t{1} << 62, int64_t{1} << 60).ok());
}

}  // namespace
}  // namespace ltx::pipeline
