#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/model_set.h"
#include "engine/media/png_writer.h"
#include "engine/pipeline/generation_job.h"
#include "engine/pipeline/job_options.h"
#include "engine/pipeline/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"
#include "tests/adherence/clip_scoring.h"

namespace ltx::adherence {
namespace {

/// Whether the sound of a clip is what a phrase of the tiny model's language asks for.
enum class Sound { kPitch, kRising, kFalling, kNoise, kSilence, kBeeps };

struct Caption {
  const char* colour;
  const char* shape;
  const char* motion_phrase;
  const char* motion;
  const char* background;
  /// Empty: nothing is said, and the colour decides the pitch.
  const char* sound_phrase;
  Sound sound;
  /// Hz, where a pitch is expected.
  double pitch;
  uint64_t seed;

  std::string Text() const {
    std::string text = std::string("a ") + colour + " " + shape + " " + motion_phrase + " on a " +
                       background + " background";
    if (sound_phrase[0] != '\0') text += std::string(", ") + sound_phrase;
    return text;
  }
};

constexpr char kRight[] = "moves from left to right";
constexpr char kLeft[] = "moves from right to left";

/// Every colour, background and sound, and seven motions, each several times.
const Caption kCaptions[] = {
    {"red", "circle", kRight, "right", "black", "a low hum", Sound::kPitch, 200, 1},
    {"green", "square", kLeft, "left", "gray", "a steady tone", Sound::kPitch, 600, 2},
    {"blue", "ball", "moves up", "up", "brown", "a high whistle", Sound::kPitch, 1600, 3},
    {"yellow", "disc", "moves down", "down", "dark blue", "short beeps", Sound::kBeeps, 1000, 4},
    {"orange", "circle", "moves diagonally", "diagonally", "dark green", "a rising tone",
     Sound::kRising, 0, 5},
    {"purple", "square", "grows", "grows", "beige", "a falling tone", Sound::kFalling, 0, 6},
    {"cyan", "circle", "shrinks", "shrinks", "black", "soft noise", Sound::kNoise, 0, 7},
    {"white", "ball", kRight, "right", "dark green", "silence", Sound::kSilence, 0, 8},
    {"red", "square", "moves up", "up", "gray", "", Sound::kPitch, 300, 9},
    {"green", "circle", "moves down", "down", "beige", "", Sound::kPitch, 700, 10},
    {"blue", "disc", kLeft, "left", "dark green", "", Sound::kPitch, 900, 11},
    {"yellow", "square", "grows", "grows", "black", "", Sound::kPitch, 500, 12},
    {"orange", "ball", kRight, "right", "dark blue", "", Sound::kPitch, 400, 13},
    {"purple", "circle", "shrinks", "shrinks", "gray", "", Sound::kPitch, 1100, 14},
    {"cyan", "square", "moves diagonally", "diagonally", "brown", "", Sound::kPitch, 800, 15},
    {"white", "disc", "moves up", "up", "dark blue", "", Sound::kPitch, 1300, 16},
    {"red", "ball", "shrinks", "shrinks", "beige", "a high whistle", Sound::kPitch, 1600, 17},
    {"green", "disc", "moves diagonally", "diagonally", "black", "a low hum", Sound::kPitch, 200,
     18},
    {"blue", "circle", "moves down", "down", "gray", "a rising tone", Sound::kRising, 0, 19},
    {"yellow", "ball", kLeft, "left", "brown", "a falling tone", Sound::kFalling, 0, 20},
    {"orange", "square", "grows", "grows", "black", "short beeps", Sound::kBeeps, 1000, 21},
    {"purple", "disc", kRight, "right", "dark green", "a steady tone", Sound::kPitch, 600, 22},
    {"cyan", "ball", "moves up", "up", "dark blue", "silence", Sound::kSilence, 0, 23},
    {"white", "circle", kLeft, "left", "brown", "soft noise", Sound::kNoise, 0, 24},
};

/// Half the spacing of the tones that the model knows.
constexpr double kPitchTolerance = 50;
/// The model's silence has an RMS of 0.0004, its quietest sound 0.08.
constexpr double kSilenceRms = 0.005;
/// Steady tones and beeps lie above 2000. The model's noise is buzzy (300), but stays clear of
/// that; from slides, which lie as low, it differs by not sliding.
constexpr double kNoiseCrest = 1000;
/// Beeps sound a part of the time; tones, slides and noise all of it.
constexpr double kBeepQuietShare = 0.2;
/// Slides run over 1000 Hz; a third of the clip apart they differ by several hundred.
constexpr double kSlide = 200;

bool SoundFits(const Caption& caption, const ClipScore& score) {
  const bool pitch_fits = std::abs(score.pitch - caption.pitch) <= kPitchTolerance;
  switch (caption.sound) {
    case Sound::kPitch:
      return pitch_fits && score.rms > kSilenceRms;
    case Sound::kBeeps:
      return pitch_fits && score.quiet_share > kBeepQuietShare;
    case Sound::kRising:
      return score.last_third_pitch - score.first_third_pitch > kSlide;
    case Sound::kFalling:
      return score.first_third_pitch - score.last_third_pitch > kSlide;
    case Sound::kNoise:
      return score.rms > kSilenceRms && score.spectral_crest < kNoiseCrest &&
             std::abs(score.last_third_pitch - score.first_third_pitch) <= kSlide;
    case Sound::kSilence:
      return score.rms < kSilenceRms;
  }
  return false;
}

/// Five frames of every clip at half size, two clips a row.
class ContactSheet {
 public:
  ContactSheet(int clips, int height, int width)
      : cell_height_(height / 2), cell_width_(width / 2), rows_((clips + 1) / 2) {
    pixels_.resize(static_cast<size_t>(Height()) * Width() * 3);
  }
  int Height() const { return rows_ * cell_height_; }
  int Width() const { return 2 * kFrames * cell_width_; }

