#include "engine/audio_vae/mid_block.h"

#include "kernels/status_macros.h"

namespace ltx::audio_vae {

absl::StatusOr<MidBlock> MidBlock::Load(checkpoint::WeightLoader loader, int64_t channels,
                                        checkpoint::AudioNorm norm, checkpoint::CausalityAxis axis,
                                        bool attention) {
  MidBlock mid;
  LTX_ASSIGN_OR_RETURN(mid.block_1_,
                       ResnetBlock::Load(loader.Sub("block_1."), channels, channels, norm, axis));
  if (attention) {
    LTX_ASSIGN_OR_RETURN(mid.attention_,
                         AttentionBlock::Load(loader.Sub("attn_1."), channels, norm));
  }
  LTX_ASSIGN_OR_RETURN(mid.block_2_,
                       ResnetBlock::Load(loader.Sub("block_2."), channels, channels, norm, axis));
  return mid;
}

absl::StatusOr<Tensor> MidBlock::Forward(Device& device, const Tensor& x) const {
  LTX_ASSIGN_OR_RETURN(Tensor h, block_1_.Forward(device, x));
  if (attention_.has_value()) {
    LTX_ASSIGN_OR_RETURN(h, attention_->Forward(device, h));
  }
  return block_2_.Forward(device, h);
}

}  // namespace ltx::audio_vae
