#ifndef LTX_ENGINE_AUDIO_VAE_RESNET_BLOCK_H_
#define LTX_ENGINE_AUDIO_VAE_RESNET_BLOCK_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "engine/audio_vae/causal_conv2d.h"
#include "engine/audio_vae/normalization.h"
#include "engine/checkpoint/audio_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "kernels/device.h"

namespace ltx::audio_vae {

/// y = shortcut(x) + conv2(silu(norm2(conv1(silu(norm1(x)))))) with 3x3 convolutions; the shortcut
/// is a 1x1 convolution `nin_shortcut` where the channel count changes, else the identity (source:
/// the reference's audio_vae/resnet.py:ResnetBlock, without time embedding).
class ResnetBlock {
 public:
  /// `loader` stands below the block's prefix. Errors of the weight loader.
  static absl::StatusOr<ResnetBlock> Load(checkpoint::WeightLoader loader, int64_t in_channels,
                                          int64_t out_channels, checkpoint::AudioNorm norm,
                                          checkpoint::CausalityAxis axis);

  /// x [B, time, bins, in] -> [B, time, bins, out].
  absl::StatusOr<Tensor> Forward(Device& device, const Tensor& x) const;

 private:
  Normalization norm1_;
  Normalization norm2_;
  CausalConv2d conv1_;
  CausalConv2d conv2_;
  std::optional<CausalConv2d> shortcut_;
};

}  // namespace ltx::audio_vae

#endif  // LTX_ENGINE_AUDIO_VAE_RESNET_BLOCK_H_
