#ifndef LTX_ENGINE_SAMPLING_LATENT_GEOMETRY_H_
#define LTX_ENGINE_SAMPLING_LATENT_GEOMETRY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace ltx::sampling {

/// How many pixel frames, rows and columns one latent cell stands for.
struct ScaleFactors {
  int64_t time = 8;
  int64_t height = 32;
  int64_t width = 32;
};

/// Extents of a video latent, in cells.
struct VideoLatentExtents {
  int64_t frames = 0;
  int64_t height = 0;
  int64_t width = 0;
  /// One token per cell.
  int64_t tokens() const { return frames * height * width; }
};

/// (frames - 1) / 8 + 1, height / 32, width / 32, rounded down.
VideoLatentExtents LatentExtentsOf(int64_t frames, int64_t height, int64_t width,
                                   const ScaleFactors& factors = {});

/// Pixel frames that a latent of `latent_frames` decodes to: (latent_frames - 1) * 8 + 1.
int64_t PixelFramesOf(int64_t latent_frames, const ScaleFactors& factors = {});

/// Audio latent frames, which are the audio tokens, of a clip: seconds * 25 in double, rounded half
/// to even. 25 is 16000 Hz / 160 samples per mel frame / 4 mel frames per latent frame; the
/// reference fixes all three.
int64_t AudioLatentFrames(double seconds);

/// The largest 8k + 1 that is not above `frames`. INVALID_ARGUMENT if frames < 1.
absl::StatusOr<int64_t> SnapFramesDown(int64_t frames, const ScaleFactors& factors = {});

/// A predicted duration as a frame count (reference: helpers.py:seconds_to_clamped_num_frames):
/// rounded half to even, clamped, snapped down to 8k + 1; if that falls below `min_frames`, the
/// next 8k + 1 above it, but at most `max_frames`. INVALID_ARGUMENT for numbers that are no
/// duration, rate or range.
absl::StatusOr<int64_t> FramesForDuration(double seconds, double frame_rate, int64_t min_frames,
                                          int64_t max_frames, const ScaleFactors& factors = {});

/// Pixel frames of `count` keyframes spread evenly inside a clip, ends excluded: linspace over
/// count + 2 points in f32, rounded half to even. INVALID_ARGUMENT if count is negative or the clip
/// has fewer than count + 2 frames (an empty list needs none).
absl::StatusOr<std::vector<int64_t>> EvenKeyframePositions(int64_t count, int64_t num_frames);

/// Intervals of the video tokens, [batch, 3, tokens, 2] row-major: time in seconds, row and column
/// in pixels of this stage. Tokens run over frames, rows, columns, the last fastest. Latent frame 0
/// covers one pixel frame, frame k >= 1 covers [8k - 7, 8k + 1). Times are pixel frames divided by
/// the rate in f32.
std::vector<float> VideoPositions(const VideoLatentExtents& extents, double frame_rate,
                                  int64_t batch = 1, const ScaleFactors& factors = {});

/// [batch, tokens]: 1 for the tokens of the first latent frame, which stand for a single pixel
/// frame; else 0.
std::vector<float> FirstFrameMask(const VideoLatentExtents& extents, int64_t batch = 1);

}  // namespace ltx::sampling

#endif  // LTX_ENGINE_SAMPLING_LATENT_GEOMETRY_H_
