#include "engine/audio_vae/resampling_filters.h"

#include <cmath>
#include <numeric>

#include "gtest/gtest.h"

namespace ltx::audio_vae {
namespace {

TEST(ResamplingFiltersTest, KaiserHasUnitSumAndIsSymmetric) {
  for (const int64_t taps : {12, 13}) {
    const std::vector<float> filter = KaiserSincFilter(0.25, 0.3, taps);
    ASSERT_EQ(filter.size(), static_cast<size_t>(taps));
    EXPECT_NEAR(std::accumulate(filter.begin(), filter.end(), 0.0), 1.0, 1e-6);
    for (int64_t i = 0; i < taps; ++i) EXPECT_NEAR(filter[i], filter[taps - 1 - i], 1e-7f);
  }
}

TEST(ResamplingFiltersTest, KaiserStopsTheUpperBand) {
  const std::vector<float> filter = KaiserSincFilter(0.25, 0.3, 12);
  // Response at Nyquist: alternating sum.
  double response = 0.0;
  for (size_t i = 0; i < filter.size(); ++i) response += (i % 2 == 0 ? 1 : -1) * filter[i];
  EXPECT_LT(std::abs(response), 1e-5);
}

TEST(ResamplingFiltersTest, HannPhasesSumToTheRatioReciprocal) {
  for (const int64_t ratio : {1, 2, 3}) {
    const std::vector<float> filter = HannSincFilter(ratio);
    ASSERT_EQ(filter.size(), static_cast<size_t>(14 * ratio + 1));
    EXPECT_NEAR(filter[7 * ratio], 0.99 / static_cast<double>(ratio), 1e-6);
    // The window ends at six crossings, before the last tap.
    EXPECT_NEAR(filter.front(), 0.0, 1e-7);
    EXPECT_NEAR(filter.back(), 0.0, 1e-7);
    for (int64_t phase = 0; phase < ratio; ++phase) {
      double sum = 0.0;
      for (size_t i = phase; i < filter.size(); i += ratio) sum += filter[i];
      EXPECT_NEAR(sum * static_cast<double>(ratio), 1.0, 1e-2);
    }
  }
}

}  // namespace
}  // namespace ltx::audio_vae
