#include "server/governor/governor.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "engine/checkpoint/model_set.h"
#include "engine/pipeline/generation_job.h"
#include "engine/pipeline/model.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "server/reasons.h"

namespace ltx::server {
namespace {

using pipeline::GenerationJob;
using pipeline::GenerationRequest;

/// One loaded model for all tests.
class GovernorTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    device_ = cpu::CpuDevice::Create({}).value();
    files_ = std::make_unique<checkpoint::ModelSet>(
        checkpoint::ModelSet::Open("models/ltx-tiny").value());
    pipeline::ModelOptions options;
    options.compute_dtype = DType::kF32;
    model_ = pipeline::Model::Load(device_.get(), *files_, options).value();
  }
  static void TearDownTestSuite() {
    model_.reset();
    files_.reset();
    device_.reset();
  }
  static std::unique_ptr<Governor> Make(std::vector<Rung> rungs, int64_t device_bytes = 0) {
    Governor::Options options;
    options.ladder = RungLadder::Create(std::move(rungs)).value();
    options.device_bytes = device_bytes;
    return Governor::Create(model_.get(), *files_, std::move(options)).value();
  }
  static GenerationRequest Request(int64_t width, int64_t height, int64_t num_frames) {
    GenerationRequest request = model_->DefaultRequest();
    request.prompt = "a red circle moves up, a low hum";
    request.width = width;
    request.height = height;
    request.num_frames = num_frames;
    return request;
  }
  /// Half a second for a unit, and a second for 10^9 multiply-adds of products.
  static double Seconds(const CostUnit& unit) { return 0.5 + unit[CostTerm::kProducts]; }
  /// Tells the governor that the units of the plan took Seconds(), often enough to be believed.
  static void Teach(Governor* governor, const GovernorPlan& plan) {
    for (int round = 0; round < 4; ++round) {
      for (size_t i = 0; i < plan.costs.size(); ++i) {
        governor->ObserveUnit(plan, i, Seconds(plan.costs[i]), {});
      }
    }
  }
  static double Total(const GovernorPlan& plan) {
    double seconds = 0;
    for (const CostUnit& unit : plan.costs) seconds += Seconds(unit);
    return seconds;
  }

  static std::unique_ptr<cpu::CpuDevice> device_;
  static std::unique_ptr<checkpoint::ModelSet> files_;
  static std::unique_ptr<pipeline::Model> model_;
};
std::unique_ptr<cpu::CpuDevice> GovernorTest::device_;
std::unique_ptr<checkpoint::ModelSet> GovernorTest::files_;
std::unique_ptr<pipeline::Model> GovernorTest::model_;

TEST_F(GovernorTest, PlansUnitsPhasesAndMemory) {
  const auto governor = Make({Rung{"", {256, 256, 49}}});
  const GovernorPlan plan = governor->Weigh(Request(128, 128, 17), {}, {}).value();
  EXPECT_EQ(plan.verdict.decision, Decision::kAdmit);
  EXPECT_EQ(plan.verdict.rung, "256x256x49");
  // Nothing has been measured.
  EXPECT_FALSE(plan.demand.seconds_known);
  const auto job = GenerationJob::Create(model_.get(), Request(128, 128, 17)).value();
  ASSERT_EQ(plan.units.size(), job->plan().size() + 1);
  EXPECT_EQ(plan.units.back().phase, "mux");
  EXPECT_EQ(plan.demand.phases.size(), plan.memory.size() + 1);
  EXPECT_GT(plan.demand.peak_bytes, 0);
  EXPECT_EQ(plan.demand.resident_bytes, device_->ledger().Read().total.live_bytes);
}

