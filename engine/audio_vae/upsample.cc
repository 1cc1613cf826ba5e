#include "engine/audio_vae/upsample.h"

#include "kernels/status_macros.h"

namespace ltx::audio_vae {

absl::StatusOr<Upsample> Upsample::Load(checkpoint::WeightLoader loader, int64_t channels,
                                        checkpoint::CausalityAxis axis) {
  Upsample upsample;
  LTX_ASSIGN_OR_RETURN(upsample.conv_,
                       CausalConv2d::Load(loader, "conv", channels, channels, 3, axis));
  return upsample;
}

absl::StatusOr<Tensor> Upsample::Forward(Device& device, const Tensor& x) const {
  LTX_ASSIGN_OR_RETURN(const Tensor doubled, device.UpsampleNearest2x(x));
  return conv_.ForwardDroppingFirst(device, doubled);
}

}  // namespace ltx::audio_vae
