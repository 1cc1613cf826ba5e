#include "server/governor/first_use_model.h"

#include "gtest/gtest.h"

namespace ltx::server {
namespace {

Novelty Prepares(int64_t attentions, int64_t recorded) {
  Novelty novelty;
  novelty.kind = CostKind::kForward;
  novelty.preparation.attentions = attentions;
  novelty.preparation.recorded = recorded;
  return novelty;
}

/// 36 ms a plan, 30 ms a recording.
double Seconds(const Novelty& novelty) {
  return 0.036 * static_cast<double>(novelty.preparation.attentions) +
         0.03 * static_cast<double>(novelty.preparation.recorded);
}

TEST(FirstUseModelTest, NothingNewCostsNothing) {
  FirstUseModel model;
  model.Observe(Prepares(6, 1), 0.5);
  EXPECT_EQ(model.Predict({}), 0);
}

TEST(FirstUseModelTest, PricesAreThoseOfThings) {
  FirstUseModel model;
  for (const Novelty& novelty :
       {Prepares(6, 1), Prepares(4, 1), Prepares(6, 1), Prepares(0, 1), Prepares(3, 0)}) {
    model.Observe(novelty, Seconds(novelty));
  }
  for (const Novelty& novelty : {Prepares(10, 1), Prepares(0, 1), Prepares(1, 0)}) {
    EXPECT_NEAR(model.Predict(novelty), Seconds(novelty), 0.02 * Seconds(novelty));
  }
  // A price holds for all kinds.
  Novelty text = Prepares(2, 0);
  text.kind = CostKind::kText;
  EXPECT_NEAR(model.Predict(text), Seconds(text), 0.02 * Seconds(text));
}

TEST(FirstUseModelTest, OneSlowUnitMovesNothing) {
  FirstUseModel model;
  for (int i = 0; i < 8; ++i) {
    const Novelty novelty = Prepares(2 + i, 0);
    model.Observe(novelty, Seconds(novelty) + (i == 3 ? 2.0 : 0.0));
  }
  EXPECT_NEAR(model.Predict(Prepares(6, 0)), 6 * 0.036, 0.01);
}

TEST(FirstUseModelTest, PartsOfADecoderDoNotDriveOutForwards) {
  FirstUseModel model;
  for (int i = 0; i < 4; ++i) {
    const Novelty novelty = Prepares(6 - i, 1);
    model.Observe(novelty, Seconds(novelty));
  }
  Novelty part;
  part.kind = CostKind::kVideoDecode;
  part.first_of_computation = true;
  for (int i = 0; i < 100; ++i) model.Observe(part, 0);
  EXPECT_NEAR(model.Predict(Prepares(4, 1)), Seconds(Prepares(4, 1)), 0.01);
}

TEST(FirstUseModelTest, StartingIsPaidOnTopAndOnlyByTheKindThatStarts) {
  FirstUseModel model;
  Novelty first = Prepares(4, 0);
  first.first_of_kind = true;
  // Also before anything says what the four plans cost.
  model.Observe(first, 2.0 + Seconds(first));
  EXPECT_NEAR(model.Predict(first), 2.144, 1e-9);
  model.Observe(Prepares(4, 0), Seconds(first));
  first.preparation.attentions = 10;
  EXPECT_NEAR(model.Predict(first), 2.36, 0.01);
  first.kind = CostKind::kText;
  EXPECT_NEAR(model.Predict(first), 0.36, 0.01);
}

TEST(FirstUseModelTest, WhatIsCommonDoesNotDriveOutWhatIsRare) {
  FirstUseModel model;
  model.Observe(Prepares(4, 0), 0.144);
  const Novelty recorded = Prepares(0, 1);
  for (int i = 0; i < 1000; ++i) model.Observe(recorded, 0.04);
  EXPECT_NEAR(model.Predict(Prepares(4, 0)), 0.144, 1e-3);
  EXPECT_NEAR(model.Predict(recorded), 0.04, 1e-3);
  EXPECT_LE(model.ToNumbers().size(), 100u);
}

TEST(FirstUseModelTest, SurvivesAsNumbers) {
  FirstUseModel model;
  Novelty first = Prepares(4, 1);
  first.first_of_kind = first.first_of_computation = true;
  model.Observe(first, 3.0);
  model.Observe(Prepares(6, 1), 0.4);
  FirstUseModel read;
  ASSERT_TRUE(read.FromNumbers(model.ToNumbers()).ok());
  EXPECT_EQ(read.ToNumbers(), model.ToNumbers());
  EXPECT_EQ(read.Predict(first), model.Predict(first));
}

}  // namespace
}  // namespace ltx::server
