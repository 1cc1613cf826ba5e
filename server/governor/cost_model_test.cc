#include "server/governor/cost_model.h"

#include <cmath>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/governor/plan_cost.h"

namespace ltx::server {
namespace {

/// A forward over T tokens in P passes, in units of some transformer: text is a constant part of
/// the products.
CostUnit Forward(double tokens, double passes = 1) {
  CostUnit unit;
  unit.kind = CostKind::kForward;
  unit[CostTerm::kUnit] = 1;
  unit[CostTerm::kProducts] = passes * (0.3 * tokens + 100);
  unit[CostTerm::kAttention] = passes * 1e-3 * tokens * tokens;
  unit[CostTerm::kBytes] = passes * (2e-3 * tokens + 0.5);
  return unit;
}

double Seconds(const CostUnit& unit) {
  return 0.02 + 0.001 * unit[CostTerm::kProducts] + 0.004 * unit[CostTerm::kAttention];
}

/// Measures it so often that first use is behind it.
void Learn(CostModel* model, const CostUnit& unit, double seconds, int times = 4) {
  for (int i = 0; i < times; ++i) model->Observe(unit, seconds);
}

TEST(CostModelTest, KnowsNothingAtFirst) {
  CostModel model;
  EXPECT_FALSE(model.Predict(Forward(100)).has_value());
  EXPECT_FALSE(model.PredictAll({Forward(100)}).known);
  EXPECT_FALSE(model.knows(CostKind::kForward));
}

TEST(CostModelTest, ProjectsShapesThatWereNeverMeasured) {
  CostModel model;
  for (const double tokens : {200, 800, 2000, 4000}) {
    Learn(&model, Forward(tokens), Seconds(Forward(tokens)));
  }
  // Only passes tell what belongs to a unit from what every pass has of its own.
  Learn(&model, Forward(800, 2), Seconds(Forward(800, 2)));
  for (const double tokens : {400, 1344, 3000, 6144, 14080}) {
    const double expected = Seconds(Forward(tokens));
    EXPECT_NEAR(*model.Predict(Forward(tokens)), expected, 0.01 * expected) << tokens;
    // Two passes in one evaluation.
    const double twice = Seconds(Forward(tokens, 2));
    EXPECT_NEAR(*model.Predict(Forward(tokens, 2)), twice, 0.01 * twice) << tokens;
  }
}

TEST(CostModelTest, MoreWorkNeverCostsLess) {
  CostModel model;
  // Noise that a free fit would turn into a parabola that bends down.
  Learn(&model, Forward(500), 1.0);
  Learn(&model, Forward(1000), 1.9);
  Learn(&model, Forward(2000), 2.1);
  double before = 0;
  for (int tokens = 250; tokens < 50000; tokens *= 2) {
    const double seconds = *model.Predict(Forward(tokens));
    EXPECT_GE(seconds, before) << tokens;
    before = seconds;
  }
}

CostUnit Decode(double bytes) {
  CostUnit unit;
  unit.kind = CostKind::kVideoDecode;
  unit[CostTerm::kUnit] = 1;
  unit[CostTerm::kBytes] = bytes;
  unit[CostTerm::kProducts] = bytes;
  return unit;
}

TEST(CostModelTest, TimeThatIsNotLinearIsBentToTheMeasuredSizes) {
  CostModel model;
  // From 40 to 70 a gigabyte, as large tensors leave the caches: no sum of terms rises like that.
  const auto seconds = [](double bytes) { return bytes * (40 + 10 * bytes); };
  for (const double bytes : {0.25, 1.0, 1.5, 2.0, 3.0}) {
    Learn(&model, Decode(bytes), seconds(bytes));
  }
  for (const double bytes : {0.6, 0.8, 1.2, 1.7, 2.5}) {
    EXPECT_NEAR(*model.Predict(Decode(bytes)), seconds(bytes), 0.06 * seconds(bytes)) << bytes;
  }
  // Beyond what was measured it goes on in proportion.
  EXPECT_NEAR(*model.Predict(Decode(6)), 2 * seconds(3), 0.1 * seconds(6));
}

TEST(CostModelTest, ASizeThatStandsOutDoesNotLiftTheOthers) {
  CostModel model;
  // Ten seconds a gigabyte, and one small size that takes five times as long.
  Learn(&model, Decode(0.1), 5.0);
  for (const double bytes : {0.2, 0.3, 0.4, 0.5, 0.6, 1.0}) {
    Learn(&model, Decode(bytes), 10 * bytes);
  }
  for (const double bytes : {0.35, 0.45, 0.8}) {
    EXPECT_NEAR(*model.Predict(Decode(bytes)), 10 * bytes, 1.2 * bytes) << bytes;
  }
  double before = 0;
  // Between the measured sizes, each of which has a median of its own.
  for (int percent = 5; percent < 200; percent += 4) {
    const double seconds = *model.Predict(Decode(0.01 * percent));
    EXPECT_GE(seconds, before) << percent;
    before = seconds;
  }
}

/// What a unit that comes next costs besides.
double FirstUse(const CostModel& model, const CostUnit& unit) {
  return model.PredictAll({unit}).first_use_seconds;
}

TEST(CostModelTest, FirstUseThatIsNoneIsNotMadeOfNoise) {
  CostModel model;
  // The first of a size is now faster, now slower than the next.
  for (int i = 0; i < 8; ++i) {
    const double noise = i % 2 == 0 ? 0.05 : -0.05;
    model.Observe(Forward(500 + 100 * i), 1 + noise);
    model.Observe(Forward(500 + 100 * i), 1 - noise);
  }
  EXPECT_NEAR(FirstUse(model, Forward(5000)), 0, 0.05);
}

TEST(CostModelTest, EncodingIsPaidByPixelAndByFrame) {
  CostModel model;
  const auto seconds = [](int64_t side, int64_t frames) {
    return 0.006 + 20e-9 * static_cast<double>(side * side * frames) +
           1.4e-3 * static_cast<double>(frames);
  };
  const auto mux = [](int64_t side, int64_t frames) {
    return MuxCost(side, side, frames, frames * 2000);
  };
  for (const auto& [side, frames] : {std::pair{128, 17}, {256, 25}, {256, 49}, {192, 49}}) {
    Learn(&model, mux(side, frames), seconds(side, frames));
  }
  for (const auto& [side, frames] : {std::pair{128, 41}, {192, 17}, {224, 33}}) {
    EXPECT_NEAR(*model.Predict(mux(side, frames)), seconds(side, frames),
                0.03 * seconds(side, frames))
        << side << " " << frames;
  }
}

TEST(CostModelTest, EncodingHasNoFirstUseOfASize) {
  CostModel model;
  Learn(&model, MuxCost(128, 128, 17, 34000), 0.05);
  // It counts at once, as slow as it was.
  model.Observe(MuxCost(256, 256, 49, 98000), 0.4);
  EXPECT_NEAR(*model.Predict(MuxCost(256, 256, 49, 98000)), 0.4, 0.05);
  EXPECT_EQ(FirstUse(model, MuxCost(256, 192, 25, 50000)), 0);
}

TEST(CostModelTest, FirstUseIsKeptApart) {
  CostModel model;
  // Three seconds of compilation on top of the first of each computation.
  model.Observe(Forward(500), 4.0);
  Learn(&model, Forward(500), 1.0);
  model.Observe(Forward(1000), 5.0);
  Learn(&model, Forward(1000), 2.0);
  const CostUnit fresh = Forward(2000);
  const double steady = *model.Predict(fresh);
  EXPECT_NEAR(FirstUse(model, fresh), 3.0, 1e-6);
  model.Observe(fresh, steady + 3.0);
  EXPECT_NEAR(*model.Predict(fresh), steady, 1e-9);
  // It has been met now; another one has not.
  EXPECT_EQ(FirstUse(model, fresh), 0);
  EXPECT_NEAR(FirstUse(model, Forward(3000)), 3.0, 1e-6);
}

/// A forward that has to make `attentions` plans, and is recorded.
CostUnit New(CostUnit unit, int64_t attentions) {
  unit.preparation.attentions = attentions;
  unit.preparation.recorded = 1;
  return unit;
}

/// What that takes: 36 ms a plan, 30 ms for recording.
double PreparationSeconds(const CostUnit& unit) {
  return 0.036 * static_cast<double>(unit.preparation.attentions) +
         0.03 * static_cast<double>(unit.preparation.recorded);
}

void LearnNew(CostModel* model, const CostUnit& unit) {
  model->Observe(unit, Seconds(unit) + PreparationSeconds(unit));
  CostUnit later = unit;
  later.preparation = {};
  Learn(model, later, Seconds(later));
}

TEST(CostModelTest, ANewSizeIsProjectedByWhatItPrepares) {
  CostModel model;
  // The very first forward of a process has more that is new.
  model.Observe(New(Forward(300), 6), 7.0);
  Learn(&model, Forward(300), Seconds(Forward(300)));
  LearnNew(&model, New(Forward(400), 6));
  LearnNew(&model, New(Forward(800), 4));
  LearnNew(&model, New(Forward(2000), 4));
  LearnNew(&model, New(Forward(4000), 5));
  // The sound of this one is as long as that of one before: fewer plans.
  const CostUnit fresh = New(Forward(3000), 3);
  EXPECT_NEAR(FirstUse(model, fresh), PreparationSeconds(fresh), 0.02 * PreparationSeconds(fresh));
  EXPECT_NEAR(*model.Predict(fresh), Seconds(fresh), 0.02 * Seconds(fresh));
  // A size that has been made costs nothing but its work, and nothing of the rest is in that.
  EXPECT_EQ(FirstUse(model, Forward(800)), 0);
  EXPECT_NEAR(*model.Predict(Forward(800)), Seconds(Forward(800)), 1e-9);
  // Its plans may have been dropped since.
  CostUnit dropped = Forward(800);
  dropped.preparation.attentions = 4;
  EXPECT_NEAR(FirstUse(model, dropped), 4 * 0.036, 0.005);
}

TEST(CostModelTest, UnitsThatRecordAreNoMeasurementOfTheOthers) {
  CostModel model;
  CostUnit recorded = Forward(500);
  recorded.preparation.recorded = 1;
  Learn(&model, Forward(400), 0.02);
  Learn(&model, Forward(500), 0.03);
  for (int i = 0; i < 5; ++i) {
    model.Observe(recorded, 0.075);
    model.Observe(Forward(500), 0.03);
  }
  EXPECT_NEAR(*model.Predict(Forward(500)), 0.03, 1e-9);
  EXPECT_NEAR(FirstUse(model, recorded), 0.045, 1e-3);
}

TEST(CostModelTest, WhatTheFitMissesIsNoFirstUse) {
  CostModel model;
  Learn(&model, Forward(500), 1.0);
  const double first_use = FirstUse(model, Forward(3000));
  // Ten times what a fit through one shape says, the first time as the second.
  const double slow = 10 * *model.Predict(Forward(1000));
  model.Observe(Forward(1000), slow);
  model.Observe(Forward(1000), slow);
  EXPECT_LE(FirstUse(model, Forward(3000)), first_use);
}

TEST(CostModelTest, TheVeryFirstUnitDoesNotSpoilTheFit) {
  CostModel model;
  model.Observe(Forward(500), 9.0);
  EXPECT_TRUE(model.knows(CostKind::kForward));
  EXPECT_NEAR(*model.Predict(Forward(500)), 9.0, 1e-9);
  model.Observe(Forward(500), 1.0);
  EXPECT_NEAR(*model.Predict(Forward(500)), 1.0, 1e-9);
  // Starting is paid once in a process, not once a size.
  EXPECT_NEAR(FirstUse(model, Forward(700)), 0, 1e-9);
  CostModel next;
  ASSERT_TRUE(next.FromJson(model.ToJson()).ok());
  const CostModel::Total total = next.PredictAll({Forward(500), Forward(500), Forward(700)});
  EXPECT_NEAR(total.first_use_seconds, 8.0, 1e-6);
  EXPECT_NEAR(total.units[0].first_use_seconds, 8.0, 1e-6);
  EXPECT_EQ(total.units[1].first_use_seconds, 0);
}

TEST(CostModelTest, StartAndNoiseAreNoComputationOfTheirOwn) {
  CostModel model;
  CostUnit start = Forward(500);
  start[CostTerm::kStart] = 1;
  start[CostTerm::kNormals] = 2;
  start[CostTerm::kBytes] += 1;
  model.Observe(start, 5.0);
  // The second step is not its first use: it counts at once.
  model.Observe(Forward(500), 1.0);
  EXPECT_NEAR(*model.Predict(Forward(500)), 1.0, 1e-9);
}

TEST(CostModelTest, PromptsOfEveryLengthAreOneComputation) {
  CostModel model;
  CostUnit prompt = Forward(20);
  prompt.kind = CostKind::kText;
  model.Observe(prompt, 3.0);
  CostUnit longer = Forward(30);
  longer.kind = CostKind::kText;
  model.Observe(longer, 1.0);
  EXPECT_NEAR(*model.Predict(longer), 1.0, 1e-9);
  EXPECT_EQ(FirstUse(model, longer), 0);
}

TEST(CostModelTest, OneBadMeasurementMovesNothing) {
  CostModel model;
  Learn(&model, Forward(500), 1.0, 6);
  model.Observe(Forward(500), 50.0);
  EXPECT_NEAR(*model.Predict(Forward(500)), 1.0, 1e-9);
}

TEST(CostModelTest, FollowsAMachineThatChanged) {
  CostModel model;
  Learn(&model, Forward(500), 1.0, 33);
  Learn(&model, Forward(500), 2.0, 33);
  EXPECT_NEAR(*model.Predict(Forward(500)), 2.0, 1e-9);
}

TEST(CostModelTest, SumsAPlanAndPaysFirstUseOncePerComputation) {
  CostModel model;
  Learn(&model, Forward(500), 1.0);
  const double steady = *model.Predict(Forward(1000));
  model.Observe(Forward(1000), steady + 4.0);
  model.Observe(Forward(1000), steady);
  const CostModel::Total total =
      model.PredictAll({Forward(500), Forward(2000), Forward(2000), Forward(3000)});
  EXPECT_TRUE(total.known);
  EXPECT_NEAR(total.seconds,
              *model.Predict(Forward(500)) + 2 * *model.Predict(Forward(2000)) +
                  *model.Predict(Forward(3000)),
              1e-9);
  EXPECT_NEAR(total.first_use_seconds, 2 * FirstUse(model, Forward(2000)), 1e-9);
  CostUnit mux;
  mux.kind = CostKind::kMux;
  EXPECT_FALSE(model.PredictAll({Forward(500), mux}).known);
}

TEST(CostModelTest, MeasurementsThatAreNoTimeAreLeftOut) {
  CostModel model;
  for (const double seconds : {0.0, -1.0, double{NAN}, double{INFINITY}, 1e9}) {
    model.Observe(Forward(500), seconds);
    model.Observe(Forward(500), seconds);
  }
  EXPECT_FALSE(model.knows(CostKind::kForward));
}

TEST(CostModelTest, KeepsABoundedNumberOfShapes) {
  CostModel model;
  for (int i = 1; i <= 1000; ++i) Learn(&model, Forward(10.0 * i), 1.0 + i, 2);
  EXPECT_LE(model.num_shapes(), 256);
}

TEST(CostModelTest, SurvivesAsText) {
  CostModel model;
  model.Observe(Forward(500), 4.0);
  Learn(&model, Forward(500), 1.0);
  Learn(&model, Forward(1000), 1.7);
  model.Observe(Forward(4000), 9.0);
  CostModel read;
  ASSERT_TRUE(read.FromJson(model.ToJson()).ok());
  for (const double tokens : {500, 700, 1000, 3000}) {
    EXPECT_EQ(*read.Predict(Forward(tokens)), *model.Predict(Forward(tokens))) << tokens;
  }
  EXPECT_EQ(read.ToJson(), model.ToJson());
  // Another process has compiled nothing yet.
  EXPECT_EQ(FirstUse(model, Forward(4000)), 0);
  EXPECT_GT(FirstUse(read, Forward(4000)), 0);
}

/// A file of costs with other first uses.
std::string WithFirstUse(const std::string& text, const std::string& first_use) {
  nlohmann::json root = nlohmann::json::parse(text);
  root["first_use"] = nlohmann::json::parse(first_use);
  return root.dump();
}

TEST(CostModelTest, HostileTextIsRefusedAndChangesNothing) {
  CostModel model;
  Learn(&model, Forward(500), 1.0);
  const std::string good = model.ToJson();
  std::string negative = good;
  negative.replace(negative.find("1.0"), 3, "-1.");
  std::string huge = good;
  huge.replace(huge.find("1.0"), 3, "1e9");
  for (const std::string& text :
       {std::string(), std::string("null"), std::string("[]"), std::string("{}"),
        std::string("{\"format\": 1}"), std::string("{\"format\": \"1\"}"),
        good.substr(0, good.size() / 2), negative, huge, WithFirstUse(good, "3"),
        WithFirstUse(good, "[[1, 0, 1]]"), WithFirstUse(good, "[[9, 0, 1, 0, 0, 0, 0, 0, 1, 1]]"),
        WithFirstUse(good, "[[1, 0, 0.5, 0, 0, 0, 0, 0, 1, 1]]"),
        WithFirstUse(good, "[[1, 0, 1, -1, 0, 0, 0, 0, 1, 1]]"),
        WithFirstUse(good, "[[1, 0, 1, 0, 0, 0, 0, 0, 1, 1e9]]"),
        WithFirstUse(good, "[[1, 0, 1, 0, 0, 0, 0, 0, 1, \"1\"]]"),
        std::string("{\"format\":1,\"text\":3,\"forward\":{}}"), std::string(100000, '[')}) {
    const absl::Status status = model.FromJson(text);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text.substr(0, 80);
    EXPECT_EQ(model.ToJson(), good);
  }
}

}  // namespace
}  // namespace ltx::server
