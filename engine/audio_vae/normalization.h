#ifndef LTX_ENGINE_AUDIO_VAE_NORMALIZATION_H_
#define LTX_ENGINE_AUDIO_VAE_NORMALIZATION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/audio_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "kernels/device.h"

namespace ltx::audio_vae {

/// The normalisation of the audio VAE: pixel norm, x / sqrt(mean over channels of x^2 + 1e-6) at
/// each (time, bin) without weights, or GroupNorm with 32 groups, epsilon 1e-6 and weights
/// `<name>.weight`, `<name>.bias` [channels] (source: the reference's
/// model/common/normalization.py:build_normalization_layer).
class Normalization {
 public:
  /// FAILED_PRECONDITION if group norm is asked for with channels that are no multiple of 32;
  /// errors of the weight loader.
  static absl::StatusOr<Normalization> Load(checkpoint::WeightLoader& loader,
                                            absl::string_view name, int64_t channels,
                                            checkpoint::AudioNorm type);

  /// activation(norm(x)); x [B, time, bins, C], same shape out.
  absl::StatusOr<Tensor> Forward(Device& device, const Tensor& x, Activation activation) const;

 private:
  checkpoint::AudioNorm type_ = checkpoint::AudioNorm::kPixel;
  Tensor weight_;
  Tensor bias_;
};

}  // namespace ltx::audio_vae

#endif  // LTX_ENGINE_AUDIO_VAE_NORMALIZATION_H_
