#include "engine/sampling/latent_geometry.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::sampling {
namespace {

// Python's round(): ties go to the even neighbour, whatever the rounding mode of this thread.
double RoundHalfToEven(double value) {
  const double below = std::floor(value);
  const double fraction = value - below;
  if (fraction != 0.5) return fraction < 0.5 ? below : below + 1.0;
  return std::fmod(below, 2.0) == 0.0 ? below : below + 1.0;
}

}  // namespace

VideoLatentExtents LatentExtentsOf(int64_t frames, int64_t height, int64_t width,
                                   const ScaleFactors& factors) {
  return {(frames - 1) / factors.time + 1, height / factors.height, width / factors.width};
}

int64_t PixelFramesOf(int64_t latent_frames, const ScaleFactors& factors) {
  return (latent_frames - 1) * factors.time + 1;
}

int64_t AudioLatentFrames(double seconds) {
  constexpr double kLatentsPerSecond = 25.0;
  return static_cast<int64_t>(RoundHalfToEven(seconds * kLatentsPerSecond));
}

absl::StatusOr<int64_t> SnapFramesDown(int64_t frames, const ScaleFactors& factors) {
  if (frames < 1) {
    return absl::InvalidArgumentError(absl::StrCat("frames = ", frames, "; must be at least 1"));
  }
  return (frames - 1) / factors.time * factors.time + 1;
}

absl::StatusOr<int64_t> FramesForDuration(double seconds, double frame_rate, int64_t min_frames,
                                          int64_t max_frames, const ScaleFactors& factors) {
  if (!std::isfinite(seconds) || !std::isfinite(frame_rate) || frame_rate <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("seconds = ", seconds,
                                                   " at frame_rate = ", frame_rate,
                                                   "; must be finite, the rate above ", "0"));
  }
  if (min_frames < 1 || max_frames < min_frames) {
    return absl::InvalidArgumentError(absl::StrCat("min_frames = ", min_frames, ", max_frames = ",
                                                   max_frames, "; must be 1 or more, in order"));
  }
  // Clamped before the conversion to an integer: a prediction may be absurd.
  const double frames =
      std::clamp(RoundHalfToEven(seconds * frame_rate), static_cast<double>(min_frames),
                 static_cast<double>(max_frames));
  LTX_ASSIGN_OR_RETURN(const int64_t snapped,
                       SnapFramesDown(static_cast<int64_t>(frames), factors));
  if (snapped >= min_frames) return snapped;
  const int64_t above = (min_frames - 1 + factors.time - 1) / factors.time * factors.time + 1;
  return std::min(above, max_frames);
}

absl::StatusOr<std::vector<int64_t>> EvenKeyframePositions(int64_t count, int64_t num_frames) {
  if (count < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_generated_keyframes = ", count, "; must not be negative"));
  }
  if (count == 0) return std::vector<int64_t>{};
  if (num_frames - 2 < count) {
    return absl::InvalidArgumentError(absl::StrCat("num_generated_keyframes = ", count,
                                                   " needs at least ", count + 2,
                                                   " frames, but num_frames = ", num_frames));
  }
  // torch.linspace counts from both ends towards the middle.
  const int64_t points = count + 2;
  const auto end = static_cast<float>(num_frames - 1);
  const float step = end / static_cast<float>(points - 1);
  std::vector<int64_t> positions;
  for (int64_t i = 1; i + 1 < points; ++i) {
    const float position = i < points / 2 ? step * static_cast<float>(i)
                                          : end - step * static_cast<float>(points - 1 - i);
    positions.push_back(static_cast<int64_t>(RoundHalfToEven(position)));
  }
  return positions;
}

std::vector<float> VideoPositions(const VideoLatentExtents& extents, double frame_rate,
                                  int64_t batch, const ScaleFactors& factors) {
  const int64_t tokens = extents.tokens();
  const auto rate = static_cast<float>(frame_rate);
  const auto seconds = [&](int64_t latent_frame) {
    const int64_t frame = std::max<int64_t>(latent_frame * factors.time + 1 - factors.time, 0);
    return static_cast<float>(frame) / rate;
  };
  std::vector<float> positions(batch * 3 * tokens * 2);
  for (int64_t b = 0; b < batch; ++b) {
    float* time = positions.data() + b * 3 * tokens * 2;
    float* row = time + tokens * 2;
    float* column = row + tokens * 2;
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t w = t % extents.width;
      const int64_t h = t / extents.width % extents.height;
      const int64_t f = t / extents.width / extents.height;
      for (int64_t bound = 0; bound < 2; ++bound) {
        time[2 * t + bound] = seconds(f + bound);
        row[2 * t + bound] = static_cast<float>((h + bound) * factors.height);
        column[2 * t + bound] = static_cast<float>((w + bound) * factors.width);
      }
    }
  }
  return positions;
}

std::vector<float> FirstFrameMask(const VideoLatentExtents& extents, int64_t batch) {
  const int64_t tokens = extents.tokens();
  std::vector<float> mask(batch * tokens, 0.0f);
  for (int64_t b = 0; b < batch; ++b) {
    std::fill_n(mask.begin() + b * tokens, std::min(tokens, extents.height * extents.width), 1.0f);
  }
  return mask;
}

}  // namespace ltx::sampling
