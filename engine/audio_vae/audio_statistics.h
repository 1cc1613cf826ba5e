#ifndef LTX_ENGINE_AUDIO_VAE_AUDIO_STATISTICS_H_
#define LTX_ENGINE_AUDIO_VAE_AUDIO_STATISTICS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weight_loader.h"
#include "kernels/device.h"

namespace ltx::audio_vae {

/// Mean and standard deviation of the latent per value of a token, index channel * bins + bin
/// (channel-major), rounded to the compute dtype as the reference does.
class AudioStatistics {
 public:
  /// `loader` stands below "audio_vae."; `values` is the base channel count `ch`, by which the
  /// checkpoint sizes them. Errors of the weight loader.
  static absl::StatusOr<AudioStatistics> Load(checkpoint::WeightLoader loader, int64_t values);

  /// Values per token.
  int64_t values() const { return mean_.num_elements(); }

  /// tokens * std + mean; tokens [B, L, values], same shape out.
  absl::StatusOr<Tensor> Denormalize(Device& device, const Tensor& tokens) const;
  /// (tokens - mean) / std.
  absl::StatusOr<Tensor> Normalize(Device& device, const Tensor& tokens) const;

 private:
  Tensor mean_;
  Tensor std_;
};

}  // namespace ltx::audio_vae

#endif  // LTX_ENGINE_AUDIO_VAE_AUDIO_STATISTICS_H_
