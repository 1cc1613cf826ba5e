#include "tests/adherence/captions.h"

#include <cmath>

namespace ltx::adherence {
namespace {

constexpr char kRight[] = "moves from left to right";
constexpr char kLeft[] = "moves from right to left";

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

}  // namespace

std::string Caption::Text() const {
  std::string text = std::string("a ") + colour + " " + shape + " " + motion_phrase + " on a " +
                     background + " background";
  if (sound_phrase[0] != '\0') text += std::string(", ") + sound_phrase;
  return text;
}

absl::Span<const Caption> Captions() { return kCaptions; }

Adherence Judge(const Caption& caption, const ClipScore& score) {
  Adherence adherence;
  adherence.colour = score.colour == caption.colour;
  adherence.background = score.background == caption.background;
  adherence.motion = score.motion == caption.motion;
  adherence.sound = SoundFits(caption, score);
  return adherence;
}

}  // namespace ltx::adherence
