#ifndef LTX_ENGINE_AUDIO_VAE_UPSAMPLE_H_
#define LTX_ENGINE_AUDIO_VAE_UPSAMPLE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/audio_vae/causal_conv2d.h"
#include "engine/checkpoint/audio_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "kernels/device.h"

namespace ltx::audio_vae {

/// Nearest-neighbour x2 on time and bins, then a 3x3 convolution, then the first element of the
/// causal axis left out (time t -> 2t - 1 for kHeight, bins likewise for kWidth; nothing for
/// kWidthCompatibility and kNone). Source: the reference's audio_vae/upsample.py:Upsample.
class Upsample {
 public:
  /// `loader` stands below the module's prefix. Errors of the weight loader.
  static absl::StatusOr<Upsample> Load(checkpoint::WeightLoader loader, int64_t channels,
                                       checkpoint::CausalityAxis axis);

  /// x [B, time, bins, C] -> [B, time', bins', C].
  absl::StatusOr<Tensor> Forward(Device& device, const Tensor& x) const;

 private:
  CausalConv2d conv_;
};

}  // namespace ltx::audio_vae

#endif  // LTX_ENGINE_AUDIO_VAE_UPSAMPLE_H_
