#include "server/governor/lease_monitor.h"

#include <string>
#include <vector>

#include "engine/pipeline/error_details.h"
#include "gtest/gtest.h"
#include "server/reasons.h"

namespace ltx::server {
namespace {

/// Preparation, 60 forwards, decoding: what was projected when the clip was admitted.
std::vector<PlannedUnit> Plan(double seconds_per_forward) {
  std::vector<PlannedUnit> plan = {{CostKind::kText, "text", 481.5}};
  for (int i = 0; i < 60; ++i) plan.push_back({CostKind::kForward, "stage1", seconds_per_forward});
  plan.push_back({CostKind::kVideoDecode, "vdecode", 600});
  return plan;
}

Limit<double> Allowed(double seconds) { return {seconds, "rung 1280x704x121"}; }

TEST(LeaseMonitorTest, StopsAJobThatWillOutrunItsLeaseLongBeforeItDoes) {
  // Admitted at 100 s a forward: 7,081 s of 7,153.
  LeaseMonitor monitor(Plan(100), true, Allowed(7153));
  EXPECT_DOUBLE_EQ(monitor.projected(), 7081.5);
  EXPECT_TRUE(monitor.Check().ok());
  monitor.Finish(481.5);
  EXPECT_TRUE(monitor.Check().ok());
  // Seven forwards start 162 s apart.
  for (int i = 0; i < 6; ++i) monitor.Finish(162);
  EXPECT_NEAR(monitor.projected(), 10801.5, 1e-6);
  const absl::Status status = monitor.Check();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(pipeline::GetErrorDetail(status)->reason, kReasonTimeProjection);
  EXPECT_NE(status.message().find("7 of 62 units"), absl::string_view::npos) << status;
  EXPECT_NE(status.message().find("7153 s"), absl::string_view::npos) << status;
  EXPECT_LT(monitor.elapsed(), 1500);
}

TEST(LeaseMonitorTest, TheFirstUnitOfAPhaseHoldsPreparationAndIsNoPace) {
  LeaseMonitor monitor(Plan(100), true, Allowed(7153));
  monitor.Finish(481.5);
  // Half a minute of preparation goes into the sum once...
  monitor.Finish(130);
  monitor.Finish(100);
  EXPECT_NEAR(monitor.projected(), 7081.5 + 30, 1e-6);
  EXPECT_TRUE(monitor.Check().ok());
}

TEST(LeaseMonitorTest, AFasterJobIsProjectedFaster) {
  LeaseMonitor monitor(Plan(100), true, Allowed(7153));
  monitor.Finish(481.5);
  for (int i = 0; i < 30; ++i) monitor.Finish(50);
  EXPECT_NEAR(monitor.projected(), 481.5 + 60 * 50 + 600, 1e-6);
}

TEST(LeaseMonitorTest, RunsToTheEndOfThePlan) {
  LeaseMonitor monitor(Plan(100), true, Allowed(7153));
  monitor.Finish(481.5);
  for (int i = 0; i < 60; ++i) monitor.Finish(100);
  monitor.Finish(600);
  EXPECT_EQ(monitor.completed(), 62);
  EXPECT_EQ(monitor.remaining(), 0);
  EXPECT_TRUE(monitor.Check().ok());
  // A unit nobody planned still counts.
  monitor.Finish(100);
  EXPECT_FALSE(monitor.Check().ok());
}

TEST(LeaseMonitorTest, WithoutALimitNothingStops) {
  LeaseMonitor monitor(Plan(100), true, {});
  monitor.Finish(1e6);
  EXPECT_TRUE(monitor.Check().ok());
}

TEST(LeaseMonitorTest, WithoutAProjectionOnlyWhatHasPassedCounts) {
  LeaseMonitor monitor(Plan(0), false, Allowed(200));
  monitor.Finish(150);
  EXPECT_TRUE(monitor.Check().ok());
  monitor.Finish(60);
  EXPECT_FALSE(monitor.Check().ok());
}

TEST(LeaseMonitorTest, APhaseMayEndEarly) {
  LeaseMonitor monitor({{CostKind::kEnhance, "enhance", 5.0},
                        {CostKind::kEnhance, "enhance", 1.0},
                        {CostKind::kEnhance, "enhance", 1.0},
                        {CostKind::kEnhance, "enhance", 1.0},
                        {CostKind::kText, "text", 4.0}},
                       /*seconds_known=*/true, {});
  EXPECT_EQ(monitor.EndPhase(), 0);
  monitor.Finish(5.0);
  monitor.Finish(1.0);
  EXPECT_DOUBLE_EQ(monitor.remaining(), 6.0);
  EXPECT_EQ(monitor.EndPhase(), 2);
  EXPECT_DOUBLE_EQ(monitor.remaining(), 4.0);
  EXPECT_EQ(monitor.EndPhase(), 0);
  monitor.Finish(4.0);
  EXPECT_DOUBLE_EQ(monitor.projected(), 10.0);
}

}  // namespace
}  // namespace ltx::server
