#include "engine/sampling/schedules.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace ltx::sampling {
namespace {

void ExpectFalls(const std::vector<float>& sigmas) {
  for (size_t i = 1; i < sigmas.size(); ++i) EXPECT_LT(sigmas[i], sigmas[i - 1]) << i;
  EXPECT_EQ(sigmas.back(), 0.0f);
}

TEST(Ltx2ScheduleTest, EndsAtTheTerminalLevelThenZero) {
  for (const int64_t tokens : {1, 8, 1024, 4096, 24576, 32768}) {
    Ltx2ScheduleOptions options;
    options.tokens = tokens;
    const std::vector<float> sigmas = *Ltx2Schedule(40, options);
    ASSERT_EQ(sigmas.size(), 41u);
    EXPECT_NEAR(sigmas[0], 1.0f, 1e-6f);
    EXPECT_NEAR(sigmas[39], 0.1f, 1e-6f);
    ExpectFalls(sigmas);
  }
}

TEST(Ltx2ScheduleTest, TheReferencesBits) {
  // torch 2.11.0 on a CPU.
  EXPECT_EQ(*Ltx2Schedule(4), (std::vector<float>{0x1.fffffap-1f, 0x1.bbf25p-1f, 0x1.435cfep-1f,
                                                  0x1.9999ap-4f, 0.0f}));
  Ltx2ScheduleOptions options;
  options.tokens = 6144;
  EXPECT_EQ(
      *Ltx2Schedule(12, options),
      (std::vector<float>{1.0f, 0x1.f9a322p-1f, 0x1.f21866p-1f, 0x1.e9033ep-1f, 0x1.dddd22p-1f,
                          0x1.cfda54p-1f, 0x1.bdb724p-1f, 0x1.a5505ep-1f, 0x1.82b9c4p-1f,
                          0x1.4de3b6p-1f, 0x1.e6612cp-2f, 0x1.9999ap-4f, 0.0f}));
}

TEST(Ltx2ScheduleTest, MoreTokensStayLongerAtHighNoise) {
  Ltx2ScheduleOptions few, many;
  few.tokens = 64;
  many.tokens = 16384;
  const std::vector<float> low = *Ltx2Schedule(10, few);
  const std::vector<float> high = *Ltx2Schedule(10, many);
  for (int i = 1; i < 9; ++i) EXPECT_GT(high[i], low[i]) << i;
}

TEST(Ltx2ScheduleTest, ShiftIsThatOfTheTokenCount) {
  // At 4096 tokens the shift is 2.05: t = 1/2 becomes e^2.05 / (e^2.05 + 1).
  Ltx2ScheduleOptions options;
  options.stretch = false;
  const double shifted = std::exp(2.05);
  EXPECT_FLOAT_EQ((*Ltx2Schedule(2, options))[1], shifted / (shifted + 1));
  options.tokens = 1024;
  EXPECT_FLOAT_EQ((*Ltx2Schedule(2, options))[1], std::exp(0.95) / (std::exp(0.95) + 1));
}

TEST(Ltx2ScheduleTest, AnyTokenCountGivesFiniteLevels) {
  Ltx2ScheduleOptions options;
  options.tokens = 32768;
  const std::vector<float> limit = *Ltx2Schedule(30, options);
  options.tokens = int64_t{1} << 40;
  EXPECT_EQ(*Ltx2Schedule(30, options), limit);
  ExpectFalls(limit);
}

TEST(Ltx2ScheduleTest, RefusesWhatIsNoSchedule) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(Ltx2Schedule(1).status().code(), invalid);
  EXPECT_EQ(Ltx2Schedule(1).status().message(), "steps is 1; 2 to 10000 would be legal");
  EXPECT_EQ(Ltx2Schedule(kMaxScheduleSteps + 1).status().code(), invalid);
  Ltx2ScheduleOptions options;
  options.stretch = false;
  EXPECT_NEAR((*Ltx2Schedule(1, options))[0], 1.0f, 1e-6f);
  EXPECT_EQ(Ltx2Schedule(0, options).status().code(), invalid);
  options = {};
  options.tokens = 0;
  EXPECT_EQ(Ltx2Schedule(8, options).status().code(), invalid);
  options = {};
  for (const double terminal : {0.0, 1.0, -0.5, std::nan("")}) {
    options.terminal = terminal;
    EXPECT_EQ(Ltx2Schedule(8, options).status().code(), invalid) << terminal;
  }
  options = {};
  for (const double shift : {HUGE_VAL, -HUGE_VAL, 30.0}) {
    options.max_shift = options.base_shift = shift;
    EXPECT_EQ(Ltx2Schedule(8, options).status().code(), invalid) << shift;
  }
}

TEST(LinearQuadraticScheduleTest, LinearThenQuadraticWithoutAJump) {
  const std::vector<float> sigmas = *LinearQuadraticSchedule(8);
  ASSERT_EQ(sigmas.size(), 9u);
  EXPECT_EQ(sigmas[0], 1.0f);
  for (int i = 0; i <= 4; ++i) EXPECT_NEAR(sigmas[i], 1.0 - i * 0.025 / 4, 1e-7);
  ExpectFalls(sigmas);
  EXPECT_EQ(*LinearQuadraticSchedule(1), (std::vector<float>{1.0f, 0.0f}));
}

TEST(LinearQuadraticScheduleTest, RefusesWhatIsNoSchedule) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(LinearQuadraticSchedule(0).status().code(), invalid);
  for (const int linear : {0, -1, 9}) {
    LinearQuadraticScheduleOptions options;
    options.linear_steps = linear;
    EXPECT_EQ(LinearQuadraticSchedule(8, options).status().code(), invalid) << linear;
  }
  LinearQuadraticScheduleOptions options;
  options.threshold_noise = 0.0;
  EXPECT_EQ(LinearQuadraticSchedule(8, options).status().code(), invalid);
}

TEST(BetaScheduleTest, SymmetricQuantilesOfTheTable) {
  const std::vector<float> sigmas = *BetaSchedule(2);
  // The median of a symmetric distribution: t = (rint(9999 / 2) + 1) / 10000, half to even.
  ASSERT_EQ(sigmas.size(), 3u);
  EXPECT_EQ(sigmas[0], 1.0f);
  const double shifted = std::exp(2.37);
  EXPECT_FLOAT_EQ(sigmas[1], shifted / (shifted + 1.0 / 0.5001 - 1.0));
  ExpectFalls(*BetaSchedule(30));
}

TEST(BetaScheduleTest, EqualLevelsCountOnce) {
  const std::vector<float> sigmas = *BetaSchedule(kMaxScheduleSteps);
  EXPECT_LT(sigmas.size(), 10001u);
  EXPECT_GT(sigmas.size(), 5000u);
  ExpectFalls(sigmas);
}

TEST(BetaScheduleTest, RefusesWhatIsNoSchedule) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(BetaSchedule(0).status().code(), invalid);
  EXPECT_EQ(BetaSchedule(8, {0.0, 0.6}).status().code(), invalid);
  EXPECT_EQ(BetaSchedule(8, {0.6, std::nan("")}).status().code(), invalid);
}

}  // namespace
}  // namespace ltx::sampling
