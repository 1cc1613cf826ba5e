#include "bench/service_load.h"

#include "gtest/gtest.h"

namespace ltx::bench {
namespace {

/// The measurement of scheduler_bench in small; what depends on the machine's speed is left to
/// that.
TEST(ServiceLoadTest, NoJobIsLostDoubledOrTreatedUnfairly) {
  LoadOptions options;
  options.clients = 8;
  options.jobs = 400;
  const auto rounds = RunServiceLoad(options, 1);
  ASSERT_TRUE(rounds.ok()) << rounds.status();
  const LoadReport* const report = &rounds->front();
  EXPECT_EQ(report->finished, 400);
  EXPECT_EQ(report->executed, 400);
  EXPECT_EQ(report->failed, 0);
  EXPECT_EQ(report->wrong_progress, 0);
  EXPECT_EQ(report->duplicated, 0);
  EXPECT_LT(report->unfairness, 0.05);
  EXPECT_GT(report->health_calls, 0);
}

}  // namespace
}  // namespace ltx::bench
