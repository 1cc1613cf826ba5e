#include "engine/audio_vae/resnet_block.h"

#include "kernels/status_macros.h"

namespace ltx::audio_vae {

absl::StatusOr<ResnetBlock> ResnetBlock::Load(checkpoint::WeightLoader loader, int64_t in_channels,
                                              int64_t out_channels, checkpoint::AudioNorm norm,
                                              checkpoint::CausalityAxis axis) {
  ResnetBlock block;
  LTX_ASSIGN_OR_RETURN(block.norm1_, Normalization::Load(loader, "norm1", in_channels, norm));
  LTX_ASSIGN_OR_RETURN(block.conv1_,
                       CausalConv2d::Load(loader, "conv1", in_channels, out_channels, 3, axis));
  LTX_ASSIGN_OR_RETURN(block.norm2_, Normalization::Load(loader, "norm2", out_channels, norm));
  LTX_ASSIGN_OR_RETURN(block.conv2_,
                       CausalConv2d::Load(loader, "conv2", out_channels, out_channels, 3, axis));
  if (in_channels != out_channels) {
    LTX_ASSIGN_OR_RETURN(block.shortcut_, CausalConv2d::Load(loader, "nin_shortcut", in_channels,
                                                             out_channels, 1, axis));
  }
  return block;
}

absl::StatusOr<Tensor> ResnetBlock::Forward(Device& device, const Tensor& x) const {
  Tensor residual = x;
  if (shortcut_.has_value()) {
    LTX_ASSIGN_OR_RETURN(residual, shortcut_->Forward(device, x));
  }
  LTX_ASSIGN_OR_RETURN(Tensor h, norm1_.Forward(device, x, Activation::kSilu));
  LTX_ASSIGN_OR_RETURN(h, conv1_.Forward(device, h));
  LTX_ASSIGN_OR_RETURN(h, norm2_.Forward(device, h, Activation::kSilu));
  return conv2_.Forward(device, h, residual);
}

}  // namespace ltx::audio_vae
