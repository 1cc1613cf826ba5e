#include "server/governor/first_use_model.h"

#include "gtest/gtest.h"

namespace ltx::server {
namespace {

Novelty Prepares(int64_t products, double work, int64_t attentions) {
  Novelty novelty;
  novelty.kind = CostKind::kForward;
  novelty.preparation.products = products;
  novelty.preparation.product_work = work;
  novelty.preparation.attentions = attentions;
  return novelty;
}

/// 15 ms a product, 80 ms for 10^12 multiply-adds, 36 ms a plan.
double Seconds(const Novelty& novelty) {
  return 0.015 * static_cast<double>(novelty.preparation.products) +
         0.08e-12 * novelty.preparation.product_work +
         0.036 * static_cast<double>(novelty.preparation.attentions);
}

TEST(FirstUseModelTest, NothingNewCostsNothing) {
  FirstUseModel model;
  model.Observe(Prepares(8, 1e12, 6), 0.03, 0.5);
  EXPECT_EQ(model.Predict({}, 1.0), 0);
}

TEST(FirstUseModelTest, PricesAreThoseOfThings) {
  FirstUseModel model;
  for (const Novelty& novelty :
       {Prepares(8, 0.1e12, 6), Prepares(6, 0.8e12, 4), Prepares(8, 0.3e12, 6),
        Prepares(6, 2.4e12, 4), Prepares(5, 0.2e12, 0), Prepares(0, 0, 3)}) {
    model.Observe(novelty, 0.03, Seconds(novelty));
  }
  for (const Novelty& novelty : {Prepares(6, 5e12, 4), Prepares(2, 1e12, 0), Prepares(0, 0, 1)}) {
    EXPECT_NEAR(model.Predict(novelty, 0.03), Seconds(novelty), 0.02 * Seconds(novelty));
  }
  // A price holds for all kinds.
  Novelty text = Prepares(5, 0.1e12, 2);
  text.kind = CostKind::kText;
  EXPECT_NEAR(model.Predict(text, 0.03), Seconds(text), 0.02 * Seconds(text));
}

TEST(FirstUseModelTest, OneSlowUnitMovesNothing) {
  FirstUseModel model;
  for (int i = 0; i < 8; ++i) {
    const Novelty novelty = Prepares(0, 0, 2 + i);
    model.Observe(novelty, 0.03, Seconds(novelty) + (i == 3 ? 2.0 : 0.0));
  }
  EXPECT_NEAR(model.Predict(Prepares(0, 0, 6), 0.03), 6 * 0.036, 0.01);
}

TEST(FirstUseModelTest, PartsOfADecoderDoNotDriveOutForwards) {
  FirstUseModel model;
  for (int i = 0; i < 4; ++i) {
    const Novelty novelty = Prepares(3 + i, 0, 6 - i);
    model.Observe(novelty, 0.03, Seconds(novelty));
  }
  Novelty part;
  part.kind = CostKind::kVideoDecode;
  part.first_of_computation = true;
  for (int i = 0; i < 100; ++i) model.Observe(part, 0.005, 0);
  EXPECT_NEAR(model.Predict(Prepares(5, 0, 4), 0.03), Seconds(Prepares(5, 0, 4)), 0.01);
}

TEST(FirstUseModelTest, StartingIsPaidOnTopAndOnlyByTheKindThatStarts) {
  FirstUseModel model;
  Novelty first = Prepares(0, 0, 4);
  first.first_of_kind = true;
  // Also before anything says what the four plans cost.
  model.Observe(first, 0.03, 2.0 + Seconds(first));
  EXPECT_NEAR(model.Predict(first, 0.03), 2.144, 1e-9);
  model.Observe(Prepares(0, 0, 4), 0.03, Seconds(first));
  first.preparation.attentions = 10;
  EXPECT_NEAR(model.Predict(first, 0.03), 2.36, 0.01);
  first.kind = CostKind::kText;
  EXPECT_NEAR(model.Predict(first, 0.03), 0.36, 0.01);
}

TEST(FirstUseModelTest, TheHostBoundsWhatIsIssued) {
  FirstUseModel model;
  Novelty issued;
  issued.kind = CostKind::kForward;
  issued.preparation.issued = 1;
  EXPECT_EQ(model.Predict(issued, 0.02), 0);
  model.Observe(issued, 0.02, 0.042);
  // As fast as ever: this one says nothing of the host.
  model.Observe(issued, 0.3, 0.001);
  EXPECT_NEAR(model.Predict(issued, 0.02), 0.042, 1e-9);
  EXPECT_NEAR(model.Predict(issued, 0.05), 0.012, 1e-9);
  EXPECT_EQ(model.Predict(issued, 0.3), 0);
}

TEST(FirstUseModelTest, WhatIsCommonDoesNotDriveOutWhatIsRare) {
  FirstUseModel model;
  model.Observe(Prepares(0, 0, 4), 0.03, 0.144);
  Novelty recorded;
  recorded.kind = CostKind::kForward;
  recorded.preparation.recorded = 1;
  for (int i = 0; i < 1000; ++i) model.Observe(recorded, 0.03, 0.04);
  EXPECT_NEAR(model.Predict(Prepares(0, 0, 4), 0.03), 0.144, 1e-3);
  EXPECT_NEAR(model.Predict(recorded, 0.03), 0.04, 1e-3);
  EXPECT_LE(model.ToNumbers().size(), 100u);
}

TEST(FirstUseModelTest, SurvivesAsNumbers) {
  FirstUseModel model;
  Novelty first = Prepares(3, 1e12, 4);
  first.first_of_kind = first.first_of_computation = true;
  model.Observe(first, 0.03, 3.0);
  model.Observe(Prepares(6, 1e12, 4), 0.03, 0.4);
  FirstUseModel read;
  ASSERT_TRUE(read.FromNumbers(model.ToNumbers()).ok());
  EXPECT_EQ(read.ToNumbers(), model.ToNumbers());
  EXPECT_EQ(read.Predict(first, 0.03), model.Predict(first, 0.03));
}

}  // namespace
}  // namespace ltx::server
