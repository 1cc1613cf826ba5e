#include "tests/adherence/clip_scoring.h"

#include <cmath>
#include <functional>
#include <vector>

#include "gtest/gtest.h"

namespace ltx::adherence {
namespace {

constexpr int kFrames = 10;
constexpr int kHeight = 96;
constexpr int kWidth = 128;
constexpr int kRate = 48000;

struct Square {
  double x, y, half;
};

/// A square of one colour over a plain background; `at` places it by the share of the clip gone.
std::vector<float> Draw(const std::function<Square(double)>& at, std::vector<float> colour,
                        std::vector<float> background) {
  std::vector<float> frames;
  for (int f = 0; f < kFrames; ++f) {
    const Square square = at(f / (kFrames - 1.0));
    for (int y = 0; y < kHeight; ++y) {
      for (int x = 0; x < kWidth; ++x) {
        const bool inside =
            std::abs(x - square.x) <= square.half && std::abs(y - square.y) <= square.half;
        const std::vector<float>& rgb = inside ? colour : background;
        frames.insert(frames.end(), rgb.begin(), rgb.end());
      }
    }
  }
  return frames;
}

std::vector<float> Tone(const std::function<double(double)>& frequency) {
  std::vector<float> waveform(2 * kRate);
  double phase = 0;
  for (int i = 0; i < kRate; ++i) {
    phase += 2 * M_PI * frequency(static_cast<double>(i) / kRate) / kRate;
    waveform[i] = waveform[kRate + i] = 0.1f * static_cast<float>(std::sin(phase));
  }
  return waveform;
}

ClipScore Score(const std::vector<float>& frames, const std::vector<float>& waveform = {}) {
  return ScoreClip(frames, kFrames, kHeight, kWidth, waveform, kRate);
}

TEST(ScoreClipTest, TellsMotions) {
  const auto motion = [](const std::function<Square(double)>& at) {
    return Score(Draw(at, {0.9f, 0.1f, 0.1f}, {0, 0, 0})).motion;
  };
  EXPECT_EQ(motion([](double t) { return Square{30 + 60 * t, 48, 10}; }), "right");
  EXPECT_EQ(motion([](double t) { return Square{90 - 60 * t, 48, 10}; }), "left");
  EXPECT_EQ(motion([](double t) { return Square{64, 70 - 50 * t, 10}; }), "up");
  EXPECT_EQ(motion([](double t) { return Square{64, 20 + 50 * t, 10}; }), "down");
  EXPECT_EQ(motion([](double t) { return Square{30 + 60 * t, 20 + 50 * t, 10}; }), "diagonally");
  EXPECT_EQ(motion([](double t) { return Square{64, 48, 8 + 20 * t}; }), "grows");
  EXPECT_EQ(motion([](double t) { return Square{64, 48, 28 - 20 * t}; }), "shrinks");
  EXPECT_EQ(motion([](double) { return Square{64, 48, 12}; }), "still");
}

TEST(ScoreClipTest, TellsColourAndBackground) {
  const auto still = [](double) { return Square{64, 48, 14}; };
  const ClipScore purple = Score(Draw(still, {0.5f, 0.15f, 0.7f}, {0.85f, 0.8f, 0.65f}));
  EXPECT_EQ(purple.colour, "purple");
  EXPECT_EQ(purple.background, "beige");
  const ClipScore white = Score(Draw(still, {0.9f, 0.92f, 0.9f}, {0.3f, 0.18f, 0.06f}));
  EXPECT_EQ(white.colour, "white");
  EXPECT_EQ(white.background, "brown");
}

/// A square whose left and right edges climb over `ramp` pixels.
double EdgeWidthOf(int ramp, float object) {
  std::vector<float> frames;
  for (int f = 0; f < kFrames; ++f) {
    for (int y = 0; y < kHeight; ++y) {
      for (int x = 0; x < kWidth; ++x) {
        const double inside = 20 - std::abs(x - 64.0);
        const double share = std::min(std::max(inside / ramp, 0.0), 1.0);
        frames.insert(frames.end(), 3, object * static_cast<float>(share));
      }
    }
  }
  return Score(frames).edge_width;
}

TEST(ScoreClipTest, MeasuresEdgesWhateverTheirContrast) {
  EXPECT_NEAR(EdgeWidthOf(1, 1.0f), 2, 0.2);
  EXPECT_NEAR(EdgeWidthOf(8, 1.0f), 8.5, 0.7);
  EXPECT_NEAR(EdgeWidthOf(8, 0.4f), EdgeWidthOf(8, 1.0f), 0.2);
}

TEST(ScoreClipTest, TellsPitchesAndSlides) {
  const std::vector<float> frames = Draw(
      [](double) {
        return Square{64, 48, 14};
      },
      {1, 0, 0}, {0, 0, 0});
  EXPECT_NEAR(Score(frames, Tone([](double) { return 600; })).pitch, 600, 2);
  const ClipScore rising = Score(frames, Tone([](double t) { return 600 + 1000 * t; }));
  EXPECT_GT(rising.last_third_pitch - rising.first_third_pitch, 400);
  EXPECT_NEAR(Score(frames, Tone([](double) { return 600; })).rms, 0.1 / std::sqrt(2), 1e-3);
}

}  // namespace
}  // namespace ltx::adherence