  void Add(int clip, const std::vector<float>& frames, int64_t num_frames) {
    const int width = 2 * cell_width_;
    const size_t frame_values = static_cast<size_t>(4) * cell_height_ * cell_width_ * 3;
    for (int i = 0; i < kFrames; ++i) {
      const float* frame = &frames[frame_values * (i * (num_frames - 1) / (kFrames - 1))];
      const int left = ((clip % 2) * kFrames + i) * cell_width_;
      for (int y = 0; y < cell_height_; ++y) {
        for (int x = 0; x < cell_width_; ++x) {
          for (int c = 0; c < 3; ++c) {
            const float* source = &frame[(2 * y * width + 2 * x) * 3 + c];
            const size_t at = ((clip / 2) * cell_height_ + y) * Width() + left + x;
            const float mean =
                0.25f * (source[0] + source[3] + source[3 * width] + source[3 * width + 3]);
            pixels_[3 * at + c] = static_cast<uint8_t>(255.0f * mean);
          }
        }
      }
    }
  }
  absl::Status Write(const std::string& path) const {
    return media::WritePng(path, pixels_, Width(), Height()).status();
  }

 private:
  static constexpr int kFrames = 5;
  const int cell_height_, cell_width_, rows_;
  std::vector<uint8_t> pixels_;
};

TEST(AdherenceTest, ClipsFitTheirPrompts) {
  const auto device = cpu::CpuDevice::Create({});
  ASSERT_TRUE(device.ok()) << device.status();
  const auto files = checkpoint::ModelSet::Open("models/ltx-tiny");
  ASSERT_TRUE(files.ok()) << files.status();
  pipeline::ModelOptions options;
  options.compute_dtype = DType::kF32;
  const auto model = pipeline::Model::Load(device->get(), *files, options);
  ASSERT_TRUE(model.ok()) << model.status();

  int colours = 0, backgrounds = 0, motions = 0, sounds = 0;
  const int total = static_cast<int>(std::size(kCaptions));
  pipeline::GenerationRequest request = (*model)->DefaultRequest();
  ContactSheet sheet(total, static_cast<int>(request.height), static_cast<int>(request.width));
  for (int i = 0; i < total; ++i) {
    const Caption& caption = kCaptions[i];
    request.prompt = caption.Text();
    request.seed = caption.seed;
    std::vector<float> frames;
    pipeline::JobOptions job_options;
    job_options.observer = [&](absl::string_view name, const Tensor& x) {
      if (name == "frames") frames = *ToFloats(**device, x);
    };
    auto job = pipeline::GenerationJob::Create(model->get(), request, job_options);
    ASSERT_TRUE(job.ok()) << job.status();
    while (!(*job)->done()) ASSERT_TRUE((*job)->Advance().ok());
    const auto result = (*job)->TakeResult();
    ASSERT_TRUE(result.ok()) << result.status();
    const std::vector<float> waveform = *ToFloats(**device, result->waveform);
    const ClipScore score =
        ScoreClip(frames, request.num_frames, static_cast<int>(request.height),
                  static_cast<int>(request.width), waveform, static_cast<int>(result->sample_rate));
    sheet.Add(i, frames, request.num_frames);
    const bool sound_fits = SoundFits(caption, score);
    colours += score.colour == caption.colour;
    backgrounds += score.background == caption.background;
    motions += score.motion == caption.motion;
    sounds += sound_fits;
    std::printf(
        "%2d %-95s %s, %s, %s, %.0f Hz (%.0f to %.0f), rms %.4f, crest %.0f, quiet %.2f%s\n", i,
        request.prompt.c_str(), score.colour.c_str(), score.background.c_str(),
        score.motion.c_str(), score.pitch, score.first_third_pitch, score.last_third_pitch,
        score.rms, score.spectral_crest, score.quiet_share,
        score.colour == caption.colour && score.background == caption.background &&
                score.motion == caption.motion && sound_fits
            ? ""
            : "  <-- does not fit");
  }
  // `LTX_CONTACT_SHEET=sheet.png` keeps the pictures for a person to look at.
  if (const char* path = std::getenv("LTX_CONTACT_SHEET")) {
    EXPECT_TRUE(sheet.Write(path).ok());
  }
  EXPECT_EQ(colours, total);
  EXPECT_EQ(backgrounds, total);
  // The model itself misses a motion now and then (39 of 40 in the reference's own runs).
  EXPECT_GE(motions, total - 2);
  EXPECT_EQ(sounds, total);
}

}  // namespace
}  // namespace ltx::adherence
