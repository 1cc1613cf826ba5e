#include "server/calibration_requests.h"

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

/// The sizes of what a calibration asks a model of these limits for.
std::vector<std::string> Sizes(const pipeline::GenerationRequest& usual,
                               const pipeline::RequestLimits& limits, const RungLadder& ladder) {
  const std::vector<pipeline::GenerationRequest> requests = CalibrationRequests(
      usual, limits.min_frames, ladder, [&](const pipeline::GenerationRequest& request) {
        return pipeline::ValidateRequest(request, limits);
      });
  std::vector<std::string> names;
  names.reserve(requests.size());
  for (const pipeline::GenerationRequest& request : requests) {
    names.push_back(Geometry{request.width, request.height, request.num_frames}.ToString());
  }
  return names;
}

TEST(CalibrationRequestsTest, ShortClipsOfSeveralAreasComeBeforeTheRungs) {
  const RungLadder ladder =
      RungLadder::FromModel({768, 512, 121}, {32, 32, 1}, {2048, 2048, 1001}, 64);
  EXPECT_THAT(Sizes(Usual(768, 512, 121), {}, ladder),
              ElementsAre("384x256x1", "768x512x121", "768x512x25", "384x256x25", "1152x768x25",
                          "576x384x25", "960x640x25", "384x256x121", "384x256x241", "768x512x241",
                          "1152x768x121", "1536x1024x121"));
}

TEST(CalibrationRequestsTest, WhatTheModelDoesNotTakeIsLeftOut) {
  pipeline::RequestLimits limits;
  limits.min_frames = 17;
  limits.max_frames = 49;
  limits.min_size = 96;
  limits.max_size = 256;
  const RungLadder ladder =
      RungLadder::Create({Rung{"", {128, 128, 25}}, Rung{"", {256, 192, 25}}}).value();
  EXPECT_THAT(Sizes(Usual(256, 192, 25), limits, ladder),
              ElementsAre("128x128x17", "256x192x25", "256x192x17", "192x128x17", "128x128x25"));
}

TEST(CalibrationRequestsTest, EveryRungIsMadeUnlessItIsFarLarger) {
  const RungLadder ladder =
      RungLadder::Create({Rung{"", {256, 256, 9}}, Rung{"", {512, 320, 25}},
                          Rung{"", {1536, 1024, 121}}, Rung{"", {2048, 1088, 121}}})
          .value();
  const std::vector<std::string> names = Sizes(Usual(768, 512, 121), {}, ladder);
  EXPECT_THAT(names, Contains("256x256x9"));
  EXPECT_THAT(names, Contains("512x320x25"));
  EXPECT_THAT(names, Contains("1536x1024x121"));
  EXPECT_THAT(names, Not(Contains("2048x1088x121")));
}

}  // namespace
}  // namespace ltx::server
