#include "client/plan_table.h"

#include "gtest/gtest.h"

namespace ltx::client {
namespace {

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

v1::PlanResponse Refused() {
  v1::PlanResponse plan;
  plan.set_decision(v1::PlanResponse::DECISION_REFUSE);
  plan.set_reason("TIME_PROJECTION_EXCEEDS_LEASE");
  plan.set_message("too long");
  plan.mutable_parameters()->set_width(768);
  plan.mutable_parameters()->set_height(448);
  plan.mutable_parameters()->set_num_frames(25);
  plan.mutable_parameters()->set_recipe("distilled");
  plan.mutable_rung()->set_name("768x448x25");
  v1::PhaseProjection* phase = plan.add_phases();
  phase->set_phase(v1::PHASE_STAGE_1);
  phase->set_units(60);
  phase->set_seconds(9720);
  phase->set_peak_bytes(1500000);
  plan.set_seconds_known(true);
  plan.set_projected_seconds(10801.5);
  plan.set_allowed_seconds(7153);
  plan.set_allowed_seconds_source("rung 768x448x25");
  plan.set_projected_bytes(25000000);
  plan.set_largest_fitting_rung("512x320x25");
  return plan;
}

TEST(PlanTableTest, SaysVerdictSumsAndLimits) {
  const std::string text = PlanText(Refused());
  EXPECT_TRUE(Has(text, "refuse [TIME_PROJECTION_EXCEEDS_LEASE]: too long")) << text;
  EXPECT_TRUE(Has(text, "768x448, 25 frames")) << text;
  EXPECT_TRUE(Has(text, "9720.00 s")) << text;
  EXPECT_TRUE(Has(text, "1.5 MB")) << text;
  EXPECT_TRUE(Has(text, "10801.50 s")) << text;
  EXPECT_TRUE(Has(text, "7153.00 s (rung 768x448x25), memory no limit")) << text;
  EXPECT_TRUE(Has(text, "rung 512x320x25")) << text;
}

TEST(PlanTableTest, SaysWhatIsNotKnown) {
  v1::PlanResponse plan = Refused();
  plan.set_seconds_known(false);
  EXPECT_TRUE(Has(PlanText(plan), "not known"));
  EXPECT_FALSE(Has(PlanText(plan), "9720"));
}

TEST(PlanTableTest, SaysWhatWasChosen) {
  v1::PlanResponse plan = Refused();
  plan.add_warnings("passes follow each other");
  EXPECT_TRUE(Has(PlanText(plan), "warning  passes follow each other\n"));
}

TEST(PlanTableTest, OneLineARung) {
  v1::ListRungsResponse rungs;
  *rungs.add_plans() = Refused();
  *rungs.add_plans() = Refused();
  rungs.mutable_plans(1)->mutable_rung()->set_name("large");
  const std::string text = RungsText(rungs);
  EXPECT_TRUE(Has(text, "768x448x25")) << text;
  EXPECT_TRUE(Has(text, "large")) << text;
  EXPECT_TRUE(Has(text, "10801.50 s")) << text;
}

}  // namespace
}  // namespace ltx::client
