#include "server/governor/verdict.h"

#include <optional>
#include <string>

#include "engine/pipeline/error_details.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"
#include "server/reasons.h"
#include "server/rpc_details.h"

namespace ltx::server {
namespace {

constexpr int64_t kGigabyte = 1'000'000'000;

/// The ladder of a node that gives a clip 7,153 seconds and 64 GB.
RungLadder Ladder() {
  std::vector<Rung> rungs(2);
  rungs[0].geometry = {768, 448, 25};
  rungs[1].geometry = {1280, 704, 121};
  for (Rung& rung : rungs) {
    rung.max_seconds = 7153;
    rung.max_bytes = 64 * kGigabyte;
  }
  return RungLadder::Create(rungs).value();
}

/// 30 guided steps of two forwards each: the first forward is ready after 481.5 s, then 162 s each,
/// and 600 s of decoding and encoding.
Demand GuidedClip() {
  Demand demand;
  demand.geometry = {1280, 704, 121};
  demand.seconds_known = true;
  demand.phases = {{"prepare", 1, 481.5, 2 * kGigabyte},
                   {"stage1", 60, 60 * 162.0, 6 * kGigabyte},
                   {"tail", 1, 600.0, 9 * kGigabyte}};
  for (const PhaseDemand& phase : demand.phases) demand.seconds += phase.seconds;
  demand.resident_bytes = 42 * kGigabyte;
  demand.peak_bytes = 9 * kGigabyte;
  return demand;
}

Demand SmallClip() {
  Demand demand = GuidedClip();
  demand.geometry = {768, 448, 25};
  demand.phases = {{"prepare", 1, 120.0, kGigabyte},
                   {"stage1", 60, 60 * 12.0, kGigabyte},
                   {"tail", 1, 60.0, kGigabyte}};
  demand.seconds = 120 + 60 * 12.0 + 60;
  demand.peak_bytes = kGigabyte;
  return demand;
}

TEST(VerdictTest, AClipThatOutrunsItsRungIsRefusedWithTheSumAndTheRungThatFits) {
  const RungLadder ladder = Ladder();
  Verdict verdict = Decide(ladder, {}, GuidedClip(), {});
  EXPECT_EQ(verdict.decision, Decision::kRefuse);
  EXPECT_EQ(verdict.reason, kReasonTimeProjection);
  EXPECT_EQ(verdict.rung, "1280x704x121");
  // 481.5 + 60 x 162 + 600.
  EXPECT_DOUBLE_EQ(GuidedClip().seconds, 10801.5);
  EXPECT_NE(verdict.message.find("1.08e+04 s"), std::string::npos) << verdict.message;
  EXPECT_NE(verdict.message.find("7153 s"), std::string::npos) << verdict.message;
  EXPECT_NE(verdict.arithmetic.find("stage1 60 x 162 s"), std::string::npos) << verdict.arithmetic;
  EXPECT_NE(verdict.arithmetic.find("481.5 s"), std::string::npos) << verdict.arithmetic;
  verdict.largest_rung = LargestFittingRung(ladder, {}, {}, [](const Rung& rung) {
    return std::optional<Demand>(rung.name == "768x448x25" ? SmallClip() : GuidedClip());
  });
  EXPECT_EQ(verdict.largest_rung, "768x448x25");
  EXPECT_EQ(Decide(ladder, {}, SmallClip(), {}).decision, Decision::kAdmit);

  const absl::Status status = ToStatus(verdict);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("768x448x25"), absl::string_view::npos);
  const auto detail = pipeline::GetErrorDetail(status);
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->reason, "TIME_PROJECTION_EXCEEDS_LEASE");
  EXPECT_NE(detail->legal.find("768x448x25"), std::string::npos);
  google::rpc::Status wire;
  AppendRpcDetails(status, &wire);
  ASSERT_EQ(wire.details_size(), 1);
  google::rpc::QuotaFailure quota;
  ASSERT_TRUE(wire.details(0).UnpackTo(&quota));
  EXPECT_EQ(quota.violations(0).subject(), "device:0/time");
}

TEST(VerdictTest, MemoryThatNeverFitsIsRefused) {
  Demand demand = GuidedClip();
  demand.seconds = 100;
  demand.peak_bytes = 30 * kGigabyte;
  const Verdict verdict = Decide(Ladder(), {}, demand, {});
  EXPECT_EQ(verdict.decision, Decision::kRefuse);
  EXPECT_EQ(verdict.reason, kReasonMemoryProjection);
  EXPECT_EQ(verdict.projected, "72.00 GB");
  EXPECT_EQ(verdict.allowed, "64.00 GB");
  google::rpc::Status wire;
  AppendRpcDetails(ToStatus(verdict), &wire);
  google::rpc::QuotaFailure quota;
  ASSERT_EQ(wire.details_size(), 1);
  ASSERT_TRUE(wire.details(0).UnpackTo(&quota));
  EXPECT_EQ(quota.violations(0).subject(), "device:0/memory");
  EXPECT_NE(quota.violations(0).description().find("72.00 GB"), std::string::npos);
  // The sum that is too large, and no other.
  EXPECT_EQ(verdict.arithmetic.find("memory:"), 0) << verdict.arithmetic;
  EXPECT_EQ(verdict.arithmetic.find("time:"), std::string::npos) << verdict.arithmetic;
}

