#ifndef LTX_ENGINE_AUDIO_VAE_MID_BLOCK_H_
#define LTX_ENGINE_AUDIO_VAE_MID_BLOCK_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "engine/audio_vae/attention_block.h"
#include "engine/audio_vae/resnet_block.h"
#include "engine/checkpoint/audio_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "kernels/device.h"

namespace ltx::audio_vae {

/// The bottom of the audio VAE: residual block, attention if configured, residual block.
class MidBlock {
 public:
  /// `loader` stands below "mid.". Errors of the weight loader.
  static absl::StatusOr<MidBlock> Load(checkpoint::WeightLoader loader, int64_t channels,
                                       checkpoint::AudioNorm norm, checkpoint::CausalityAxis axis,
                                       bool attention);

  /// x [B, time, bins, C], same shape out.
  absl::StatusOr<Tensor> Forward(Device& device, const Tensor& x) const;

 private:
  ResnetBlock block_1_;
  std::optional<AttentionBlock> attention_;
  ResnetBlock block_2_;
};

}  // namespace ltx::audio_vae

#endif  // LTX_ENGINE_AUDIO_VAE_MID_BLOCK_H_