TEST_F(GovernorTest, MemoryBudgetsRefuseWithTheLargestRungThatFits) {
  const auto unlimited = Make({Rung{"", {256, 256, 49}}});
  const int64_t small = unlimited->Weigh(Request(128, 128, 17), {}, {})->demand.total_bytes();
  const int64_t large = unlimited->Weigh(Request(256, 256, 49), {}, {})->demand.total_bytes();
  ASSERT_LT(small, large);
  const auto governor =
      Make({Rung{"", {128, 128, 17}}, Rung{"", {192, 192, 33}}, Rung{"", {256, 256, 49}}},
           (small + large) / 2);
  const GovernorPlan plan = governor->Weigh(Request(256, 256, 49), {}, {}).value();
  EXPECT_EQ(plan.verdict.decision, Decision::kRefuse);
  EXPECT_EQ(plan.verdict.reason, kReasonMemoryProjection);
  EXPECT_FALSE(plan.verdict.largest_rung.empty());
  EXPECT_NE(plan.verdict.largest_rung, "256x256x49");
  EXPECT_EQ(governor->Weigh(Request(128, 128, 17), {}, {})->verdict.decision, Decision::kAdmit);

  Lease lease;
  lease.max_bytes = small - 1;
  EXPECT_EQ(governor->Weigh(Request(128, 128, 17), lease, {})->verdict.decision, Decision::kRefuse);
}

TEST_F(GovernorTest, TimeBudgetsFollowWhatWasMeasured) {
  std::vector<Rung> rungs = {Rung{"", {128, 128, 17}}, Rung{"", {256, 256, 49}}};
  for (Rung& rung : rungs) rung.max_seconds = 100;
  const auto governor = Make(rungs);
  const GenerationRequest request = Request(128, 128, 17);
  const GovernorPlan before = governor->Weigh(request, {}, {}).value();
  EXPECT_FALSE(governor->KnowsCosts(before));
  Teach(governor.get(), before);
  const GovernorPlan after = governor->Weigh(request, {}, {}).value();
  EXPECT_TRUE(governor->KnowsCosts(after));
  EXPECT_TRUE(after.demand.seconds_known);
  EXPECT_NEAR(after.demand.total_seconds(), Total(after), 0.01 * Total(after));
  EXPECT_EQ(after.verdict.decision, Decision::kAdmit);

  const GovernorPlan larger = governor->Weigh(Request(256, 256, 49), {}, {}).value();
  EXPECT_GT(larger.demand.total_seconds(), after.demand.total_seconds());
  Lease lease;
  lease.max_seconds = 5;
  const GovernorPlan refused = governor->Weigh(request, lease, {}).value();
  EXPECT_EQ(refused.verdict.reason, kReasonTimeProjection);
  LeaseMonitor monitor = Governor::Monitor(after);
  EXPECT_NEAR(monitor.projected(), after.demand.seconds, 1e-9);

  // The next process knows what this one has learned.
  const auto next = Make(rungs);
  ASSERT_TRUE(next->CostsFromJson(governor->CostsToJson()).ok());
  EXPECT_NEAR(next->Weigh(request, {}, {})->demand.seconds, after.demand.seconds, 1e-9);
}

TEST_F(GovernorTest, TableHasTheRungsThatTheModelTakes) {
  // 100 is no multiple of 32.
  const auto governor =
      Make({Rung{"", {128, 128, 17}}, Rung{"", {192, 100, 25}}, Rung{"", {256, 192, 25}}});
  const std::vector<GovernorPlan> plans = governor->WeighRungs(Request(128, 128, 17), {}, {});
  ASSERT_EQ(plans.size(), 2);
  EXPECT_EQ(plans[0].verdict.rung, "128x128x17");
  EXPECT_EQ(plans[1].verdict.rung, "256x192x25");
  EXPECT_GT(plans[1].demand.peak_bytes, plans[0].demand.peak_bytes);
}

TEST_F(GovernorTest, WhatJobsHoldIsNotResident) {
  const auto governor = Make({Rung{"", {256, 256, 49}}});
  const int64_t resident = governor->ResidentBytes();
  const auto job = GenerationJob::Create(model_.get(), Request(128, 128, 17)).value();
  ASSERT_TRUE(job->Advance().ok());
  EXPECT_GT(governor->HeldBytes(), 0);
  EXPECT_EQ(governor->ResidentBytes(), resident);
}

}  // namespace
}  // namespace ltx::server
