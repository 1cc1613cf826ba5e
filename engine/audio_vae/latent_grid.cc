#include "engine/audio_vae/latent_grid.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::audio_vae {
namespace {

/// No clip comes near; keeps the rounding below well inside int64.
constexpr double kMaxSeconds = 86400.0;
/// The decoder's time factor is a constant of the reference, whatever the level count.
constexpr int64_t kDecoderTimeFactor = 4;

double RoundHalfToEven(double value) {
  const double below = std::floor(value);
  const double fraction = value - below;
  if (fraction != 0.5) return fraction < 0.5 ? below : below + 1.0;
  return std::fmod(below, 2.0) == 0.0 ? below : below + 1.0;
}

}  // namespace

absl::StatusOr<int64_t> LatentGrid::LatentFrames(int64_t video_frames, double fps) const {
  if (video_frames < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("frames = ", video_frames, "; must not be negative"));
  }
  if (!std::isfinite(fps) || fps <= 0.0) {
    return absl::InvalidArgumentError(
        absl::StrCat("fps = ", fps, "; must be a positive finite number"));
  }
  const double seconds = static_cast<double>(video_frames) / fps;
  if (!(seconds <= kMaxSeconds)) {
    return absl::InvalidArgumentError(absl::StrCat("frames = ", video_frames, " at fps = ", fps,
                                                   " last ", seconds, " s; at most ", kMaxSeconds,
                                                   " s"));
  }
  const double latents_per_second = static_cast<double>(sample_rate) /
                                    static_cast<double>(hop_length) /
                                    static_cast<double>(time_factor);
  return static_cast<int64_t>(RoundHalfToEven(seconds * latents_per_second));
}

std::vector<std::array<float, 2>> LatentGrid::TokenBounds(int64_t count, int64_t shift) const {
  const auto seconds = [this](int64_t latent_frame) {
    int64_t mel_frame = latent_frame * time_factor;
    if (causal) mel_frame = std::max<int64_t>(mel_frame + 1 - time_factor, 0);
    return static_cast<float>(mel_frame) * static_cast<float>(hop_length) /
           static_cast<float>(sample_rate);
  };
  std::vector<std::array<float, 2>> bounds(std::max<int64_t>(count, 0));
  for (int64_t i = 0; i < count; ++i) bounds[i] = {seconds(i + shift), seconds(i + shift + 1)};
  return bounds;
}

int64_t LatentGrid::MelFrames(int64_t latent_frames, bool causal_decoder) {
  const int64_t frames = latent_frames * kDecoderTimeFactor;
  return causal_decoder ? std::max<int64_t>(frames - (kDecoderTimeFactor - 1), 1) : frames;
}

absl::StatusOr<Tensor> PatchifyAudio(Device& device, const Tensor& latent) {
  LTX_ASSIGN_OR_RETURN(const Tensor frames_first, device.Permute(latent, {0, 2, 1, 3}));
  return frames_first.Reshape(Shape({latent.dim(0), latent.dim(2), latent.dim(1) * latent.dim(3)}));
}

absl::StatusOr<Tensor> UnpatchifyAudio(Device& device, const Tensor& tokens, int64_t channels) {
  if (channels < 1 || tokens.rank() != 3 || tokens.dim(2) % channels != 0) {
    return absl::InvalidArgumentError(absl::StrCat("audio tokens ", tokens.shape().ToString(),
                                                   "; must be [B, L, ", channels, " x bins]"));
  }
  LTX_ASSIGN_OR_RETURN(
      const Tensor split,
      tokens.Reshape(Shape({tokens.dim(0), tokens.dim(1), channels, tokens.dim(2) / channels})));
  return device.Permute(split, {0, 2, 1, 3});
}

}  // namespace ltx::audio_vae
