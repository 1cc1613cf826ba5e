#ifndef LTX_ENGINE_AUDIO_VAE_ANTI_ALIASED_ACTIVATION_H_
#define LTX_ENGINE_AUDIO_VAE_ANTI_ALIASED_ACTIVATION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weight_loader.h"
#include "kernels/device.h"

namespace ltx::audio_vae {

/// The periodic activation of BigVGAN v2 (Lee et al. 2023) between a x2 up- and a x2 down-sampling
/// filter: u + sin^2(e^alpha u) / (e^beta + 1e-9) per channel, alpha and beta stored as logarithms.
/// SnakeBeta has its own beta, Snake uses alpha for it. The filters are the checkpoint's:
/// recomputed ones differ from the stored bf16 values by more than the whole rest of the vocoder.
/// Always f32. Source: the reference's audio_vae/vocoder.py:Activation1d.
class AntiAliasedActivation {
 public:
  enum class Kind { kSnake, kSnakeBeta };

  /// Weights below `loader`: act.alpha and (SnakeBeta) act.beta [C], upsample.filter and
  /// downsample.lowpass.filter [1, 1, 12]. Errors of the weight loader.
  static absl::StatusOr<AntiAliasedActivation> Load(checkpoint::WeightLoader loader,
                                                    int64_t channels, Kind kind = Kind::kSnakeBeta);

  /// x f32 [B, T, C], same shape out.
  absl::StatusOr<Tensor> Forward(Device& device, const Tensor& x) const;

  /// The operands of Device::AntiAliasedSnake, for checks that look inside it.
  const Tensor& up_filter() const { return up_filter_; }
  const Tensor& down_filter() const { return down_filter_; }
  const Tensor& alpha() const { return alpha_; }
  const Tensor& inverse_beta() const { return inverse_beta_; }

 private:
  Tensor up_filter_;
  Tensor down_filter_;
  Tensor alpha_;
  Tensor inverse_beta_;
};

}  // namespace ltx::audio_vae

#endif  // LTX_ENGINE_AUDIO_VAE_ANTI_ALIASED_ACTIVATION_H_
