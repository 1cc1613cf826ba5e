#ifndef LTX_ENGINE_SAMPLING_LATENT_STATE_H_
#define LTX_ENGINE_SAMPLING_LATENT_STATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/device.h"

namespace ltx::sampling {

enum class Modality : uint8_t { kVideo, kAudio };
/// Video goes first wherever the order matters: draws of noise, steps.
inline constexpr Modality kModalities[] = {Modality::kVideo, Modality::kAudio};

/// "video" or "audio".
constexpr absl::string_view ModalityName(Modality modality) {
  return modality == Modality::kVideo ? "video" : "audio";
}

/// One value for each modality.
template <typename T>
struct PerModality {
  T video{};
  T audio{};
  T& operator[](Modality modality) { return modality == Modality::kVideo ? video : audio; }
  const T& operator[](Modality modality) const {
    return modality == Modality::kVideo ? video : audio;
  }
};

/// The token sequence of one modality in a denoising stage (reference: ltx_core/types.py:
/// LatentState).
struct LatentState {
  /// [B, T, C]. An undefined latent stands for an absent modality.
  Tensor latent;
  /// [B, T, C]: what a token is pulled to where its mask is below 1.
  Tensor clean;
  /// [B, T]: 1 generates the token, 0 keeps it; the token's timestep is mask * sigma. On the host
  /// and, as f32, on the device.
  std::vector<float> mask;
  Tensor device_mask;

  bool present() const { return latent.defined(); }
};

/// A state whose tokens are all generated, starting from `latent` [B, T, C].
absl::StatusOr<LatentState> GeneratedState(Device& device, const Tensor& latent);

/// The timestep of each token: mask * sigma.
std::vector<float> TokenTimesteps(const std::vector<float>& mask, float sigma);

/// The starting point of a stage: x = lerp(latent, noise, noise_scale), then
/// lerp(clean, x, mask), both in f32, rounded once to the latent's dtype. `noise` [B, T, C].
absl::StatusOr<Tensor> AddNoise(Device& device, const LatentState& state, const Tensor& noise,
                                float noise_scale);

/// Video latent [B, C, F, H, W] -> tokens [B, F H W, C].
absl::StatusOr<Tensor> PatchifyVideo(Device& device, const Tensor& latent);
/// The inverse.
absl::StatusOr<Tensor> UnpatchifyVideo(Device& device, const Tensor& tokens, int64_t frames,
                                       int64_t height, int64_t width);

}  // namespace ltx::sampling

#endif  // LTX_ENGINE_SAMPLING_LATENT_STATE_H_
