#include "bench/sample.h"

#include "gtest/gtest.h"

namespace ltx::bench {
namespace {

TEST(Sample, MedianOfOddAndEvenCounts) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2.5);
}

TEST(Sample, MinimumIsTheSmallest) { EXPECT_EQ(Minimum({3, 1, 2}), 1); }

TEST(Sample, NothingGivesZero) {
  EXPECT_EQ(Median({}), 0);
  EXPECT_EQ(Minimum({}), 0);
}

TEST(Sample, SummaryKeepsTheOrderOfMeasurement) {
  const nlohmann::json summary = Summarize({2, 1});
  EXPECT_EQ(summary.dump(), R"({"all":[2.0,1.0],"median":1.5,"min":1.0})");
}

}  // namespace
}  // namespace ltx::bench
