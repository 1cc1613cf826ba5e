#ifndef LTX_TESTS_ADHERENCE_CAPTIONS_H_
#define LTX_TESTS_ADHERENCE_CAPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "tests/adherence/clip_scoring.h"

namespace ltx::adherence {

/// What the sound of a clip ought to be.
enum class Sound { kPitch, kRising, kFalling, kNoise, kSilence, kBeeps };

/// A sentence in the language of the tiny model, and what a clip of it shows and sounds like.
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

  std::string Text() const;
};

/// Every colour, background and sound, and seven motions, each several times.
absl::Span<const Caption> Captions();

/// Which parts of a caption its clip keeps.
struct Adherence {
  bool colour = false, background = false, motion = false, sound = false;
  bool all() const { return colour && background && motion && sound; }
};
Adherence Judge(const Caption& caption, const ClipScore& score);

}  // namespace ltx::adherence

#endif  // LTX_TESTS_ADHERENCE_CAPTIONS_H_
