#ifndef LTX_ENGINE_AUDIO_VAE_LATENT_GRID_H_
#define LTX_ENGINE_AUDIO_VAE_LATENT_GRID_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device.h"

namespace ltx::audio_vae {

/// How audio latent frames lie in time. The defaults are those of every released model: 16 kHz, hop
/// 160, four mel frames per latent frame, hence 25 latent frames per second.
struct LatentGrid {
  int64_t sample_rate = 16000;
  int64_t hop_length = 160;
  int64_t time_factor = 4;
  /// The first mel frame stands alone, so that latent i ends with mel frame 4 i.
  bool causal = true;

  /// Latent frames of a clip: (video_frames / fps) times the latent rate in f64, rounded half to
  /// even (source: the reference's types.py:AudioLatentShape.from_video_pixel_shape). May be 0 for
  /// a clip shorter than half a latent frame (20 ms), which nothing downstream accepts.
  /// INVALID_ARGUMENT naming the value if frames < 0, fps is not a positive finite number, or the
  /// clip is longer than a day.
  absl::StatusOr<int64_t> LatentFrames(int64_t video_frames, double fps) const;

  /// [start, end) of tokens 0 .. count-1 in seconds, counted from latent frame `shift`. Evaluated
  /// in f32, product first, as the reference does
  /// (components/patchifiers.py:AudioPatchifier).
  std::vector<std::array<float, 2>> TokenBounds(int64_t count, int64_t shift = 0) const;

  /// Mel frames of `latent_frames`: 4 L - 3, at least 1, if `causal_decoder`, else 4 L.
  static int64_t MelFrames(int64_t latent_frames, bool causal_decoder);
};

/// Latent [B, channels, L, bins] (the reference's order) -> tokens [B, L, channels * bins] (the
/// transformer's), feature index channel * bins + bin.
absl::StatusOr<Tensor> PatchifyAudio(Device& device, const Tensor& latent);

/// The inverse. INVALID_ARGUMENT if the features are no multiple of `channels`.
absl::StatusOr<Tensor> UnpatchifyAudio(Device& device, const Tensor& tokens, int64_t channels);

}  // namespace ltx::audio_vae

#endif  // LTX_ENGINE_AUDIO_VAE_LATENT_GRID_H_
