#include "server/calibration_sizes.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::server {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

pipeline::GenerationRequest Usual(int64_t width, int64_t height, int64_t num_frames) {
  pipeline::GenerationRequest request;
  request.recipe = pipeline::Recipe::kDistilled;
  request.prompt = "a red circle moves up, a low hum";
  request.width = width;
  request.height = height;
  request.num_frames = num_frames;
  return request;
}

std::vector<std::string> Names(const std::vector<Geometry>& sizes) {
  std::vector<std::string> names;
  names.reserve(sizes.size());
  for (const Geometry& size : sizes) names.push_back(size.ToString());
  return names;
}

Rung Of(int64_t width, int64_t height, int64_t num_frames) {
  Rung rung;
  rung.geometry = {width, height, num_frames};
  return rung;
}

TEST(CalibrationSizesTest, ShortClipsOfSeveralAreasComeBeforeTheRungs) {
  const RungLadder ladder =
      RungLadder::FromModel({768, 512, 121}, {32, 32, 1}, {2048, 2048, 1001}, 64);
  EXPECT_THAT(Names(CalibrationSizes(Usual(768, 512, 121), {}, ladder)),
              ElementsAre("384x256x1", "768x512x121", "768x512x25", "384x256x25", "1152x768x25",
                          "576x384x25", "960x640x25", "384x256x121", "384x256x241", "768x512x241",
                          "1152x768x121", "1536x1024x121"));
}

TEST(CalibrationSizesTest, WhatTheModelDoesNotTakeIsLeftOut) {
  pipeline::RequestLimits limits;
  limits.min_frames = 17;
  limits.max_frames = 49;
  limits.min_size = 96;
  limits.max_size = 256;
  const RungLadder ladder = RungLadder::Create({Of(128, 128, 25), Of(256, 192, 25)}).value();
  EXPECT_THAT(Names(CalibrationSizes(Usual(256, 192, 25), limits, ladder)),
              ElementsAre("128x128x17", "256x192x25", "256x192x17", "192x128x17", "128x128x25"));
}

TEST(CalibrationSizesTest, EveryRungIsMadeUnlessItIsFarLarger) {
  const RungLadder ladder = RungLadder::Create({Of(256, 256, 9), Of(512, 320, 25),
                                                Of(1536, 1024, 121), Of(2048, 1088, 121)})
                                .value();
  const std::vector<std::string> names = Names(CalibrationSizes(Usual(768, 512, 121), {}, ladder));
  EXPECT_THAT(names, Contains("256x256x9"));
  EXPECT_THAT(names, Contains("512x320x25"));
  EXPECT_THAT(names, Contains("1536x1024x121"));
  EXPECT_THAT(names, Not(Contains("2048x1088x121")));
}

}  // namespace
}  // namespace ltx::server
