#include "engine/verify/clip_verifier.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::verify {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kHeight = 24;
constexpr int kWidth = 32;
constexpr int kRate = 48000;

/// A bright square that moves one pixel a frame over a black background.
std::vector<uint8_t> MovingSquare(int frames) {
  std::vector<uint8_t> bytes(static_cast<size_t>(frames) * kHeight * kWidth * 3, 0);
  for (int f = 0; f < frames; ++f) {
    for (int y = 8; y < 14; ++y) {
      for (int x = f % 24; x < f % 24 + 6; ++x) bytes[((f * kHeight + y) * kWidth + x) * 3] = 220;
    }
  }
  return bytes;
}

ClipView View(const std::vector<uint8_t>& frames, const std::vector<float>& waveform = {}) {
  ClipView view;
  view.frames = SplitFrames(frames, kHeight * kWidth * 3);
  view.height = kHeight;
  view.width = kWidth;
  view.waveform = waveform;
  view.audio_channels = waveform.empty() ? 0 : 2;
  view.audio_sample_rate = kRate;
  return view;
}

TEST(VerifyClipTest, AMovingShapeOnBlackWithSilencePasses) {
  const auto report = VerifyClip(View(MovingSquare(17), std::vector<float>(2 * 4800, 0.0f)));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->passed) << FormatReport(*report);
  EXPECT_EQ(report->distinct_frames, 17);
  EXPECT_EQ(report->near_black_frames, 0);
  const double silence = -std::numeric_limits<double>::infinity();
  EXPECT_THAT(report->audio_rms_dbfs, ElementsAre(silence, silence));
  EXPECT_THAT(FormatReport(*report), HasSubstr("-inf"));
  EXPECT_LT(report->adjacent_far_ratio, 0.5);
}

TEST(VerifyClipTest, ThreadsDoNotShowInTheFigures) {
  const std::vector<uint8_t> frames = MovingSquare(17);
  const auto alone = VerifyClip(View(frames));
  const auto shared = VerifyClip(View(frames), {}, 5);
  EXPECT_EQ(FormatReport(*shared), FormatReport(*alone));
  // Neighbours share all but a column of the square at each end: two columns of six red pixels.
  EXPECT_DOUBLE_EQ(shared->adjacent_mad, 2.0 * 6 * 220 / (kHeight * kWidth * 3));
}

TEST(VerifyClipTest, AFrozenClipFails) {
  std::vector<uint8_t> frames = MovingSquare(1);
  const std::vector<uint8_t> one = frames;
  for (int i = 0; i < 8; ++i) frames.insert(frames.end(), one.begin(), one.end());
  const auto report = VerifyClip(View(frames));
  EXPECT_FALSE(report->passed);
  EXPECT_THAT(report->failures, ElementsAre(HasSubstr("only 1 of 9")));
}

TEST(VerifyClipTest, ABlackClipFails) {
  std::vector<uint8_t> frames(5 * kHeight * kWidth * 3, 3);
  for (int f = 0; f < 5; ++f) frames[f * kHeight * kWidth * 3] = 4 + f;
  const auto report = VerifyClip(View(frames));
  EXPECT_THAT(report->failures,
              ElementsAre("every frame is near-black", "every frame is near-uniform"));
}

TEST(VerifyClipTest, AUniformGreyClipFails) {
  std::vector<uint8_t> frames;
  for (int f = 0; f < 5; ++f) frames.insert(frames.end(), kHeight * kWidth * 3, 100 + f);
  EXPECT_THAT(VerifyClip(View(frames))->failures, ElementsAre("every frame is near-uniform"));
}

TEST(VerifyClipTest, NoiseFails) {
  std::vector<uint8_t> frames(9 * kHeight * kWidth * 3);
  uint32_t state = 7;
  for (uint8_t& byte : frames) {
    state = state * 1664525u + 1013904223u;
    byte = state >> 24;
  }
  const auto report = VerifyClip(View(frames));
  EXPECT_NEAR(report->adjacent_far_ratio, 1.0, 0.02);
  EXPECT_THAT(report->failures, ElementsAre(HasSubstr("noise")));
}

TEST(VerifyClipTest, SoundAlone) {
  const auto alone = [](std::vector<float> waveform) {
    ClipView view;
    view.waveform = waveform;
    view.audio_channels = 2;
    view.audio_sample_rate = kRate;
    return VerifyClip(view);
  };
  EXPECT_TRUE(alone(std::vector<float>(9600, 0.25f))->passed);
  EXPECT_THAT(alone(std::vector<float>(9600, 0.0f))->failures, ElementsAre(HasSubstr("silent")));
  EXPECT_THAT(alone(std::vector<float>(9600, std::nanf("")))->failures,
              ElementsAre(HasSubstr("not finite")));
  EXPECT_EQ(alone({}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(VerifyClipTest, SoundFiguresOfAPureTone) {
  const int samples = kRate / 2;
  std::vector<float> waveform(2 * samples);
  for (int i = 0; i < samples; ++i) {
    waveform[i] = waveform[samples + i] = 0.5f * std::sin(2 * M_PI * 400 * i / kRate);
  }
  const auto report = VerifyClip(View(MovingSquare(13), waveform));
  // RMS of a sine of amplitude 0.5: 20 log10(0.5 / sqrt 2).
  EXPECT_NEAR(report->audio_rms_dbfs[0], -9.03, 0.01);
  EXPECT_LT(report->audio_envelope_cv, 0.01);
  EXPECT_GT(report->audio_spectral_crest, 1000);
}

TEST(VerifyClipTest, NoiseHasALowCrestAndBeepsHaveAHighEnvelopeVariation) {
  const int samples = kRate / 2;
  std::vector<float> noise(2 * samples);
  uint32_t state = 3;
  for (float& value : noise) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<int32_t>(state)) * 1e-10f;
  }
  EXPECT_LT(VerifyClip(View(MovingSquare(13), noise))->audio_spectral_crest, 10);
  std::vector<float> beeps(2 * samples, 0.0f);
  for (int i = 0; i < samples; ++i) {
    if ((i / 1920) % 2 == 0) beeps[i] = beeps[samples + i] = std::sin(0.1f * i);
  }
  EXPECT_GT(VerifyClip(View(MovingSquare(13), beeps))->audio_envelope_cv, 0.9);
}

TEST(VerifyClipTest, NonFiniteSamplesFail) {
  std::vector<float> waveform(2 * 960, 0.1f);
  waveform[5] = std::nanf("");
  EXPECT_THAT(VerifyClip(View(MovingSquare(5), waveform))->failures,
              ElementsAre(HasSubstr("1 sound samples are not finite")));
}

TEST(VerifyClipTest, AStillOfOneFramePasses) {
  const auto report = VerifyClip(View(MovingSquare(1)));
  EXPECT_TRUE(report->passed);
  EXPECT_EQ(report->adjacent_mad, 0);
}

TEST(VerifyClipTest, RefusesCountsThatDoNotMatch) {
  const std::vector<uint8_t> frames = MovingSquare(2);
  ClipView view = View(frames);
  view.frames[1].remove_suffix(3);
  EXPECT_EQ(VerifyClip(view).status().code(), absl::StatusCode::kInvalidArgument);
  view = View(frames);
  view.height = 0;
  EXPECT_EQ(VerifyClip(view).status().code(), absl::StatusCode::kInvalidArgument);
  view.frames.clear();
  EXPECT_EQ(VerifyClip(view).status().code(), absl::StatusCode::kInvalidArgument);
  const std::vector<float> odd(3);
  view = View(frames, odd);
  EXPECT_EQ(VerifyClip(view).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ltx::verify
