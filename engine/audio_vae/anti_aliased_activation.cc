#include "engine/audio_vae/anti_aliased_activation.h"

#include <cmath>
#include <vector>

#include "engine/audio_vae/resampling_filters.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::audio_vae {

absl::StatusOr<AntiAliasedActivation> AntiAliasedActivation::Load(checkpoint::WeightLoader loader,
                                                                  int64_t channels, Kind kind) {
  const Shape filter({kActivationFilterTaps});
  const Shape stored_filter({1, 1, kActivationFilterTaps});
  AntiAliasedActivation activation;
  LTX_ASSIGN_OR_RETURN(const Tensor up, loader.GetF32("upsample.filter", stored_filter));
  LTX_ASSIGN_OR_RETURN(activation.up_filter_, up.Reshape(filter));
  LTX_ASSIGN_OR_RETURN(const Tensor down,
                       loader.GetF32("downsample.lowpass.filter", stored_filter));
  LTX_ASSIGN_OR_RETURN(activation.down_filter_, down.Reshape(filter));

  const Shape per_channel({channels});
  LTX_ASSIGN_OR_RETURN(std::vector<float> alpha, loader.GetHost("act.alpha", per_channel));
  std::vector<float> beta = alpha;
  if (kind == Kind::kSnakeBeta) {
    LTX_ASSIGN_OR_RETURN(beta, loader.GetHost("act.beta", per_channel));
  }
  for (float& value : alpha) value = std::exp(value);
  // The reference's guard against a vanishing beta.
  for (float& value : beta) value = 1.0f / (std::exp(value) + 1e-9f);
  LTX_ASSIGN_OR_RETURN(activation.alpha_, TensorFromFloats(loader.device(), alpha, per_channel,
                                                           DType::kF32, loader.owner()));
  LTX_ASSIGN_OR_RETURN(
      activation.inverse_beta_,
      TensorFromFloats(loader.device(), beta, per_channel, DType::kF32, loader.owner()));
  return activation;
}

absl::StatusOr<Tensor> AntiAliasedActivation::Forward(Device& device, const Tensor& x) const {
  return device.AntiAliasedSnake(x, up_filter_, down_filter_, alpha_, inverse_beta_);
}

}  // namespace ltx::audio_vae
