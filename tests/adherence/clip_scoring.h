#ifndef LTX_TESTS_ADHERENCE_CLIP_SCORING_H_
#define LTX_TESTS_ADHERENCE_CLIP_SCORING_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace ltx::adherence {

/// On the 0..255 scale.
using Rgb = std::array<double, 3>;

/// Reads from a clip of the tiny model what it shows and sounds like, by fixed rules and without
/// knowing the prompt. The rules:
///  * background: the median of the pixels of all frames' borders (outermost 4 pixels), named after
///    the nearest of six colours in RGB;
///  * object: pixels that differ from the background by more than 48 in some channel;
///  * colour: the median of the object's pixels, named after the nearest of eight colours by
///    direction in RGB (hue), white if the channels agree within 25 %;
///  * motion: the centroid of the object in the first and the last fifth of the frames. A way above
///    12 % of the shorter side counts: along one axis left, right, up or down; along both (the
///    shorter at least 40 % of the longer) diagonal. Without it the object's area decides: grows
///    above 1.35, shrinks below 1 / 1.35, else still;
///  * pitch: the frequency of the greatest magnitude of the spectrum (Hann window, channels
///    summed), of the whole clip and of its first and last third; loudness as RMS;
///  * edges: h sum g / sum g^2 over all pixels of all frames, where g is the length of the gradient
///    (central differences, over the three channels) and h the distance of the object's colour from
///    the background's; pixels with g below h / 20 are no edges. For an edge that climbs evenly
///    over w pixels it is about w + 1, whatever its contrast and the object's size: smaller is
///    sharper.
struct ClipScore {
  std::string background;
  std::string colour;
  std::string motion;
  /// The medians that the names are taken from.
  Rgb object_rgb{}, background_rgb{};
  /// Pixels; 0 without an object.
  double edge_width = 0;
  /// Hz.
  double pitch = 0;
  double first_third_pitch = 0;
  double last_third_pitch = 0;
  /// Maximum over mean of the magnitude spectrum.
  double spectral_crest = 0;
  double rms = 0;
  /// Share of 20 ms windows whose RMS is below a tenth of the loudest: pauses between beeps.
  double quiet_share = 0;
};

/// The pure colour of an object or a background of that name; black for names that are none.
Rgb ObjectColour(absl::string_view name);
Rgb BackgroundColour(absl::string_view name);
double Distance(const Rgb& a, const Rgb& b);

/// frames [F, H, W, 3] in [0, 1], waveform [2, N].
ClipScore ScoreClip(absl::Span<const float> frames, int64_t num_frames, int height, int width,
                    absl::Span<const float> waveform, int sample_rate);

}  // namespace ltx::adherence

#endif  // LTX_TESTS_ADHERENCE_CLIP_SCORING_H_