TEST(VerdictTest, OnlyWhatRefusesIsSummedUp) {
  EXPECT_NE(Decide(Ladder(), {}, SmallClip(), {}).arithmetic.find("\nmemory:"), std::string::npos);
  Lease lease;
  lease.max_seconds = 1;
  const Verdict late = Decide(Ladder(), lease, SmallClip(), {});
  EXPECT_EQ(late.arithmetic.find("time:"), 0) << late.arithmetic;
  EXPECT_EQ(late.arithmetic.find("memory:"), std::string::npos) << late.arithmetic;
  Lease soon;
  soon.deadline_seconds = 1;
  const Verdict missed = Decide(Ladder(), soon, SmallClip(), {});
  EXPECT_EQ(missed.arithmetic.find("time:"), 0) << missed.arithmetic;
  EXPECT_EQ(missed.arithmetic.find("memory:"), std::string::npos) << missed.arithmetic;
}

TEST(VerdictTest, BytesAreToldInUnitsThatFit) {
  EXPECT_EQ(HumanBytes(0), "0 bytes");
  EXPECT_EQ(HumanBytes(999), "999 bytes");
  EXPECT_EQ(HumanBytes(1000), "1.0 KB");
  EXPECT_EQ(HumanBytes(45'600), "45.6 KB");
  EXPECT_EQ(HumanBytes(12'300'000), "12.3 MB");
  EXPECT_EQ(HumanBytes(12'340'000'000), "12.34 GB");
}

TEST(VerdictTest, TheDeviceIsABudgetToo) {
  Supply supply;
  supply.device_bytes = 40 * kGigabyte;
  const Verdict verdict = Decide(Ladder(), {}, SmallClip(), supply);
  EXPECT_EQ(verdict.decision, Decision::kRefuse);
  EXPECT_NE(verdict.message.find("the device"), std::string::npos);
}

TEST(VerdictTest, ALeaseLowersBudgetsAndNeverRaisesThem) {
  Rung rung;
  rung.name = "r";
  rung.max_seconds = 100;
  rung.max_bytes = 1000;
  Lease lease;
  lease.max_seconds = 50;
  lease.max_bytes = 5000;
  const Budgets budgets = BudgetsOf(&rung, lease, 0);
  EXPECT_EQ(budgets.seconds.value, 50);
  EXPECT_EQ(budgets.seconds.source, "the request's max_seconds");
  EXPECT_EQ(budgets.bytes.value, 1000);
  EXPECT_EQ(budgets.bytes.source, "rung r");
  const Budgets none = BudgetsOf(nullptr, {}, 0);
  EXPECT_FALSE(none.seconds.value.has_value());
  EXPECT_FALSE(none.bytes.value.has_value());

  lease.max_seconds = 800;
  EXPECT_EQ(Decide(Ladder(), lease, SmallClip(), {}).decision, Decision::kRefuse);
  lease.max_bytes.reset();
  lease.max_seconds = 1000;
  EXPECT_EQ(Decide(Ladder(), lease, SmallClip(), {}).decision, Decision::kAdmit);
}

TEST(VerdictTest, ADeadlineThatCannotBeMetIsRefusedNow) {
  Lease lease;
  lease.deadline_seconds = 1500;
  EXPECT_EQ(Decide(Ladder(), lease, SmallClip(), {}).decision, Decision::kAdmit);
  Supply busy;
  busy.jobs_ahead = 2;
  busy.seconds_ahead = 700;
  const Verdict verdict = Decide(Ladder(), lease, SmallClip(), busy);
  EXPECT_EQ(verdict.decision, Decision::kRefuse);
  EXPECT_EQ(verdict.reason, kReasonDeadlineProjection);
  EXPECT_EQ(ToStatus(verdict).code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(VerdictTest, WhatFitsLaterWaits) {
  Supply busy;
  busy.jobs_ahead = 1;
  busy.seconds_ahead = 30;
  Verdict verdict = Decide(Ladder(), {}, SmallClip(), busy);
  EXPECT_EQ(verdict.decision, Decision::kWait);
  EXPECT_EQ(verdict.wait_seconds, 30);
  EXPECT_TRUE(ToStatus(verdict).ok());

  busy.held_bytes = 30 * kGigabyte;
  verdict = Decide(Ladder(), {}, SmallClip(), busy);
  EXPECT_EQ(verdict.decision, Decision::kWait);
  EXPECT_EQ(verdict.reason, kReasonMemoryHeld);
}

TEST(VerdictTest, NoRungNoClip) {
  Demand demand = SmallClip();
  demand.geometry = {1920, 1088, 121};
  const Verdict verdict = Decide(Ladder(), {}, demand, {});
  EXPECT_EQ(verdict.decision, Decision::kRefuse);
  EXPECT_EQ(verdict.reason, kReasonNoRung);
  EXPECT_EQ(verdict.allowed, "1280x704x121");
  EXPECT_EQ(ToStatus(verdict).code(), absl::StatusCode::kInvalidArgument);
}

TEST(VerdictTest, UnknownTimeRefusesNothing) {
  Demand demand = GuidedClip();
  demand.seconds_known = false;
  const Verdict verdict = Decide(Ladder(), {}, demand, {});
  EXPECT_EQ(verdict.decision, Decision::kAdmit);
  EXPECT_NE(verdict.arithmetic.find("not known"), std::string::npos);
}

TEST(VerdictTest, FirstUseCounts) {
  Demand demand = SmallClip();
  demand.first_use_seconds = 7000;
  EXPECT_EQ(Decide(Ladder(), {}, demand, {}).reason, kReasonTimeProjection);
}

}  // namespace
}  // namespace ltx::server
